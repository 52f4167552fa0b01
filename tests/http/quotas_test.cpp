// Quotas over HTTP (07 §5.12; 05 §6, §7; 09 §5).
#include "http_checks.h"

namespace flowfabric::tests {
namespace {

using Names = std::vector<std::string>;

const std::string kQuota = "9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f";
const std::string kPath = "/v1/quotas/" + kQuota;

class HttpQuotas : public HttpTest {
 protected:
  Reply create(int per_window, int concurrent, const std::string& id = kQuota) {
    return post("/v1/quotas", R"({"quota_policy_id":")" + id +
                                  R"(","window_seconds":3600,"max_requests_per_window":)" +
                                  std::to_string(per_window) + R"(,"max_concurrent":)" +
                                  std::to_string(concurrent) + R"(,"now":1767225600000})");
  }
  std::string under_quota() { return submitted(R"(,"policy":{"quota_policy_id":")" + kQuota + R"("})"); }
  std::size_t claim_all() {
    return post("/v1/tasks/claim", R"({"worker_id":"w","max_tasks":9})").size("/tasks");
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpQuotas, kHttpStores, http_store_name);

TEST_P(HttpQuotas, AreCreatedOnce) {
  const auto created = create(100, 10);
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.body, R"({"Created":{"quota_policy_id":")" + kQuota + "\"}}");
  const auto again = create(5, 5);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"AlreadySatisfied":{"quota_policy_id":")" + kQuota + "\"}}");
  EXPECT_EQ(get(kPath).at("/max_requests_per_window"), "100") << "nothing has changed";
}

TEST_P(HttpQuotas, OfWrongShapeAreRefused) {
  const std::string id = R"("quota_policy_id":")" + kQuota + "\"";
  for (const auto& body :
       {std::string(R"({"window_seconds":60,"max_requests_per_window":1,"max_concurrent":1,"now":1})"),
        std::string(
            R"({"quota_policy_id":"x","window_seconds":60,"max_requests_per_window":1,"max_concurrent":1})"),
        "{" + id + R"(,"window_seconds":"60","max_requests_per_window":1,"max_concurrent":1,"now":1})",
        "{" + id + R"(,"window_seconds":60,"max_requests_per_window":-1,"max_concurrent":1,"now":1})",
        "{" + id + R"(,"window_seconds":60,"max_requests_per_window":1,"max_concurrent":1.0,"now":1})",
        "{" + id + R"(,"window_seconds":60,"max_requests_per_window":1,"max_concurrent":1,"now":"1"})"}) {
    expect_shape_refused(post("/v1/quotas", body), body);
  }
  EXPECT_EQ(get("/v1/quotas").size("/quotas"), 0u);
}

TEST_P(HttpQuotas, ThatAreNotThereAreNotFound) {
  const auto attach = R"({"scope_type":"lane","scope_id":"x"})";
  for (const auto& reply : {get(kPath), remove(kPath), post(kPath + "/attach", attach)}) {
    EXPECT_EQ(said(reply), "404 not found: quota_policy");
    EXPECT_EQ(reply.at("/code"), "quota_policy_not_found");
  }
  EXPECT_EQ(get("/v1/quotas/nonsense").status, 400);
}

TEST_P(HttpQuotas, CapWhatRunsAtOnce) {
  create(0, 1);
  under_quota();
  under_quota();
  const auto task = claimed();
  EXPECT_EQ(claim_all(), 0u);
  const auto seen = get(kPath);
  EXPECT_EQ(seen.at("/active"), "1");
  EXPECT_EQ(seen.at("/max_concurrent"), "1");
  const auto waiting = get("/v1/executions?state=rate_limited");
  ASSERT_EQ(waiting.size("/executions"), 1u);
  const auto id = waiting.at("/executions/0/execution_id");
  EXPECT_EQ(get("/v1/executions/" + id + "/why").at("/reasons/0/code"), "waiting_for_quota");
  report("complete", task);
  EXPECT_EQ(claimed().execution_id, id) << "its place is free";
}

TEST_P(HttpQuotas, CapWhatStartsInAWindow) {
  create(2, 0);
  for (int i = 0; i < 3; ++i) under_quota();
  EXPECT_EQ(claim_all(), 2u);
  EXPECT_EQ(get(kPath).at("/admitted_in_window"), "2");
  EXPECT_EQ(get("/v1/executions?state=rate_limited").size("/executions"), 1u);
}

TEST_P(HttpQuotas, ThatAllowEverythingAreNone) {
  create(0, 0);
  for (int i = 0; i < 3; ++i) under_quota();
  EXPECT_EQ(claim_all(), 3u);
}

TEST_P(HttpQuotas, AreListed) {
  EXPECT_EQ(get("/v1/quotas").body, R"({"quotas":[],"next_cursor":null})");
  create(1, 1);
  create(2, 2, "9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e30");
  const auto first = get("/v1/quotas?limit=1");
  ASSERT_EQ(first.size("/quotas"), 1u);
  EXPECT_EQ(first.keys("/quotas/0"), get(kPath).keys()) << "the shape of one";
  const auto second = get("/v1/quotas?limit=1&cursor=" + first.at("/next_cursor"));
  ASSERT_EQ(second.size("/quotas"), 1u);
  EXPECT_NE(first.at("/quotas/0/quota_policy_id"), second.at("/quotas/0/quota_policy_id"));
  EXPECT_EQ(second.at("/next_cursor"), "null");
  for (const auto* query : {"limit=0", "limit=1001", "cursor=x"}) {
    EXPECT_EQ(get(std::string("/v1/quotas?") + query).status, 400) << query;
  }
}

TEST_P(HttpQuotas, AreAttachedAndDetached) {
  create(0, 1);
  const auto lane = R"({"scope_type":"lane","scope_id":"narrow"})";
  EXPECT_EQ(post(kPath + "/attach", lane).body, lane);
  EXPECT_EQ(said(post(kPath + "/attach", lane)),
            "409 quota_attach_conflict: QuotaAttachConflict (quota_attach_conflict, final)");
  for (int i = 0; i < 2; ++i) submitted(R"(,"lane_id":"narrow")");
  const auto all = R"({"worker_id":"w","max_tasks":9,"lanes":["narrow"]})";
  EXPECT_EQ(post("/v1/tasks/claim", all).size("/tasks"), 1u);
  EXPECT_EQ(post(kPath + "/detach", lane).status, 200);
  claimed("narrow");
}

TEST_P(HttpQuotas, AreDeleted) {
  create(0, 1);
  under_quota();
  under_quota();
  EXPECT_EQ(claim_all(), 1u);
  EXPECT_EQ(remove(kPath).status, 204);
  EXPECT_EQ(get(kPath).status, 404);
  claimed();
}

}  // namespace
}  // namespace flowfabric::tests
