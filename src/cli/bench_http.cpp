// The lifecycle over HTTP. Every worker is one connection that submits, claims and completes `--in-flight`
// tasks at once; one at a time with single calls.
#include <fmt/format.h>

#include <random>
#include <thread>

#include "api/json.h"
#include "cli/bench.h"
#include "http/client.h"

namespace flowfabric::cli {

namespace {

struct Shared {
  const LifecycleOptions& options;
  std::string lane;
  std::atomic<std::int64_t> next_task{0};
  std::atomic<std::int64_t> completed{0};
  std::atomic<std::int64_t> refused{0};
  std::mutex mutex;
  std::string first_refusal;
};

class HttpWorker {
 public:
  HttpWorker(Shared& shared, int number)
      : shared_(shared),
        name_(fmt::format("worker-{}", number)),
        execution_(fmt::format(R"({{"execution_kind":"bench","lane_id":"{}","input":"{}"}})", shared.lane,
                               std::string(static_cast<std::size_t>(shared.options.payload_bytes), 'x'))) {}

  void run() {
    http::ClientOptions options;
    if (const char* token = std::getenv("FF_API_TOKEN")) options.token = token;
    auto client = http::Client::connect(shared_.options.store, options);
    if (!client) return refuse(client.error().to_string());
    client_ = *std::move(client);
    while (shared_.completed < shared_.options.tasks && shared_.refused == 0) {
      submit();
      complete(claim());
    }
  }

  std::vector<std::uint32_t> submit_latency;
  std::vector<std::uint32_t> start_latency;  // of a claim that found something
  std::vector<std::uint32_t> complete_latency;

 private:
  bool is_single() const { return shared_.options.in_flight == 1; }

  void refuse(const std::string& why) {
    ++shared_.refused;
    std::lock_guard lock(shared_.mutex);
    if (shared_.first_refusal.empty()) shared_.first_refusal = why;
  }

  // Returns an empty text if it was refused.
  std::string post(const char* path, std::string body, std::vector<std::uint32_t>& latency) {
    const auto began = SteadyClock::now();
    auto answer = client_->send({.method = "POST",
                                 .path = path,
                                 .headers = {{"content-type", "application/json"}},
                                 .body = std::move(body)});
    latency.push_back(latency_since(began));
    if (!answer) {
      refuse(answer.error().to_string());
      return "";
    }
    if (answer->status / 100 != 2 || answer->body.find("\"error\":{") != std::string::npos) {
      refuse(answer->body);
      return "";
    }
    return std::move(answer->body);
  }

  void submit() {
    const auto most = shared_.options.in_flight;
    const auto first = shared_.next_task.fetch_add(most);
    const auto count = std::min<std::int64_t>(most, shared_.options.tasks - first);
    if (count <= 0) return;
    if (is_single()) {
      post("/v1/executions", execution_, submit_latency);
      return;
    }
    std::string body = R"({"executions":[)";
    for (std::int64_t i = 0; i < count; ++i) body += (i > 0 ? "," : "") + execution_;
    post("/v1/executions/bulk", body + "]}", submit_latency);
  }

  // Claims tasks. Returns the id and the lease of each as JSON, as reports need them.
  std::vector<std::string> claim() {
    std::vector<std::string> tasks;
    const auto answer =
        post("/v1/tasks/claim",
             fmt::format(R"({{"worker_id":"{}","lanes":["{}"],"max_tasks":{},"wait_ms":100}})", name_,
                         shared_.lane, shared_.options.in_flight),
             start_latency);
    if (answer.empty()) return tasks;
    const auto parsed = api::Json::parse(answer);
    if (!parsed) return tasks;
    for (const auto task : *parsed->root().begin()) {
      std::string keys;
      for (const auto member : task) {
        if (member.key() != "execution_id" && member.key() != "lease") continue;
        keys += fmt::format(R"(,"{}":{})", member.key(), member.compact());
      }
      tasks.push_back(std::move(keys));
    }
    // A claim that waited in vain measures the end of the work.
    if (tasks.empty()) start_latency.pop_back();
    return tasks;
  }

  void complete(const std::vector<std::string>& tasks) {
    if (tasks.empty()) return;
    std::string body;
    for (const auto& keys : tasks) {
      body += (body.empty() ? "" : ",") + std::string(R"({"op":"complete","result":"done")") + keys + "}";
    }
    const auto answer = is_single()
                            ? post("/v1/tasks/complete", body, complete_latency)
                            : post("/v1/tasks/report", R"({"reports":[)" + body + "]}", complete_latency);
    if (!answer.empty()) shared_.completed += static_cast<std::int64_t>(tasks.size());
  }

  Shared& shared_;
  const std::string name_;
  const std::string execution_;
  std::unique_ptr<http::Client> client_;
};

// The lane holds nothing but completed tasks, and all of them.
Result<void> verify(const Shared& shared) {
  http::ClientOptions options;
  if (const char* token = std::getenv("FF_API_TOKEN")) options.token = token;
  auto client = http::Client::connect(shared.options.store, options);
  if (!client) return std::unexpected(client.error());
  const auto lanes = (*client)->send({.path = "/v1/lanes", .query = "limit=1000"});
  if (!lanes) return std::unexpected(lanes.error());
  const auto wanted = fmt::format(R"("lane_id":"{}","state":"active","counts":{{"completed":{}}})",
                                  shared.lane, shared.options.tasks);
  if (lanes->body.find(wanted) == std::string::npos) {
    return wrong("the lane's counts do not say that everything is completed");
  }
  return {};
}

}  // namespace

Result<BenchReport> bench_lifecycle_over_http(const LifecycleOptions& options) {
  Shared shared{.options = options, .lane = fmt::format("bench-{:x}", std::random_device{}())};
  std::vector<std::unique_ptr<HttpWorker>> workers;
  for (int i = 0; i < options.workers; ++i) workers.push_back(std::make_unique<HttpWorker>(shared, i));
  const auto start = SteadyClock::now();
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (auto& thread : threads) thread.join();
  const double seconds = seconds_since(start);
  if (shared.refused > 0) {
    return fail_with(ErrorCode::unavailable, shared.first_refusal,
                     "The server refused work during the benchmark; its figures would mean nothing.");
  }
  if (auto ok = verify(shared); !ok) return std::unexpected(ok.error());
  std::vector<std::uint32_t> submit;
  std::vector<std::uint32_t> claim;
  std::vector<std::uint32_t> complete;
  for (const auto& worker : workers) {
    submit.insert(submit.end(), worker->submit_latency.begin(), worker->submit_latency.end());
    claim.insert(claim.end(), worker->start_latency.begin(), worker->start_latency.end());
    complete.insert(complete.end(), worker->complete_latency.begin(), worker->complete_latency.end());
  }
  return BenchReport{.scenario = "lifecycle over HTTP",
                     .store = options.store,
                     .tasks = options.tasks,
                     .workers = options.workers,
                     .in_flight = options.in_flight,
                     .payload_bytes = options.payload_bytes,
                     .seconds = seconds,
                     .submit = percentiles(submit),
                     .start = percentiles(claim),
                     .complete = percentiles(complete)};
}

}  // namespace flowfabric::cli
