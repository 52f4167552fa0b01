// Budgets over HTTP (07 §5.12; 05 §2 to §6, §10, §12; 09 §5).
#include <map>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

using Names = std::vector<std::string>;

const std::string kBudget = "550e8400-e29b-41d4-a716-446655440000";
const std::string kPath = "/v1/budgets/" + kBudget;
const std::string kOther = "550e8400-e29b-41d4-a716-446655440001";

class HttpBudgets : public HttpTest {
 protected:
  // `limits` are the three parallel arrays.
  Reply create(const std::string& limits, const std::string& id = kBudget, const std::string& interval = "0",
               const std::string& mode = "strict") {
    return post("/v1/budgets", R"({"budget_id":")" + id +
                                   R"(","scope_type":"lane","scope_id":"main","enforcement_mode":")" + mode +
                                   R"(","on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":)" +
                                   interval + "," + limits + R"(,"now":1767225600000})");
  }
  // One dimension, `tokens`.
  Reply create(int hard, int soft, const std::string& id = kBudget) {
    return create(R"("dimensions":["tokens"],"hard_limits":[)" + std::to_string(hard) +
                      R"(],"soft_limits":[)" + std::to_string(soft) + "]",
                  id);
  }
  Reply use(const std::string& dimensions, const std::string& more_keys = "",
            const std::string& id = kBudget) {
    return post("/v1/budgets/" + id + "/usage",
                R"({"dimensions":)" + dimensions + R"(,"now":1)" + more_keys + "}");
  }
  Reply status() { return get(kPath); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpBudgets, kHttpStores, http_store_name);

// ---- creating and reading ----

TEST_P(HttpBudgets, AreCreatedOnce) {
  const auto created = create(1000, 800);
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.body, R"({"Created":{"budget_id":")" + kBudget + "\"}}");
  const auto again = create(5, 5);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"AlreadySatisfied":{"budget_id":")" + kBudget + "\"}}");
  EXPECT_EQ(status().at("/hard_limits"), R"({"tokens":1000})") << "nothing has changed";
}

TEST_P(HttpBudgets, AreReadWithEveryKey) {
  create(R"("dimensions":["tokens","cost"],"hard_limits":[1000,0],"soft_limits":[800,0])");
  const auto fresh = status();
  EXPECT_EQ(fresh.status, 200);
  EXPECT_EQ(fresh.at("/budget_id"), kBudget);
  EXPECT_EQ(fresh.at("/scope_type"), "lane");
  EXPECT_EQ(fresh.at("/scope_id"), "main");
  EXPECT_EQ(fresh.at("/enforcement_mode"), "strict");
  EXPECT_EQ(fresh.at("/usage"), "{}");
  EXPECT_EQ(fresh.at("/hard_limits"), R"({"cost":0,"tokens":1000})");
  EXPECT_EQ(fresh.at("/soft_limits"), R"({"cost":0,"tokens":800})");
  EXPECT_TRUE(contains(fresh.body, R"("breach_count":0)")) << fresh.body;
  EXPECT_TRUE(contains(fresh.body, R"("soft_breach_count":0)"));
  for (const auto* key : {"/last_breach_at", "/last_breach_dim", "/next_reset_at"}) {
    EXPECT_EQ(fresh.at(key), "null") << key;
  }
  EXPECT_TRUE(contains(fresh.body, R"("created_at":")")) << "a string";
  EXPECT_GT(std::stoll(fresh.at("/created_at")), 1767225600000) << "by the store's clock";
}

TEST_P(HttpBudgets, TellTheirNextReset) {
  create(R"("dimensions":[],"hard_limits":[],"soft_limits":[])", kBudget, "3600000");
  const auto seen = status();
  EXPECT_TRUE(contains(seen.body, R"("next_reset_at":")")) << "a string";
  EXPECT_EQ(std::stoll(seen.at("/next_reset_at")) - std::stoll(seen.at("/created_at")), 3'600'000);
}

TEST_P(HttpBudgets, KeepLargeNumbersExactly) {
  EXPECT_EQ(
      create(R"("dimensions":["t"],"hard_limits":[9223372036854775806],"soft_limits":[9007199254740993])")
          .status,
      201);
  EXPECT_EQ(use(R"({"t":9007199254740993})").body, "\"Ok\"");
  EXPECT_EQ(status().at("/usage"), R"({"t":9007199254740993})");
  EXPECT_EQ(status().at("/hard_limits"), R"({"t":9223372036854775806})");
  EXPECT_EQ(use(R"({"t":9223372036854775807})").at("/HardBreach/current_usage"), "9007199254740993");
  const auto beyond =
      create(R"("dimensions":["t"],"hard_limits":[9223372036854775808],"soft_limits":[0])", kOther);
  EXPECT_EQ(beyond.status, 400) << beyond.body;
  EXPECT_EQ(beyond.at("/code"), "invalid_input");
}

TEST_P(HttpBudgets, OfWrongShapeAreRefused) {
  const auto with = [](const std::string& keys) {
    return R"({"budget_id":"550e8400-e29b-41d4-a716-446655440000","scope_type":"lane","scope_id":"m",)"
           R"("enforcement_mode":"strict","on_hard_limit":"fail","on_soft_limit":"warn",)" +
           keys + R"(,"now":1})";
  };
  for (
      const auto& body : {
          with(R"("reset_interval_ms":0,"hard_limits":[1],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":["t"],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":["t"],"hard_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":"t","hard_limits":[1],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":[5],"hard_limits":[1],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":["t"],"hard_limits":["1"],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":["t"],"hard_limits":[-1],"soft_limits":[1])"),
          with(R"("reset_interval_ms":0,"dimensions":["t"],"hard_limits":[1.5],"soft_limits":[1])"),
          with(
              R"("reset_interval_ms":0,"dimensions":["t"],"hard_limits":[18446744073709551616],"soft_limits":[1])"),
          with(R"("reset_interval_ms":"0","dimensions":["t"],"hard_limits":[1],"soft_limits":[1])"),
          with(
              R"("reset_interval_ms":0,"reset_interval_ms":0,"dimensions":[],"hard_limits":[],"soft_limits":[])"),
          std::string(
              R"({"scope_type":"lane","scope_id":"m","dimensions":[],"hard_limits":[],"soft_limits":[]})"),
          std::string(
              R"({"budget_id":"x","scope_type":"lane","scope_id":"m","dimensions":[],"hard_limits":[],"soft_limits":[]})"),
      }) {
    expect_shape_refused(post("/v1/budgets", body), body);
  }
  create(10, 10);
  for (const auto* body : {R"({"now":1})", R"({"dimensions":null,"now":1})", R"({"dimensions":[1],"now":1})",
                           R"({"dimensions":{"t":"1"},"now":1})", R"({"dimensions":{"t":-1},"now":1})",
                           R"({"dimensions":{"t":1},"now":1,"dedup_key":5})"}) {
    expect_shape_refused(post(kPath + "/usage", body), body);
  }
  EXPECT_EQ(status().at("/usage"), "{}");
}

TEST_P(HttpBudgets, NeedLimitsForEveryDimension) {
  for (const auto* limits : {R"("dimensions":["a","b"],"hard_limits":[1],"soft_limits":[1,2])",
                             R"("dimensions":["a"],"hard_limits":[1],"soft_limits":[])",
                             R"("dimensions":[],"hard_limits":[1],"soft_limits":[1])"}) {
    const auto refused = create(limits);
    EXPECT_EQ(refused.status, 400) << limits;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << limits;
  }
  EXPECT_EQ(status().status, 404);
}

TEST_P(HttpBudgets, HaveUpTo64Dimensions) {
  std::string names, limits, usage;
  for (int i = 0; i < 65; ++i) {
    const std::string comma = i > 0 ? "," : "";
    names += comma + "\"d" + std::to_string(i) + "\"";
    limits += comma + "1";
    usage += comma + "\"d" + std::to_string(i) + "\":1";
  }
  const auto refused = create(R"("dimensions":[)" + names + R"(],"hard_limits":[)" + limits +
                              R"(],"soft_limits":[)" + limits + "]");
  EXPECT_EQ(said(refused), "400 invalid_input: too_many_dimensions: limit=64, got=65");
  create(10, 10);
  EXPECT_EQ(said(use("{" + usage + "}")), "400 invalid_input: too_many_dimensions: limit=64, got=65");
  EXPECT_EQ(status().at("/usage"), "{}");
}

TEST_P(HttpBudgets, ThatAreNotThereAreNotFound) {
  const auto attach = R"({"scope_type":"lane","scope_id":"x"})";
  for (const auto& reply : {status(), use(R"({"t":1})"), post(kPath + "/reset"),
                            put(kPath + "/limits", R"({"hard_limits":{"t":1}})"), get(kPath + "/spending"),
                            get(kPath + "/breaches"), post(kPath + "/attach", attach), remove(kPath)}) {
    EXPECT_EQ(said(reply), "404 not found: budget");
    EXPECT_EQ(reply.at("/code"), "budget_not_found");
  }
  EXPECT_EQ(create(1, 1).status, 201) << "a report to nobody leaves nothing";
  for (const auto& reply : {get("/v1/budgets/nonsense"), post("/v1/budgets/nonsense/reset"),
                            post("/v1/budgets/nonsense/usage", R"({"dimensions":{},"now":1})")}) {
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(reply.at("/error").starts_with("invalid budget_id: ")) << reply.body;
  }
}

// ---- usage ----

TEST_P(HttpBudgets, CountUntilTheirLimits) {
  create(100, 80);
  const auto ok = use(R"({"tokens":60})");
  EXPECT_EQ(ok.status, 200);
  EXPECT_EQ(ok.body, "\"Ok\"");
  const auto soft = use(R"({"tokens":25})");
  EXPECT_EQ(soft.status, 200);
  EXPECT_EQ(soft.body, R"({"SoftBreach":{"dimension":"tokens","current_usage":85,"soft_limit":80}})");
  const auto hard = use(R"({"tokens":50})");
  EXPECT_EQ(hard.status, 200);
  EXPECT_EQ(hard.body, R"({"HardBreach":{"dimension":"tokens","current_usage":85,"hard_limit":100}})");
  const auto seen = status();
  EXPECT_EQ(seen.at("/usage"), R"({"tokens":85})") << "nothing was applied";
  EXPECT_EQ(seen.at("/breach_count"), "1");
  EXPECT_EQ(seen.at("/soft_breach_count"), "1");
  EXPECT_EQ(seen.at("/last_breach_dim"), "tokens");
  EXPECT_TRUE(contains(seen.body, R"("last_breach_at":")")) << "a string";
  EXPECT_EQ(use(R"({"tokens":15})").at("/SoftBreach/current_usage"), "100")
      << "up to the limit, and again soft";
  EXPECT_EQ(status().at("/soft_breach_count"), "2");
}

TEST_P(HttpBudgets, TellTheFirstDimensionThatIsOver) {
  create(R"("dimensions":["z","m","a"],"hard_limits":[10,10,0],"soft_limits":[0,0,0])");
  const auto over = use(R"({"z":11,"m":11,"a":99})");
  EXPECT_EQ(over.at("/HardBreach/dimension"), "m");
  EXPECT_EQ(over.at("/HardBreach/current_usage"), "0");
  EXPECT_EQ(status().at("/usage"), "{}") << "none of them";
  EXPECT_EQ(use(R"({"a":99,"other":3})").body, "\"Ok\"") << "0 and no limit are none";
  EXPECT_EQ(status().at("/usage"), R"({"a":99,"other":3})");
}

TEST_P(HttpBudgets, CountAReportOnce) {
  create(100, 0);
  create(100, 0, kOther);
  const auto key = R"(,"dedup_key":"r-1")";
  EXPECT_EQ(use(R"({"tokens":60})", key).body, "\"Ok\"");
  EXPECT_EQ(use(R"({"tokens":60})", key).body, "\"AlreadyApplied\"");
  EXPECT_EQ(use(R"({"tokens":60})", key, kOther).body, "\"Ok\"") << "another budget's keys are its own";
  EXPECT_EQ(status().at("/usage"), R"({"tokens":60})");
  for (const auto* none : {R"(,"dedup_key":"")", R"(,"dedup_key":null)", ""}) {
    EXPECT_EQ(use(R"({"tokens":1})", none).body, "\"Ok\"");
  }
  EXPECT_EQ(status().at("/usage"), R"({"tokens":63})");
}

TEST_P(HttpBudgets, DoNotRememberAReportThatWasRefused) {
  create(100, 0);
  use(R"({"tokens":90})");
  const auto key = R"(,"dedup_key":"r-1")";
  EXPECT_EQ(use(R"({"tokens":20})", key).keys(), Names{"HardBreach"});
  EXPECT_EQ(use(R"({"tokens":20})", key).keys(), Names{"HardBreach"});
  post(kPath + "/reset");
  EXPECT_EQ(use(R"({"tokens":20})", key).body, "\"Ok\"");
}

TEST_P(HttpBudgets, RefuseADimensionThatIsGivenTwice) {
  create(100, 0);
  const auto refused = use(R"({"tokens":1,"tokens":2})");
  EXPECT_TRUE(refused.status == 400 || refused.status == 422) << refused.status << refused.body;
  EXPECT_EQ(status().at("/usage"), "{}");
}

TEST_P(HttpBudgets, OnlyAdviseWhenAsked) {
  create(R"("dimensions":["tokens"],"hard_limits":[10],"soft_limits":[0])", kBudget, "0", "advisory");
  EXPECT_EQ(use(R"({"tokens":15})").body,
            R"({"SoftBreach":{"dimension":"tokens","current_usage":15,"soft_limit":10}})");
  EXPECT_EQ(status().at("/usage"), R"({"tokens":15})");
  EXPECT_EQ(status().at("/breach_count"), "1");
}

// ---- resetting ----

TEST_P(HttpBudgets, AreReset) {
  create(R"("dimensions":["tokens"],"hard_limits":[10],"soft_limits":[5])");
  use(R"({"tokens":8})");
  use(R"({"tokens":8})");
  const auto reset = send({.method = "POST", .path = kPath + "/reset", .body = "not read"});
  EXPECT_EQ(reset.status, 200);
  EXPECT_EQ(reset.body, R"({"Reset":{"next_reset_at":0}})");
  const auto seen = status();
  EXPECT_EQ(seen.at("/usage"), R"({"tokens":0})") << "the key stays";
  EXPECT_EQ(seen.at("/breach_count"), "1");
  EXPECT_EQ(seen.at("/soft_breach_count"), "1");
  EXPECT_EQ(seen.at("/last_breach_at"), "null");
  EXPECT_EQ(seen.at("/last_breach_dim"), "null");
}

TEST_P(HttpBudgets, AreResetAgainAfterAWhile) {
  create(R"("dimensions":[],"hard_limits":[],"soft_limits":[])", kBudget, "3600000");
  const auto first = std::stoll(status().at("/next_reset_at"));
  const auto reset = post(kPath + "/reset");
  EXPECT_FALSE(contains(reset.body, R"("next_reset_at":")")) << "an integer";
  EXPECT_GE(std::stoll(reset.at("/Reset/next_reset_at")), first);
  EXPECT_EQ(status().at("/next_reset_at"), reset.at("/Reset/next_reset_at"));
}

// ---- what they do to executions ----

TEST_P(HttpBudgets, KeepWorkBackWhenTheyAreSpent) {
  create(10, 0);
  use(R"({"tokens":10})");
  const auto id = submitted(R"(,"policy":{"budget_ids":[")" + kBudget + R"("]})");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").size("/tasks"), 0u);
  EXPECT_TRUE(eventually([&] { return get("/v1/executions/" + id + "/state").at("") == "rate_limited"; }));
  const auto why = get("/v1/executions/" + id + "/why");
  EXPECT_EQ(why.at("/reasons/0/code"), "waiting_for_budget");
  EXPECT_TRUE(contains(why.at("/reasons/0/detail"), "tokens 10/10")) << why.body;
  post(kPath + "/reset");
  EXPECT_EQ(claimed().execution_id, id);
}

TEST_P(HttpBudgets, CountWhatWorkersReport) {
  create(100, 80);
  const auto task = running();
  const auto tell = [&](int tokens, const std::string& more_keys = "") {
    return report("usage", task,
                  R"(,"budget_id":")" + kBudget + R"(","dimensions":{"tokens":)" + std::to_string(tokens) +
                      "}" + more_keys);
  };
  EXPECT_EQ(tell(60, R"(,"dedup_key":"k")").at("/outcome"), "ok");
  EXPECT_EQ(tell(60, R"(,"dedup_key":"k")").at("/outcome"), "already_applied");
  const auto soft = tell(25);
  EXPECT_EQ(soft.at("/outcome"), "soft_breach");
  EXPECT_EQ(soft.at("/dimension") + " " + soft.at("/current_usage") + "/" + soft.at("/soft_limit"),
            "tokens 85/80");
  const auto hard = tell(50);
  EXPECT_EQ(hard.at("/outcome"), "hard_breach");
  EXPECT_EQ(hard.at("/dimension") + " " + hard.at("/current_usage") + "/" + hard.at("/hard_limit"),
            "tokens 85/100");
  report("complete", task);
  EXPECT_EQ(tell(1).at("/outcome"), "soft_breach") << "what was spent is spent";
}

// ---- ours ----

TEST_P(HttpBudgets, TellWhoHasSpentThem) {
  create(100, 0);
  EXPECT_EQ(get(kPath + "/spending").body, R"({"spendings":[],"next_cursor":null})");
  const auto budget = BudgetId::parse(kBudget).value();
  std::map<std::string, std::string> spent;
  for (const auto tokens : {7u, 8u}) {
    const auto id = submitted();
    ASSERT_TRUE(engine().call(RecordSpend{budget, ExecutionId::parse(id).value(), {{"tokens", tokens}}}));
    spent[id] = R"({"tokens":)" + std::to_string(tokens) + "}";
  }
  auto page = get(kPath + "/spending?limit=1");
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(page.size("/spendings"), 1u);
    const auto id = page.at("/spendings/0/execution_id");
    EXPECT_EQ(page.at("/spendings/0/spent"), spent[id]);
    spent.erase(id);
    const auto next = page.at("/next_cursor");
    EXPECT_EQ(next == "null", i == 1) << page.body;
    page = get(kPath + "/spending?cursor=" + next);
  }
  EXPECT_TRUE(spent.empty());
}

TEST_P(HttpBudgets, TellTheirBreaches) {
  create(100, 80);
  EXPECT_EQ(get(kPath + "/breaches").body, R"({"breaches":[]})");
  const auto id = submitted();
  use(R"({"tokens":90})");
  use(R"({"tokens":11})", R"(,"execution_id":")" + id + "\"");
  const auto told = get(kPath + "/breaches");
  ASSERT_EQ(told.size("/breaches"), 2u) << told.body;
  const auto hard = told.at("/breaches/0/execution_id") == id ? "/breaches/0" : "/breaches/1";
  EXPECT_EQ(told.at(hard + std::string("/execution_id")), id);
  EXPECT_EQ(told.at(hard + std::string("/dimension")), "tokens");
  EXPECT_EQ(told.at(hard + std::string("/limit")), "100");
  EXPECT_EQ(told.at(hard + std::string("/usage")), "90");
  EXPECT_EQ(told.at(hard + std::string("/reported")), "11");
}

TEST_P(HttpBudgets, AreListed) {
  EXPECT_EQ(get("/v1/budgets").body, R"({"budgets":[],"next_cursor":null})");
  create(1, 1);
  create(2, 2, kOther);
  const auto first = get("/v1/budgets?limit=1");
  ASSERT_EQ(first.size("/budgets"), 1u);
  const auto second = get("/v1/budgets?limit=1&cursor=" + first.at("/next_cursor"));
  ASSERT_EQ(second.size("/budgets"), 1u);
  EXPECT_NE(first.at("/budgets/0/budget_id"), second.at("/budgets/0/budget_id"));
  EXPECT_EQ(second.at("/next_cursor"), "null");
  EXPECT_EQ(get("/v1/budgets/" + first.at("/budgets/0/budget_id")).keys(), first.keys("/budgets/0"))
      << "the shape of one";
  for (const auto* query : {"limit=0", "limit=1001", "limit=x", "cursor=x"}) {
    EXPECT_EQ(get(std::string("/v1/budgets?") + query).status, 400) << query;
  }
}

TEST_P(HttpBudgets, TakeOtherLimits) {
  create(10, 5);
  use(R"({"tokens":10})");
  const auto id = submitted(R"(,"policy":{"budget_ids":[")" + kBudget + R"("]})");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").size("/tasks"), 0u);
  const auto raised =
      put(kPath + "/limits", R"({"hard_limits":{"tokens":20,"cost":7},"soft_limits":{"tokens":15}})");
  EXPECT_EQ(raised.status, 200) << raised.body;
  EXPECT_EQ(raised.at("/hard_limits/tokens"), "20");
  EXPECT_EQ(raised.at("/hard_limits/cost"), "7");
  EXPECT_EQ(raised.at("/soft_limits/tokens"), "15");
  EXPECT_EQ(claimed().execution_id, id) << "at once";
  expect_shape_refused(put(kPath + "/limits", R"({"hard_limits":{"tokens":"20"}})"), "a string");
}

TEST_P(HttpBudgets, AreAttachedAndDetached) {
  create(10, 0);
  use(R"({"tokens":10})");
  const auto lane = R"({"scope_type":"lane","scope_id":"narrow"})";
  const auto attached = post(kPath + "/attach", lane);
  EXPECT_EQ(attached.status, 200);
  EXPECT_EQ(attached.body, lane);
  EXPECT_EQ(said(post(kPath + "/attach", lane)),
            "409 budget_attach_conflict: BudgetAttachConflict (budget_attach_conflict, final)");
  const auto id = submitted(R"(,"lane_id":"narrow")");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w","lanes":["narrow"]})").size("/tasks"), 0u);
  EXPECT_EQ(post(kPath + "/detach", lane).status, 200);
  EXPECT_EQ(claimed("narrow").execution_id, id);
  expect_shape_refused(post(kPath + "/attach", R"({"scope_type":"lane"})"), "no scope_id");
  EXPECT_EQ(post(kPath + "/attach", R"({"scope_type":"galaxy","scope_id":"x"})").status, 400);
}

TEST_P(HttpBudgets, AreDeleted) {
  create(10, 0);
  const auto deleted = remove(kPath);
  EXPECT_EQ(deleted.status, 204);
  EXPECT_EQ(deleted.body, "");
  EXPECT_EQ(status().status, 404);
  EXPECT_EQ(remove(kPath).status, 404);
}

}  // namespace
}  // namespace flowfabric::tests
