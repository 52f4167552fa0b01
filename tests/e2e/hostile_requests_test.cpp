// Requests that ask for trouble cost little: processor time and memory of the server are measured for each,
// it still answers others meanwhile, and is unchanged afterwards.
#include "e2e/hostile_requests.h"

#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "e2e/serving.h"
#include "e2e/waiting.h"
#include "http/client.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;

// The allowed cost of one request. The test fails at four times that, because machines and builds differ.
constexpr milliseconds kMostTime{250};
constexpr std::size_t kMostMegabytes = 64;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTolerance = 40;
#else
constexpr int kTolerance = 4;
#endif
constexpr milliseconds kAtOnce{1000};  // for a question of health, on a machine that is busy with tests

// The kernel's figures of a process, beyond those of `Serving`.
class Usage {
 public:
  explicit Usage(pid_t process) : folder_("/proc/" + std::to_string(process)) {}

  // The most memory since `forget_peak`, in bytes.
  std::size_t peak() const { return status("VmHWM:") * 1024; }
  std::size_t threads() const { return status("Threads:"); }
  void forget_peak() const { std::ofstream(folder_ + "/clear_refs") << "5"; }
  std::size_t descriptors() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_ + "/fd")) ++count;
    return count;
  }

 private:
  std::size_t status(const std::string& name) const {
    std::ifstream file(folder_ + "/status");
    for (std::string word; file >> word;) {
      std::size_t value = 0;
      if (word == name && file >> value) return value;
    }
    return 0;
  }

  std::string folder_;
};

// Asks whether the server lives, all the time, and remembers the longest it took.
class Visitor {
 public:
  explicit Visitor(const std::string& url)
      : client_(*http::Client::connect(url)), thread_([this] { run(); }) {}
  ~Visitor() {
    stop_ = true;
    thread_.join();
  }
  milliseconds take_longest() { return milliseconds(longest_.exchange(0)); }
  bool was_answered() const { return answered_; }

 private:
  void run() {
    while (!stop_) {
      const Stopwatch watch;
      const auto answer = client_->send({.path = "/livez"});
      if (!answer || answer->status != 200) answered_ = false;
      const auto taken = watch.elapsed().count();
      if (taken > longest_) longest_ = taken;
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  std::unique_ptr<http::Client> client_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> answered_{true};
  std::atomic<milliseconds::rep> longest_{0};
  std::thread thread_;
};

class HostileRequests : public testing::Test {
 protected:
  HostileRequests() {
    // Memory goes back to the system at once, so that each request is seen to take its own.
    setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0", 1);
    server_.emplace("sqlite:" + folder_.file("jobs.db"));
    unsetenv("MALLOC_CONF");
    client_ = *http::Client::connect(server_->url());
    usage_.emplace(server_->process());
    task_ = make_task();
  }

  http::Response ask(const std::string& method, const std::string& target, std::string body = "") {
    http::Request request{
        .method = method, .path = target.substr(0, target.find('?')), .body = std::move(body)};
    if (const auto mark = target.find('?'); mark != target.npos) request.query = target.substr(mark + 1);
    if (!request.body.empty()) request.headers.emplace_back("content-type", "application/json");
    const auto answer = client_->send(request);
    return answer ? *answer : http::Response{.status = 0, .body = error_text(answer.error())};
  }
  static std::string error_text(const Error& error) { return error.detail + " " + error.advice; }

  // The text between the first `begin` and the next `end`.
  static std::string between(const std::string& text, const std::string& begin, const std::string& end) {
    const auto from = text.find(begin) + begin.size();
    return text.substr(from, text.find(end, from) - from);
  }
  HostileTask make_task() {
    ask("POST", "/v1/executions", R"({"execution_kind":"k","lane_id":"task"})");
    const auto claimed =
        ask("POST", "/v1/tasks/claim", R"({"worker_id":"w","lanes":["task"],"lease_ttl_ms":600000})").body;
    return {between(claimed, R"("execution_id":")", "\""), "{" + between(claimed, R"("lease":{)", "}") + "}"};
  }

  // The number of stored executions by state.
  std::string stored() { return ask("GET", "/v1/executions?limit=1000").body; }

  // Waits until no request is in progress.
  void settle() {
    auto before = server_->processor_time();
    wait_until(
        [&] {
          std::this_thread::sleep_for(milliseconds(30));
          const auto now = server_->processor_time();
          return std::exchange(before, now) == now;
        },
        milliseconds(20'000));
  }

  // Runs it, and measures what it costs.
  void measure(const std::string& name, const std::string& wanted, const std::function<int()>& send) {
    SCOPED_TRACE(name);
    const auto before = stored();
    const auto descriptors = usage_->descriptors();
    const auto threads = usage_->threads();
    settle();
    usage_->forget_peak();
    const auto memory = server_->memory();
    const auto time = server_->processor_time();
    milliseconds longest{};
    int status = 0;
    {
      Visitor visitor(server_->url());
      status = send();
      longest = visitor.take_longest();
      EXPECT_TRUE(visitor.was_answered());
    }
    settle();
    const auto peak = usage_->peak();
    const auto megabytes = peak > memory ? (peak - memory) >> 20 : 0;
    const auto spent = server_->processor_time() - time;
    EXPECT_EQ(std::to_string(status).substr(0, wanted.size()), wanted);
    EXPECT_LE(spent, kMostTime * kTolerance);
    EXPECT_LE(megabytes, kMostMegabytes * kTolerance);
    EXPECT_LE(longest, kAtOnce);
    std::cout << spent.count() << " ms, " << megabytes << " MiB, /livez " << longest.count()
              << " ms: " << name << " (" << status << ")"
              << (spent > kMostTime || megabytes > kMostMegabytes ? " <- too much" : "") << "\n";
    EXPECT_EQ(ask("GET", "/readyz").status, 200);
    if (status >= 400) {
      EXPECT_EQ(stored(), before);
    }
    EXPECT_TRUE(wait_until([&] { return usage_->descriptors() <= descriptors; }, milliseconds(10'000)))
        << usage_->descriptors() << " descriptors, there were " << descriptors;
    EXPECT_LE(usage_->threads(), threads);
  }

  void measure(const std::vector<HostileRequest>& requests) {
    for (const auto& request : requests) {
      auto path = request.path;
      if (const auto at = path.find("{task}"); at != path.npos) path.replace(at, 6, task_.execution_id);
      const auto body = request.body ? request.body(task_) : "";
      measure(request.name, request.status, [&] {
        const auto answer = ask(request.method, path, body);
        if (answer.status == 0) ADD_FAILURE() << answer.body;
        return answer.status;
      });
    }
  }

  // The status of the first answer to these bytes; 0: none.
  int send_bytes(const std::string& bytes) const {
    const auto port = server_->url().substr(server_->url().rfind(':') + 1);
    addrinfo* found = nullptr;
    const addrinfo hints{.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    if (getaddrinfo("127.0.0.1", port.c_str(), &hints, &found) != 0) return 0;
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool open = connect(connection, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    std::string answer;
    if (open) {
      // The server may refuse, and close, before it has all of it.
      std::thread sender([&] {
        for (std::size_t sent = 0; sent < bytes.size();) {
          const auto n = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
          if (n <= 0) break;
          sent += static_cast<std::size_t>(n);
        }
      });
      std::array<char, 4096> part{};
      while (answer.find("\r\n") == answer.npos) {
        const auto n = recv(connection, part.data(), part.size(), 0);
        if (n <= 0) break;
        answer.append(part.data(), static_cast<std::size_t>(n));
      }
      shutdown(connection, SHUT_RDWR);
      sender.join();
    }
    close(connection);
    return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
  }

  tests::TemporaryFolder folder_;
  std::optional<Serving> server_;
  std::unique_ptr<http::Client> client_;
  std::optional<Usage> usage_;
  HostileTask task_;
};

TEST_F(HostileRequests, ExecutionsCostLittle) {
  measure(hostile_executions());
}

TEST_F(HostileRequests, BulksCostLittle) {
  measure(hostile_bulks());
}

TEST_F(HostileRequests, FlowsCostLittle) {
  measure(hostile_flows());
}

TEST_F(HostileRequests, ReportsCostLittle) {
  measure(hostile_reports());
}

TEST_F(HostileRequests, SettingsCostLittle) {
  measure(hostile_settings());
}

TEST_F(HostileRequests, QuestionsCostLittle) {
  measure(hostile_questions());
}

TEST_F(HostileRequests, BytesCostLittle) {
  for (const auto& each : hostile_bytes()) {
    measure(each.name, each.status, [&] { return send_bytes(each.bytes); });
  }
}

}  // namespace
}  // namespace flowfabric::e2e
