// /metrics shows exactly what happened, under the names of 06 §13 and 07 §5.14. Also readiness.
#include <atomic>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

const std::string kBudget = "550e8400-e29b-41d4-a716-446655440000";
const std::string kQuota = "550e8400-e29b-41d4-a716-446655440001";

class HttpMetrics : public HttpTest {
 protected:
  // Every line of the text but its comments; by name and labels.
  std::map<std::string, double> figures() {
    const auto reply = get("/metrics");
    EXPECT_EQ(reply.status, 200);
    std::map<std::string, double> found;
    std::istringstream text(reply.body);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with('#')) continue;
      const auto space = line.rfind(' ');
      const bool is_new = found.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second;
      EXPECT_TRUE(is_new) << "twice: " << line;
    }
    return found;
  }
  // 0 when it is not there: counters appear with the first event.
  double figure(const std::string& series) {
    const auto all = figures();
    const auto it = all.find(series);
    return it == all.end() ? 0 : it->second;
  }
  // The series of a family that have changed since `before`, as in the text.
  std::map<std::string, double> moved(const std::string& family,
                                      const std::map<std::string, double>& before) {
    std::map<std::string, double> changes;
    for (const auto& [series, value] : figures()) {
      if (series != family && !series.starts_with(family + "{")) continue;
      const auto it = before.find(series);
      const double change = value - (it == before.end() ? 0 : it->second);
      if (change != 0) changes[series.substr(family.size())] = change;
    }
    return changes;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpMetrics, kHttpStores, http_store_name);

using Moved = std::map<std::string, double>;

// ---- work ----

TEST_P(HttpMetrics, CountAttemptsByLaneAndOutcome) {
  const std::string once =
      R"(,"policy":{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":60000}}})";
  report("complete", running());
  report("complete", running());
  EXPECT_EQ(moved("ff_attempt_outcome_total", {}), (Moved{{R"({lane="default",outcome="ok"})", 2}}));
  const auto before = figures();
  report("cancel", running(), R"(,"reason":"enough")");
  report("fail", running(), R"(,"reason":"broken")");
  report("fail", running(), R"(,"reason":"slow","category":"timeout")");
  const auto retried = running(once);
  ASSERT_EQ(report("fail", retried, R"(,"reason":"for now")").at("/outcome"), "retry_scheduled");
  EXPECT_EQ(moved("ff_attempt_outcome_total", before), (Moved{{R"({lane="default",outcome="cancelled"})", 1},
                                                              {R"({lane="default",outcome="error"})", 1},
                                                              {R"({lane="default",outcome="timeout"})", 1},
                                                              {R"({lane="default",outcome="retry"})", 1}}));
  submitted(R"(,"lane_id":"other-lane")");
  report("complete", claimed("other-lane"));
  EXPECT_EQ(figure(R"(ff_attempt_outcome_total{lane="other-lane",outcome="ok"})"), 1);
  EXPECT_EQ(figure(R"(ff_execution_latency_seconds_count{lane="default",outcome="success"})"), 2);
  EXPECT_EQ(figure(R"(ff_execution_latency_seconds_count{lane="default",outcome="failed"})"), 2);
  EXPECT_EQ(figure(R"(ff_execution_latency_seconds_count{lane="default",outcome="cancelled"})"), 1);
  EXPECT_EQ(figure(R"(ff_execution_latency_seconds_bucket{lane="default",outcome="success",le="+Inf"})"), 2);
}

TEST_P(HttpMetrics, CountNeitherRefusalsNorRepetitions) {
  const auto task = running();
  const auto stale =
      Task{task.execution_id,
           std::regex_replace(task.lease, std::regex(R"("lease_epoch":1)"), R"("lease_epoch":7)"),
           task.attempt_index};
  EXPECT_EQ(report("complete", stale).status, 409);
  EXPECT_EQ(report("complete", task).status, 200);
  EXPECT_EQ(report("complete", task).status, 200) << "a repetition";
  EXPECT_EQ(moved("ff_attempt_outcome_total", {}), (Moved{{R"({lane="default",outcome="ok"})", 1}}));
}

TEST_P(HttpMetrics, CountRenewalsAndLeases) {
  const auto task = running();
  EXPECT_EQ(report("renew", task).status, 200);
  report("complete", task);
  EXPECT_EQ(report("renew", task).status, 409);
  EXPECT_EQ(figure(R"(ff_lease_renewal_total{outcome="ok"})"), 1);
  EXPECT_EQ(figure(R"(ff_lease_renewal_total{outcome="error"})"), 1);
  const auto all = moved("ff_lease_events_total", {});
  EXPECT_EQ(all,
            (Moved{{R"({type="acquired"})", 1}, {R"({type="renewed"})", 1}, {R"({type="released"})", 1}}));
}

TEST_P(HttpMetrics, TimeClaimsOfGrantedWork) {
  submitted();
  const auto given =
      post("/v1/workers/w/claim", R"({"lane_id":"default","worker_instance_id":"i","grant_ttl_ms":60000})");
  ASSERT_EQ(given.status, 200) << given.body;
  const auto grant = R"({"worker_id":"w","grants":[{"execution_id":")" + given.at("/execution_id") +
                     R"(","grant_key":")" + given.at("/grant_key") + "\"}]}";
  ASSERT_EQ(post("/v1/tasks/claim", grant).size("/tasks"), 1u);
  ASSERT_EQ(post("/v1/tasks/claim", grant).size("/refused"), 1u) << "it is used up";
  EXPECT_EQ(figure(R"(ff_claim_from_grant_duration_seconds_count{lane="default"})"), 1);
  EXPECT_EQ(figure(R"(ff_claim_from_grant_duration_seconds_count{lane="unknown"})"), 1);
}

TEST_P(HttpMetrics, CountWhatLimitsHoldBack) {
  const auto budget =
      post("/v1/budgets", R"({"budget_id":")" + kBudget +
                              R"(","scope_type":"lane","scope_id":"main","enforcement_mode":"strict",
      "on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":0,"dimensions":["tokens"],
      "hard_limits":[10],"soft_limits":[0],"now":1})");
  ASSERT_EQ(budget.status, 201) << budget.body;
  post("/v1/budgets/" + kBudget + "/usage", R"({"dimensions":{"tokens":10},"now":1})");
  ASSERT_TRUE(engine().call(
      CreateQuotaPolicy{.quota_policy_id = QuotaPolicyId{*Uuid::parse(kQuota)}, .max_concurrent = 1}));
  submitted(R"(,"policy":{"budget_ids":[")" + kBudget + R"("]})");
  for (int i = 0; i < 2; ++i) submitted(R"(,"policy":{"quota_policy_id":")" + kQuota + R"("})");
  const auto claimed = post("/v1/tasks/claim", R"({"worker_id":"w","max_tasks":9})");
  ASSERT_EQ(claimed.size("/tasks"), 1u) << claimed.body;
  EXPECT_EQ(moved("ff_budget_hit_total", {}), (Moved{{R"({dimension="tokens"})", 1}}));
  EXPECT_EQ(moved("ff_quota_hit_total", {}), (Moved{{R"({reason="concurrency"})", 1}}));
  EXPECT_EQ(moved("ff_unblocked_total", {}), Moved{});

  ASSERT_EQ(post("/v1/budgets/" + kBudget + "/reset", R"({"now":1})").status, 200);
  EXPECT_EQ(figure("ff_budget_reset_total"), 1);
  EXPECT_TRUE(eventually([&] { return figure(R"(ff_unblocked_total{reason="waiting_for_budget"})") == 1; }));
}

TEST_P(HttpMetrics, CountJoinsAndTheSiblingsTheyCancel) {
  const auto flow = post("/v1/flows/submit", R"({"flow_kind":"k","nodes":[
      {"name":"a","execution_kind":"k"},{"name":"b","execution_kind":"k"},{"name":"c","execution_kind":"k"},
      {"name":"pick","execution_kind":"k","join":{"kind":"any_of","on_satisfied":"cancel_remaining"}},
      {"name":"all","execution_kind":"k"}],
      "edges":[{"from":"a","to":"pick"},{"from":"b","to":"pick"},{"from":"c","to":"pick"},
               {"from":"pick","to":"all"}]})");
  ASSERT_EQ(flow.status, 201) << flow.body;
  EXPECT_EQ(moved("ff_edge_group_policy_total", {}),
            (Moved{{R"({policy="all_of"})", 1}, {R"({policy="any_of"})", 1}}));
  report("complete", claimed());
  EXPECT_TRUE(eventually(
      [&] { return figure(R"(ff_sibling_cancel_disposition_total{disposition="cancelled"})") == 2; }));
  EXPECT_EQ(moved("ff_sibling_cancel_dispatched_total", {}),
            (Moved{{R"({reason="sibling_quorum_satisfied"})", 2}}));
  EXPECT_EQ(moved("ff_sibling_cancel_disposition_total", {}), (Moved{{R"({disposition="cancelled"})", 2}}))
      << "the one that has decided it is no sibling to cancel";
  EXPECT_EQ(figure(R"(ff_scanner_processed_total{scanner="edge_cancel_dispatcher"})"), 1);
}

TEST_P(HttpMetrics, CountFrames) {
  const auto task = running();
  ASSERT_EQ(report("append", task, R"(,"frame_type":"t","text":"four")").status, 200);
  ASSERT_EQ(
      report("append", task, R"(,"frame_type":"t","text":"12","mode":"best_effort","ttl_ms":1000)").status,
      200);
  EXPECT_EQ(moved("ff_stream_frames_total", {}),
            (Moved{{R"({mode="durable"})", 1}, {R"({mode="best_effort"})", 1}}));
  EXPECT_EQ(figure("ff_stream_bytes_total"), 6);
}

// ---- the engine ----

TEST_P(HttpMetrics, MeasureCommits) {
  const auto before = figures();
  for (int i = 0; i < 3; ++i) submitted();
  const auto after = figures();
  const auto change = [&](const std::string& series) { return after.at(series) - before.at(series); };
  EXPECT_GE(change("ff_operations_total"), 3);
  EXPECT_GE(change("ff_batches_total"), 3) << "each was answered before the next";
  EXPECT_EQ(change("ff_batch_operations_count"), change("ff_batches_total"));
  EXPECT_EQ(change("ff_batch_operations_sum"), change("ff_operations_total"));
  EXPECT_EQ(change("ff_batch_duration_seconds_count"), change("ff_batches_total"));
  EXPECT_GE(change("ff_commit_duration_seconds_count"), 3);
  EXPECT_GT(change("ff_commit_duration_seconds_sum"), 0);
  EXPECT_EQ(change("ff_store_round_trips_total") > 0, GetParam() == "postgres");
  EXPECT_EQ(after.at("ff_operations_queued"), 0);
}

TEST_P(HttpMetrics, ShowWhoWaits) {
  EXPECT_EQ(figure("ff_waiting_claims"), 0);
  auto waiting = engine().submit(ClaimTasks{.worker_id = "w", .wait_ms = 20'000});
  EXPECT_TRUE(eventually([&] { return figure("ff_waiting_claims") == 1; }));
  submitted();
  EXPECT_EQ(waiting.get()->size(), 1u);
  EXPECT_EQ(figure("ff_waiting_claims"), 0);
}

TEST_P(HttpMetrics, CountCyclesOfTheClockAlsoWhenNothingIsDue) {
  const std::string cycles = R"(ff_scanner_cycle_total{scanner="lease_expiry"})";
  const auto before = figure(cycles);
  EXPECT_TRUE(eventually([&] { return figure(cycles) > before + 1; }));
  const auto now = figures();
  for (const auto* rule : {"attempt_timeout", "execution_deadline", "delayed_promoter", "retention_trimmer",
                           "suspension_timeout", "pending_wp_expiry", "budget_reset", "quota_reconciler",
                           "unblock", "dependency_reconciler", "cancel_reconciler", "edge_cancel_dispatcher",
                           "edge_cancel_reconciler", "worker_registry_ttl_sweep"}) {
    const auto labels = R"({scanner=")" + std::string(rule) + "\"}";
    EXPECT_GT(now.at("ff_scanner_cycle_total" + labels), 0) << rule;
    EXPECT_EQ(now.at("ff_scanner_cycle_duration_seconds_count" + labels),
              now.at("ff_scanner_cycle_total" + labels));
  }
  EXPECT_EQ(moved("ff_scanner_processed_total", {}), Moved{});
  submitted(R"(,"delay_until":1)");  // long ago: not delayed at all
  const auto soon = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count() +
                    50;
  submitted(R"(,"delay_until":)" + std::to_string(soon));
  EXPECT_TRUE(
      eventually([&] { return figure(R"(ff_scanner_processed_total{scanner="delayed_promoter"})") == 1; }));
}

// ---- the store ----

TEST_P(HttpMetrics, ShowWhatTheStoreHolds) {
  running();
  submitted();
  submitted();
  put("/v1/workers/i-1",
      R"({"worker_id":"w","namespace":"acme","lanes":["default"],"liveness_ttl_ms":60000})");
  const auto now = figures();
  EXPECT_EQ(now.at(R"(ff_executions{lane="default",public_state="active"})"), 1);
  EXPECT_EQ(now.at(R"(ff_executions{lane="default",public_state="waiting"})"), 2);
  EXPECT_EQ(now.at(R"(ff_queue_depth{lane="default"})"), 2);
  EXPECT_EQ(now.at(R"(ff_workers_alive{namespace="acme"})"), 1);
  EXPECT_EQ(now.at("ff_cancel_backlog_depth"), 0);
}

TEST_P(HttpMetrics, ShowFlowsWhoseCancelIsNotDone) {
  const auto flow = post("/v1/flows/submit", R"({"flow_kind":"k","nodes":[
      {"name":"a","execution_kind":"k"},{"name":"b","execution_kind":"k"}],"edges":[{"from":"a","to":"b"}]})");
  claimed();
  const auto id = FlowId{*Uuid::parse(flow.at("/flow_id"))};
  ASSERT_TRUE(
      engine().call(CancelFlow{.flow_id = id, .cancellation_policy = CancellationPolicy::let_active_finish}));
  EXPECT_EQ(figure("ff_cancel_backlog_depth"), 1) << "one of its members runs";
}

// ---- the text ----

// The names in the first column of the tables of docs/observability.md.
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> types;
  std::ifstream file(FF_DOCS_DIR "/observability.md");
  const std::regex row(R"(^\| `(ff_[a-z_]+)` \| (counter|gauge|histogram) \|.*)");
  for (std::string line; std::getline(file, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, row)) types[parts[1]] = parts[2];
  }
  return types;
}

TEST_P(HttpMetrics, AreThoseOfTheDocumentation) {
  report("complete", running());
  const auto reply = get("/metrics");
  std::map<std::string, std::string> shown;
  std::istringstream text(reply.body);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    std::istringstream words(line.substr(7));
    std::string name;
    std::string type;
    words >> name >> type;
    EXPECT_TRUE(shown.emplace(name, type).second) << "twice: " << name;
  }
  auto expected = documented();
  EXPECT_GT(expected.size(), 40u);
  std::erase_if(expected, [](const auto& entry) { return entry.first.starts_with("ff_otlp_"); });
  EXPECT_EQ(shown, expected);
}

TEST_P(HttpMetrics, KnowNoMadeUpMethodsOrPaths) {
  send({.method = "BREW", .path = "/coffee/1"});
  send({.method = "STIR", .path = "/coffee/2"});
  EXPECT_EQ(moved("ff_http_requests_total", {}),
            (Moved{{R"({method="OTHER",path="unknown",status="404"})", 2}}));
}

// ---- readiness ----

TEST_P(HttpMetrics, TellThatAllIsWell) {
  const auto ready = get("/readyz");
  EXPECT_EQ(ready.status, 200) << ready.body;
  EXPECT_EQ(ready.at("/status"), "ok");
  for (const auto* check : {"accepting", "store", "clock", "queue"}) {
    EXPECT_TRUE(contains(ready.body, R"({"name":")" + std::string(check) + R"(","ok":true,"detail":null})"))
        << ready.body;
  }
}

TEST_P(HttpMetrics, TellThatTheServerShutsDown) {
  api().begin_draining();
  const auto ready = get("/readyz");
  EXPECT_EQ(said(ready), "503 not ready: accepting (unavailable, retryable)");
  EXPECT_EQ(ready.at("/status"), "not_ready");
  EXPECT_EQ(ready.at("/checks/0/name"), "accepting");
  EXPECT_EQ(ready.at("/checks/0/ok"), "false");
  EXPECT_EQ(ready.at("/checks/0/detail"), "The server is shutting down.");
  EXPECT_EQ(ready.at("/checks/1/ok"), "true") << "the store is well";
  EXPECT_EQ(get("/healthz").status, 200);
}

// A clock that cannot read the time: it keeps trying, and never finishes a round.
struct Trouble {
  std::atomic<bool> is_on{false};
  std::atomic<bool> learns{false};
  std::atomic<std::thread::id> clock_thread{};

  std::int64_t now() {
    const auto me = std::this_thread::get_id();
    if (learns) clock_thread = me;
    if (is_on && me == clock_thread.load()) throw std::runtime_error("nobody knows what time it is");
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};
const auto kTrouble = std::make_shared<Trouble>();

class HttpClock : public HttpTest {
 protected:
  HttpClock()
      : HttpTest(
            {.clock_interval = std::chrono::milliseconds(50), .now_ms = [] { return kTrouble->now(); }}) {}
};
INSTANTIATE_TEST_SUITE_P(Memory, HttpClock, ::testing::Values("memory"));

TEST_P(HttpClock, TellsThatItHasNotComeRound) {
  kTrouble->learns = true;  // no other thread asks for the time now
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kTrouble->learns = false;
  EXPECT_EQ(get("/readyz").status, 200);
  kTrouble->is_on = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(11'000));
  const auto ready = get("/readyz");
  EXPECT_EQ(said(ready), "503 not ready: clock (unavailable, retryable)");
  EXPECT_TRUE(contains(ready.at("/checks/2/detail"), "has not finished a look for 1")) << ready.body;
  EXPECT_TRUE(contains(ready.at("/checks/2/detail"), "The log tells why.")) << ready.body;
  EXPECT_FALSE(contains(ready.body, "nobody knows")) << "what a library says is not for everybody";
  EXPECT_EQ(get("/livez").status, 200);
  kTrouble->is_on = false;
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  EXPECT_EQ(get("/readyz").status, 200);
}

}  // namespace
}  // namespace flowfabric::tests
