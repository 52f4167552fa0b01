// A server at its limits, or one that has failed: words for its clients, and words for its log.
#include <mutex>
#include <new>
#include <thread>

#include "api/call.h"
#include "http_checks.h"

namespace flowfabric::tests {
namespace {

// ---- limits of the edge -----------------------------------------------------------------------------------

class HttpRoom : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(Memory, HttpRoom, ::testing::Values("memory"));

TEST_P(HttpRoom, AnAddressThatAsksTooMuchIsToldToComeLater) {
  serve({}, {.max_requests_per_address = 1, .trusted_networks = {}});
  std::thread waits([url = url()] {
    http::Client::connect(url).value()->send(
        {.method = "POST",
         .path = "/v1/tasks/claim",
         .headers = {json_type()},
         .body = R"({"worker_id":"w","lanes":["none"],"wait_ms":3000})"});
  });
  EXPECT_TRUE(eventually([&] { return in_flight() == 1; }));
  const auto refused = post("/v1/executions", R"({"execution_kind":"k"})");
  EXPECT_EQ(said(refused), "429 resource_exhausted");
  EXPECT_EQ(refused.at("/code"), "resource_exhausted");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(refused.at("/request_id"), refused.header("x-request-id"));
  EXPECT_EQ(get("/metrics").status, 429);
  for (const auto* path : {"/livez", "/readyz", "/healthz"}) EXPECT_EQ(get(path).status, 200) << path;
  waits.join();
  EXPECT_TRUE(eventually([&] { return in_flight() == 0; }));
  EXPECT_EQ(post("/v1/executions", R"({"execution_kind":"k"})").status, 201);
  EXPECT_TRUE(contains(get("/metrics").body, "ff_http_refusals_total{reason=\"address_busy\"} 2\n"));
}

TEST_P(HttpRoom, ABodyForWhichThereIsNoMemoryIsToComeLater) {
  serve({}, {.max_body_memory = 100'000});
  const auto with = [&](std::size_t size) {
    return post("/v1/executions", R"({"execution_kind":"k","input":")" + std::string(size, 'x') + R"("})");
  };
  const auto refused = with(150'000);
  EXPECT_EQ(said(refused), "503 resource_exhausted");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_TRUE(contains(refused.at("/detail"), "Try again later")) << refused.body;
  EXPECT_EQ(with(50'000).status, 201);
  EXPECT_TRUE(contains(get("/metrics").body, "ff_http_refusals_total{reason=\"no_memory\"} 1\n"));
}

// ---- failures ---------------------------------------------------------------------------------------------

const std::string kPrivate = "connection to server at \"10.0.0.5\", port 5432 failed";

class HttpFailures : public HttpTest {
 protected:
  // The server's store has no time, and says why.
  HttpFailures()
      : HttpTest({.clock_interval = std::chrono::milliseconds(0), .now_ms = [] { return now(); }}) {
    serve({.failure_log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }});
  }
  ~HttpFailures() override { fails_ = false; }

  static std::int64_t now() {
    if (fails_) throw std::runtime_error(kPrivate);
    return 1'767'225'600'000;
  }
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

  static inline std::atomic<bool> fails_{false};
  std::mutex mutex_;
  std::vector<std::string> lines_;
};
INSTANTIATE_TEST_SUITE_P(Memory, HttpFailures, ::testing::Values("memory"));

TEST_P(HttpFailures, AreDescribedInTheLogOnly) {
  fails_ = true;
  const auto failed = post("/v1/executions", R"({"execution_kind":"k"})");
  EXPECT_EQ(said(failed), "503 backend op unavailable (unavailable, final)");
  EXPECT_FALSE(contains(failed.body, "10.0.0.5")) << failed.body;
  EXPECT_EQ(failed.at("/detail"), "The engine could not run the operation; nothing was changed. Repeat it.");
  EXPECT_EQ(failed.header("retry-after"), "1");
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(contains(lines().front(), kPrivate)) << lines().front();
  EXPECT_TRUE(contains(lines().front(), failed.at("/request_id") + ", POST /v1/executions, failed"))
      << lines().front();
  const auto many = post("/v1/executions/bulk", R"({"executions":[{"execution_kind":"k"}]})");
  EXPECT_EQ(many.at("/results/0/error/status"), "503") << many.body;
  EXPECT_FALSE(contains(many.body, "10.0.0.5")) << many.body;
  const auto ready = get("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_FALSE(contains(ready.body, "10.0.0.5")) << ready.body;
}

TEST_P(HttpFailures, FillTheLogOnlySoFar) {
  fails_ = true;
  for (int i = 0; i < 300; ++i) post("/v1/executions", R"({"execution_kind":"k"})");
  EXPECT_GT(lines().size(), 100u);
  EXPECT_LT(lines().size(), 250u);
}

// Whatever is thrown while a request is being answered.
TEST_P(HttpFailures, OfTheServerItselfAreNotTold) {
  std::vector<std::string> told;
  api::Services services(engine(), {.failure_log = [&](const std::string& line) { told.push_back(line); }});
  const auto answer_to = [&](const std::function<void()>& thrown) {
    http::Response response;
    const auto call = std::make_shared<api::Call>(services, std::make_shared<http::Exchange>(),
                                                  [&](http::Response given) { response = std::move(given); });
    call->request_id = "r-1";
    call->guard(thrown);
    return Reply{response.status, response.body, response.headers};
  };
  const auto failed = answer_to([] { throw std::runtime_error("std::map::at " + kPrivate); });
  EXPECT_EQ(said(failed), "500 invariant_violation (<missing>, final)") << failed.body;
  EXPECT_FALSE(contains(failed.body, "std::") || contains(failed.body, "10.0.0.5")) << failed.body;
  EXPECT_EQ(failed.at("/request_id"), "r-1");
  const auto starved = answer_to([] { throw std::bad_alloc(); });
  EXPECT_EQ(said(starved), "503 backend op unavailable (unavailable, final)");
  EXPECT_FALSE(contains(starved.body, "bad_alloc")) << starved.body;
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(contains(told.front(), kPrivate)) << told.front();
}

// Every code of the table that is answered by 5xx.
TEST_P(HttpFailures, ShowNoDetailWhateverTheirCode) {
  int failures = 0;
  for (int i = 0; i <= static_cast<int>(ErrorCode::timeout); ++i) {
    const Error error{static_cast<ErrorCode>(i), kPrivate, "Repeat the call."};
    if (api::status_of(error) < 500) continue;
    ++failures;
    const auto body = api::error_body(error, "r-1");
    EXPECT_FALSE(contains(body, "10.0.0.5")) << body;
    EXPECT_TRUE(contains(body, R"("detail":"Repeat the call.","request_id":"r-1")")) << body;
  }
  EXPECT_GE(failures, 7);
}

}  // namespace
}  // namespace flowfabric::tests
