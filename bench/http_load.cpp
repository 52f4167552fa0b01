// How long do callers wait while many are connected? Most connections submit, one in four works: claims what
// there is, and reports it completed in one request. Every connection is kept, and sends at times that are
// fixed in advance; a request that has to wait for the one before it counts from when it should have been
// sent.
//
//   http_load URL PID SECONDS [CONNECTIONS [SUBMITS_PER_SECOND]]
//       e.g. http_load http://127.0.0.1:9090 $(pidof flowfabric) 60 256 1000
//
// PID is the server's, whose resident memory is printed every tenth of the time. Ends with 1 if a request
// failed.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "api/json.h"
#include "cli/bench.h"
#include "http/client.h"

namespace {

using namespace flowfabric;
using cli::SteadyClock;

constexpr auto kPause = std::chrono::milliseconds(250);  // between two claims of a worker
constexpr int kMaxTasks = 50;

struct Plan {
  std::string url;
  std::string lane{fmt::format("load-{}", getpid())};
  int submitters{};
  int workers{};
  std::chrono::microseconds submit_every{};  // of one connection
  SteadyClock::time_point start;
  SteadyClock::time_point end;
};

struct Outcome {
  std::vector<std::uint32_t> submit, claim, report;  // in microseconds
  std::int64_t completed{0};
  std::int64_t errors{0};
  std::string first_error;

  void add(Outcome& other) {
    for (const auto& [to, from] :
         {std::pair{&submit, &other.submit}, {&claim, &other.claim}, {&report, &other.report}})
      to->insert(to->end(), from->begin(), from->end());
    completed += other.completed;
    errors += other.errors;
    if (first_error.empty()) first_error = other.first_error;
  }
};

class Connection {
 public:
  Connection(const Plan& plan, std::string name) : plan_(plan), name_(std::move(name)) {}
  Outcome outcome;

  void submit_on(SteadyClock::time_point first) {
    const auto body = fmt::format(R"({{"execution_kind":"load","lane_id":"{}","input":"{}"}})", plan_.lane,
                                  std::string(256, 'x'));
    for (auto due = first; due < plan_.end; due += plan_.submit_every) {
      std::this_thread::sleep_until(due);
      ask("/v1/executions", body, due, outcome.submit);
    }
  }

  void work_on(SteadyClock::time_point first) {
    const auto claim =
        fmt::format(R"({{"worker_id":"{}","lanes":["{}"],"max_tasks":{}}})", name_, plan_.lane, kMaxTasks);
    for (auto due = first; due < plan_.end; due += kPause) {
      std::this_thread::sleep_until(due);
      const auto tasks = ask("/v1/tasks/claim", claim, due, outcome.claim);
      const auto reports = reports_of(tasks);
      if (!reports.empty())
        ask("/v1/tasks/report", R"({"reports":[)" + reports + "]}", SteadyClock::now(), outcome.report);
    }
  }

 private:
  std::string ask(const char* path, std::string body, SteadyClock::time_point since,
                  std::vector<std::uint32_t>& latency) {
    if (client_ == nullptr) {
      auto connected = http::Client::connect(plan_.url);
      if (!connected) return failed(connected.error().to_string());
      client_ = *std::move(connected);
    }
    auto answer = client_->send({.method = "POST",
                                 .path = path,
                                 .headers = {{"content-type", "application/json"}},
                                 .body = std::move(body)});
    latency.push_back(cli::latency_since(since));
    if (!answer) return failed(answer.error().to_string());
    if (answer->status / 100 != 2 || answer->body.find("\"error\":{") != std::string::npos)
      return failed(answer->body);
    return std::move(answer->body);
  }
  std::string failed(const std::string& why) {
    ++outcome.errors;
    if (outcome.first_error.empty()) outcome.first_error = why;
    return "";
  }

  std::string reports_of(const std::string& claimed) {
    std::string reports;
    const auto parsed = api::Json::parse(claimed);
    if (!parsed) return reports;
    for (const auto task : *parsed->root().begin()) {
      reports += fmt::format(R"({}{{"op":"complete")", reports.empty() ? "" : ",");
      for (const auto member : task) {
        if (member.key() == "execution_id" || member.key() == "lease")
          reports += fmt::format(R"(,"{}":{})", member.key(), member.compact());
      }
      reports += "}";
      ++outcome.completed;
    }
    return reports;
  }

  const Plan& plan_;
  const std::string name_;
  std::unique_ptr<http::Client> client_;
};

double resident_mib(const std::string& pid) {
  std::ifstream statm("/proc/" + pid + "/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void watch(const Plan& plan, const std::string& pid) {
  for (int tenth = 1; tenth <= 10; ++tenth) {
    std::this_thread::sleep_until(plan.start + (plan.end - plan.start) * tenth / 10);
    fmt::print("{:>3} %: {:.1f} MiB resident\n", tenth * 10, resident_mib(pid));
  }
}

Outcome run(const Plan& plan, const std::string& pid) {
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::thread> threads;
  const auto begin = [&](int number, int of, SteadyClock::duration every, auto what) {
    auto& connection =
        *connections.emplace_back(std::make_unique<Connection>(plan, fmt::format("w{}", number)));
    // Evenly spread over the time between two requests.
    const auto first = plan.start + every * number / of;
    threads.emplace_back([&connection, what, first] { (connection.*what)(first); });
  };
  for (int i = 0; i < plan.submitters; ++i)
    begin(i, plan.submitters, plan.submit_every, &Connection::submit_on);
  for (int i = 0; i < plan.workers; ++i) begin(i, plan.workers, kPause, &Connection::work_on);
  watch(plan, pid);
  for (auto& thread : threads) thread.join();
  Outcome all;
  for (const auto& connection : connections) all.add(connection->outcome);
  return all;
}

void print(const char* what, std::vector<std::uint32_t>& microseconds, double seconds) {
  const auto count = microseconds.size();
  const auto shown = cli::percentiles(microseconds);
  fmt::print("{:<7} {:>8.0f}/s  p50 {:.2f} ms  p99 {:.2f} ms  worst {:.2f} ms\n", what,
             static_cast<double>(count) / seconds, shown.p50, shown.p99,
             count == 0 ? 0.0 : static_cast<double>(microseconds.back()) / 1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    fmt::print(stderr, "usage: http_load URL PID SECONDS [CONNECTIONS [SUBMITS_PER_SECOND]]\n");
    return 2;
  }
  const double seconds = std::strtod(argv[3], nullptr);
  const int connections = argc > 4 ? std::atoi(argv[4]) : 256;
  const double rate = argc > 5 ? std::strtod(argv[5], nullptr) : 1000;
  if (seconds <= 0 || connections < 4 || rate <= 0) {
    fmt::print(stderr, "http_load: give a time, at least 4 connections, and a rate.\n");
    return 2;
  }
  Plan plan{.url = argv[1], .submitters = connections - connections / 4, .workers = connections / 4};
  plan.submit_every = std::chrono::microseconds(static_cast<std::int64_t>(plan.submitters / rate * 1e6));
  plan.start = SteadyClock::now() + std::chrono::milliseconds(500);  // until all threads are there
  plan.end = plan.start + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  auto all = run(plan, argv[2]);
  print("submit", all.submit, seconds);
  print("claim", all.claim, seconds);
  print("report", all.report, seconds);
  fmt::print("{} connections, {} completed, {} errors{}{}\n", connections, all.completed, all.errors,
             all.first_error.empty() ? "" : ": ", all.first_error);
  return all.errors == 0 ? 0 : 1;
}
