// The end of `flowfabric serve`: acknowledged operations are stored, every request is answered or refused,
// and it ends in time, whatever clients do.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <fstream>
#include <functional>
#include <set>

#include "e2e/serving.h"
#include "e2e/waiting.h"
#include "flowfabric/engine.h"
#include "http/client.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

http::Request post(const std::string& path, std::string body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body)};
}

// One client and its answers. Each ends when the server does.
class Caller {
 public:
  explicit Caller(const std::string& url) : client_(http::Client::connect(url)) {}

  // Absent: refused, which is the end. What is neither an answer nor a refusal is remembered.
  std::optional<json::value> ask(const http::Request& request) {
    if (!client_) return std::nullopt;
    const auto answer = (*client_)->send(request);
    if (!answer) {
      const auto& advice = answer.error().advice;
      const bool is_refusal = advice.find("without an answer") != advice.npos ||
                              advice.find("Cannot connect") != advice.npos ||
                              advice.find("was lost") != advice.npos;
      if (!is_refusal) wrong.push_back(advice);
      return std::nullopt;
    }
    if (answer->status == 503) return std::nullopt;
    if (answer->status / 100 == 2) return answer->body.empty() ? json::value{} : json::parse(answer->body);
    wrong.push_back(answer->body);
    return std::nullopt;
  }

  std::set<std::string> submitted;
  std::set<std::string> completed;
  std::vector<std::string> wrong;

 private:
  Result<std::unique_ptr<http::Client>> client_;
};

void submit_on(Caller& caller) {
  while (const auto answer = caller.ask(post("/v1/executions", R"({"execution_kind":"k"})")))
    caller.submitted.emplace(answer->at("Created").at("execution_id").as_string());
}

void work_on(Caller& caller) {
  const std::string claim = R"({"worker_id":"w","max_tasks":10,"wait_ms":20000})";
  while (const auto answer = caller.ask(post("/v1/tasks/claim", claim))) {
    json::array reports;
    std::vector<std::string> ids;
    for (const auto& task : answer->at("tasks").as_array()) {
      ids.emplace_back(task.at("execution_id").as_string());
      reports.push_back({{"op", "complete"}, {"execution_id", ids.back()}, {"lease", task.at("lease")}});
    }
    if (ids.empty()) continue;
    const auto told =
        caller.ask(post("/v1/tasks/report", json::serialize(json::object{{"reports", reports}})));
    if (!told) return;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto& result = told->at("results").at(i).as_object();
      if (result.contains("ok")) caller.completed.insert(ids[i]);
    }
  }
}

// Asks for one thing that takes long; it is answered when the server ends.
void wait_on(Caller& caller, const http::Request& request) {
  if (!caller.ask(request)) caller.wrong.push_back("not answered: " + request.path);
}

// Follows until the server ends it, as it should be ended.
void follow_on(Caller& caller, const std::string& url, const std::string& path, std::atomic<int>& following) {
  auto client = http::Client::connect(url);
  if (!client) return caller.wrong.push_back("cannot connect");
  ++following;
  const auto ended = (*client)->stream({.path = path}, [](std::string_view) { return true; });
  if (!ended) caller.wrong.push_back(path + ": " + ended.error().to_string());
}

class Shutdown : public testing::Test {
 protected:
  void start(std::function<void(Caller&)> what, int callers = 1) {
    for (int i = 0; i < callers; ++i) {
      auto& caller = *callers_.emplace_back(std::make_unique<Caller>(server_->url()));
      threads_.emplace_back([what, &caller] { what(caller); });
    }
  }
  // Counted on a connection of its own, since the callers' belong to them.
  std::int64_t completed_so_far() {
    auto client = http::Client::connect(server_->url());
    const auto lanes = (*client)->send({.path = "/v1/lanes"});
    const auto parsed = json::parse(lanes->body);
    for (const auto& lane : parsed.at("lanes").as_array()) {
      const auto& counts = lane.at("counts").as_object();
      if (lane.at("lane_id") == "default" && counts.contains("completed"))
        return counts.at("completed").as_int64();
    }
    return 0;
  }

  tests::TemporaryFolder folder_;
  std::string store_{"sqlite:" + folder_.file("jobs.db")};
  std::unique_ptr<Serving> server_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<std::thread> threads_;
};

TEST_F(Shutdown, UnderLoadLosesNothingAndLeavesNobodyWithoutAnAnswer) {
  server_ = std::make_unique<Serving>(store_, std::vector<std::string>{"--shutdown-grace-ms", "15000"});
  const auto url = server_->url();
  Caller first(url);
  const auto made = first.ask(post("/v1/executions", R"({"execution_kind":"k","lane_id":"idle"})"));
  ASSERT_TRUE(made);
  const auto idle = "/v1/executions/" + std::string(made->at("Created").at("execution_id").as_string());

  start(submit_on, 8);
  start(work_on, 4);
  start([](auto& caller) {
    wait_on(caller, post("/v1/tasks/claim", R"({"worker_id":"w","lanes":["nothing-here"],"wait_ms":30000})"));
  });
  start([&](auto& caller) { wait_on(caller, {.path = idle + "/wait", .query = "wait_ms=30000"}); });
  start([&](auto& caller) {
    wait_on(caller, {.path = idle + "/attempts/0/stream/tail", .query = "block_ms=30000"});
  });
  std::atomic<int> following{0};
  start([&](auto& caller) { follow_on(caller, url, "/v1/events", following); });
  start([&](auto& caller) { follow_on(caller, url, idle + "/attempts/0/stream/live", following); });
  ASSERT_TRUE(wait_until([&] { return following == 2 && completed_so_far() > 200; }, 60s));

  const Stopwatch since;
  server_->signal(SIGTERM);
  const auto code = server_->wait(25s);
  EXPECT_LT(since.elapsed(), 15s);
  EXPECT_EQ(code, 0) << server_->said();
  for (auto& thread : threads_) thread.join();
  EXPECT_EQ(server_->said().find("cut off"), std::string::npos) << server_->said();

  std::set<std::string> submitted;
  std::set<std::string> completed;
  for (const auto& caller : callers_) {
    submitted.insert(caller->submitted.begin(), caller->submitted.end());
    completed.insert(caller->completed.begin(), caller->completed.end());
    for (const auto& wrong : caller->wrong) ADD_FAILURE() << wrong;
  }
  auto engine = Engine::open(store_);
  ASSERT_TRUE(engine) << engine.error().to_string();
  for (const auto& id : submitted) EXPECT_TRUE(engine->call(ReadState{*ExecutionId::parse(id)})) << id;
  for (const auto& id : completed) {
    const auto state = engine->call(ReadState{*ExecutionId::parse(id)});
    EXPECT_TRUE(state && *state == PublicState::completed) << id;
  }
  // And operations that were not acknowledged have not happened.
  const auto lanes = engine->call(ListLanes{});
  ASSERT_TRUE(lanes);
  ASSERT_EQ(lanes->lanes.front().lane_id, "default");
  std::size_t there = 0;
  for (const auto& [state, count] : lanes->lanes.front().counts) there += static_cast<std::size_t>(count);
  EXPECT_EQ(there, submitted.size());
  EXPECT_EQ(static_cast<std::size_t>(lanes->lanes.front().counts.at(PublicState::completed)),
            completed.size());
}

// Asks for more than fits between it and the server, and reads nothing of it.
class Stubborn {
 public:
  explicit Stubborn(const std::string& url) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    Caller caller(url);
    json::array executions;
    for (int i = 0; i < 128; ++i)
      executions.push_back({{"execution_kind", "k"}, {"input", std::string(100'000, 'x')}});
    const auto much = json::serialize(json::object{{"executions", executions}});
    if (!caller.ask(post("/v1/executions/bulk", much))) throw std::runtime_error("not submitted");

    sockaddr_in address{.sin_family = AF_INET};
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect");
    const std::string claim = R"({"worker_id":"w","max_tasks":128})";
    const auto request =
        "POST /v1/tasks/claim HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
        ("content-length: " + std::to_string(claim.size())) + "\r\n\r\n" + claim;
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0)
      throw std::runtime_error("cannot send");
    // The request is in progress.
    std::array<char, 1> byte{};
    if (recv(socket_, byte.data(), 1, MSG_PEEK) != 1) throw std::runtime_error("not answered");
  }
  ~Stubborn() { close(socket_); }
  Stubborn(const Stubborn&) = delete;
  Stubborn& operator=(const Stubborn&) = delete;

 private:
  const int socket_;
};

TEST_F(Shutdown, IsNotKeptUpByAClientThatDoesNotRead) {
  server_ = std::make_unique<Serving>(store_, std::vector<std::string>{"--shutdown-grace-ms", "500"});
  const Stubborn client(server_->url());
  std::this_thread::sleep_for(200ms);  // until nothing more fits between them
  const Stopwatch since;
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(20s), 0) << server_->said();
  EXPECT_LT(since.elapsed(), 10s);
  EXPECT_NE(server_->said().find("cut off"), std::string::npos) << server_->said();
}

TEST_F(Shutdown, DoesNotWaitAfterASecondSignal) {
  server_ = std::make_unique<Serving>(store_);
  const Stubborn client(server_->url());
  std::this_thread::sleep_for(200ms);
  const Stopwatch since;
  server_->signal(SIGTERM);
  ASSERT_TRUE(wait_until([&] { return server_->said().find("shutting down") != std::string::npos; }, 10s))
      << server_->said();
  server_->signal(SIGINT);
  EXPECT_EQ(server_->wait(20s), 1);
  EXPECT_LT(since.elapsed(), 15s);
}

// ---- whatever runs ----------------------------------------------------------------------------------------

// Takes connections, and never says anything.
class Mute {
 public:
  Mute() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, any, size) != 0 || listen(socket_, 16) != 0 || getsockname(socket_, any, &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
  }
  ~Mute() { close(socket_); }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int socket_;
  int port_{};
};

TEST_F(Shutdown, IsNotKeptUpByACollectorThatDoesNotAnswer) {
  const Mute collector;
  server_ = std::make_unique<Serving>(
      store_, std::vector<std::string>{"--shutdown-grace-ms", "1000", "--otlp-endpoint",
                                       "http://" + collector.address()});
  Caller caller(server_->url());
  ASSERT_TRUE(caller.ask(post("/v1/executions", R"({"execution_kind":"k"})")));
  std::this_thread::sleep_for(1500ms);  // until it is being told
  const Stopwatch since;
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(20s), 0) << server_->said();
  EXPECT_LT(since.elapsed(), 4s);
}

// A store whose statements do not come back: the committer is stuck in one, and so are threads that read.
class ShutdownOfAStuckStore : public Shutdown {
 protected:
  void start_and_block(const std::string& grace_ms) {
    server_ =
        std::make_unique<Serving>(postgres_.url(), std::vector<std::string>{"--shutdown-grace-ms", grace_ms});
    Caller caller(server_->url());
    ASSERT_TRUE(caller.ask(post("/v1/executions", R"({"execution_kind":"k"})")));
    blocker_ = std::make_unique<tests::PostgresConnection>(postgres_.url());
    blocker_->query("begin");
    blocker_->query("lock table ff_exec_core, ff_attempt in access exclusive mode");
    start([](Caller& each) { each.ask(post("/v1/executions", R"({"execution_kind":"k"})")); }, 2);
    start([](Caller& each) { each.ask({.path = "/v1/executions"}); }, 2);
    std::this_thread::sleep_for(500ms);
  }
  void TearDown() override {
    for (auto& thread : threads_) thread.join();
  }

  tests::PostgresServer postgres_;
  std::unique_ptr<tests::PostgresConnection> blocker_;
};

TEST_F(ShutdownOfAStuckStore, EndsByForceAfterItsGrace) {
  start_and_block("1000");
  const Stopwatch since;
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(20s), 75) << server_->said();
  EXPECT_GE(since.elapsed(), 1s);
  EXPECT_LT(since.elapsed(), 5s);
  EXPECT_TRUE(
      server_->said().contains("The grace period is over, and the process is still stopping the engine"))
      << server_->said();
}

TEST_F(ShutdownOfAStuckStore, EndsAtOnceAfterASecondSignal) {
  start_and_block("60000");
  const Stopwatch since;
  server_->signal(SIGTERM);
  ASSERT_TRUE(wait_until([&] { return server_->said().contains("shutting down"); }, 10s));
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(20s), 1);
  EXPECT_LT(since.elapsed(), 5s);
}

// A server that has not begun to serve, and waits for a silent database.
TEST_F(Shutdown, EndsByForceWhileItStarts) {
  const Mute database;
  const Stopwatch since;
  const auto output = folder_.file("said.txt");
  const auto script = "'" FLOWFABRIC_PROGRAM
                      "' serve --listen 127.0.0.1:0 --shutdown-grace-ms 500 --store "
                      "'postgres://x@" +
                      database.address() + "/x' > '" + output + "' 2>&1 & sleep 1; kill -TERM $!; wait $!";
  const int status = std::system(script.c_str());
  EXPECT_LT(since.elapsed(), 7s);
  std::ifstream file(output);
  const std::string said{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(WEXITSTATUS(status), 75) << said;
  EXPECT_TRUE(said.contains("still opening the store")) << said;
}

}  // namespace
}  // namespace flowfabric::e2e
