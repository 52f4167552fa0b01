// Made-up bytes on a connection to a server with every route, on an engine in memory. Whatever comes, each
// request gets exactly one well-formed answer, in time, and none says that the server is at fault.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>

#include "api/router.h"
#include "http/connection.h"
#include "targets.h"

namespace flowfabric::fuzz {

namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

struct Answer {
  int status{};
  std::string content_type;
  std::string body;
  bool has_request_id{};
};

// Remembers how many answers are owed, and which of them without a body.
class Counting : public http::Handler {
 public:
  explicit Counting(http::Handler& handler) : handler_(handler) {}
  std::vector<bool> owed;  // true: to HEAD

  Admission admit(const http::Request& head) override {
    owed.push_back(head.method == "HEAD");
    return handler_.admit(head);
  }
  void handle(std::shared_ptr<http::Exchange> exchange, std::function<void(http::Response)> answer) override {
    handler_.handle(std::move(exchange), std::move(answer));
  }
  http::Response refuse(http::Malformed why, const http::Request* head) override {
    if (head == nullptr) owed.push_back(false);
    return handler_.refuse(why, head);
  }
  void answered(const http::Request& head, const http::Response& response, double seconds) override {
    handler_.answered(head, response, seconds);
  }

 private:
  http::Handler& handler_;
};

Engine opened() {
  EngineOptions options;
  options.waitpoint_secret_hex = std::string(64, '0');
  auto engine = Engine::open("memory:", options);
  require(engine.has_value(), "an engine in memory opens");
  return *std::move(engine);
}

std::string json_request(const std::string& method, const std::string& path, const std::string& body) {
  return method + " " + path + " HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// The text behind `"key":"`.
std::string text_of(const std::string& json, const std::string& key) {
  const auto mark = "\"" + key + "\":\"";
  const auto at = json.find(mark);
  require(at != json.npos, "the answer has the key");
  const auto begin = at + mark.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

// A server without a network: its connections are pairs of sockets, and are served by whoever talks to it.
class World {
 public:
  World() { prepare(); }
  ~World() {
    edge_.gate->close();
    engine_.stop();
  }

  // Of what a client sends before it closes its half.
  std::vector<Answer> talk(std::string_view bytes) {
    handler_.owed.clear();
    const auto text = exchange(bytes);
    return read_answers(text);
  }

  // Inputs name what only this world knows by texts of the same length.
  std::string in_its_words(std::string_view input) const {
    std::string text(input);
    for (const auto& [from, to] : words_) {
      for (auto at = text.find(from); at != text.npos; at = text.find(from, at))
        text.replace(at, from.size(), to);
    }
    return text;
  }

 private:
  // ---- bytes ----

  std::string exchange(std::string_view bytes) {
    std::array<int, 2> ends{};
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0,
            "a pair of sockets");
    const auto [client, server] = ends;
    http::Connection::Socket socket(asio::make_strand(io_));
    socket.assign(asio::ip::tcp::v4(), server);
    auto connection = std::make_shared<http::Connection>(
        edge_, std::move(socket), http::plain_transport(server), "fuzz", edge_.enter("fuzz", true), false);
    require(edge_.add(connection), "the server is open");
    connection->start();
    connection.reset();

    std::string answers;
    // In two parts, so that anything may be cut anywhere.
    const auto first = bytes.empty() ? 0 : std::hash<std::string_view>{}(bytes) % bytes.size();
    write_all(client, bytes.substr(0, first), answers);
    run(client, answers);
    write_all(client, bytes.substr(first), answers);
    shutdown(client, SHUT_WR);
    const auto until = steady_clock::now() + std::chrono::seconds(8);
    while (edge_.connections() > 0) {
      require(steady_clock::now() < until, "a client that has ended is not waited for");
      if (!run(client, answers)) io_.run_one_for(std::chrono::milliseconds(5));
    }
    read_all(client, answers);
    close(client);
    return answers;
  }

  bool run(int client, std::string& answers) {
    if (io_.stopped()) io_.restart();
    const bool did_something = io_.poll() > 0;
    return read_all(client, answers) || did_something;
  }

  void write_all(int client, std::string_view bytes, std::string& answers) {
    while (!bytes.empty()) {
      const auto sent = send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // the server has closed already
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      run(client, answers);
    }
  }

  static bool read_all(int client, std::string& answers) {
    bool came = false;
    std::array<char, 16384> part{};
    for (ssize_t n = 0; (n = read(client, part.data(), part.size())) > 0; came = true)
      answers.append(part.data(), static_cast<std::size_t>(n));
    return came;
  }

  // ---- answers ----

  std::vector<Answer> read_answers(std::string_view text) const {
    std::vector<Answer> answers;
    while (!text.empty()) {
      http::HeadFinder finder(1u << 20, 1u << 20);
      require(finder.look(text) == http::HeadFinder::Found::whole, "an answer has a whole header section");
      const bool has_no_body = answers.size() < handler_.owed.size() && handler_.owed[answers.size()];
      auto head = http::parse_response_head(text.substr(0, finder.size()), has_no_body);
      require(head.has_value(), "an answer has well-formed headers");
      text.remove_prefix(finder.size());
      if (head->response.status == 100) continue;
      http::BodyReader reader(head->body);
      Answer answer{.status = head->response.status, .content_type = head->response.content_type};
      text.remove_prefix(reader.read(text, answer.body));
      // Events end anywhere, when their reader goes.
      const bool is_cut =
          answer.content_type == "text/event-stream" && text.empty() && !reader.is_malformed();
      require(reader.ends_at_close() || is_cut, "an answer is whole");
      for (const auto& [name, value] : head->response.headers)
        if (name == "x-request-id") answer.has_request_id = !value.empty();
      answers.push_back(std::move(answer));
    }
    require(answers.size() == handler_.owed.size(), "each request gets one answer");
    return answers;
  }

  // ---- what is there ----

  std::string ask(const std::string& method, const std::string& path, const std::string& body) {
    const auto answers = talk(json_request(method, path, body));
    require(answers.size() == 1 && answers[0].status < 300, "what the world is made of is accepted");
    return answers[0].body;
  }

  static std::string id(const std::string& digit) {
    return "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c00" + digit;
  }

  void submit(const std::string& digit, const std::string& lane, const std::string& more = "") {
    ask("POST", "/v1/executions",
        R"({"execution_id":")" + id(digit) + R"(","execution_kind":"k","lane_id":")" + lane + "\"" + more +
            "}");
  }
  // A running one, and the keys by which its worker speaks for it.
  std::string run_one(const std::string& digit) {
    submit(digit, "busy");
    const auto task =
        ask("POST", "/v1/tasks/claim", R"({"worker_id":"w1","lanes":["busy"],"lease_ttl_ms":3600000})");
    lease_id_ = text_of(task, "lease_id");
    attempt_id_ = text_of(task, "attempt_id");
    return R"("execution_id":")" + id(digit) + R"(","lease":{"lease_id":")" + lease_id_ +
           R"(","lease_epoch":1,"attempt_id":")" + attempt_id_ + "\"}";
  }
  void know(const std::string& word, const std::string& meaning) {
    require(word.size() == meaning.size(), "a word is as long as what it stands for");
    words_.emplace_back(word, meaning);
  }

  void prepare() {
    submit("1", "main");
    ask("POST", "/v1/tasks/complete", "{" + run_one("4") + R"(,"result":{"ok":true}})");
    const auto waiting =
        ask("POST", "/v1/tasks/suspend",
            "{" + run_one("3") + R"(,"resume_condition":{"Single":{"waitpoint_key":"gate",)" +
                R"("matcher":"Wildcard"}}})");
    know("33333333-3333-4333-8333-333333333333", text_of(waiting, "waitpoint_id"));
    know("k1:" + std::string(64, 'a'), text_of(waiting, "token"));
    run_one("2");
    know("11111111-1111-4111-8111-111111111111", lease_id_);
    know("22222222-2222-4222-8222-222222222222", attempt_id_);
    const std::string flow = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    ask("POST", "/v1/flows", R"({"flow_id":")" + flow + R"(","flow_kind":"f","namespace":"n","now":1})");
    for (const auto* member : {"5", "6"}) {
      submit(member, "main", R"(,"namespace":"n")");
      ask("POST", "/v1/flows/" + flow + "/members",
          R"({"flow_id":")" + flow + R"(","execution_id":")" + id(member) + R"(","now":1})");
    }
    ask("POST", "/v1/budgets",
        R"({"budget_id":"550e8400-e29b-41d4-a716-446655440000","scope_type":"lane","scope_id":"main",)"
        R"("enforcement_mode":"strict","on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":3600000,)"
        R"("dimensions":["tokens"],"hard_limits":[1000],"soft_limits":[800],"now":1767225600000})");
    ask("POST", "/v1/quotas",
        R"({"quota_policy_id":"9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f","window_seconds":60,)"
        R"("max_requests_per_window":100,"max_concurrent":10,"now":1767225600000})");
    ask("PUT", "/v1/workers/w1",
        R"({"worker_id":"w1","lanes":["main"],"capabilities":[],"liveness_ttl_ms":60000})");
  }

  Engine engine_{opened()};
  api::Api api_{engine_, api::Options{.read_threads = 1}};
  Counting handler_{api_};
  http::Edge edge_{http::ServerOptions{}, handler_};
  asio::io_context io_{1};
  std::string lease_id_;
  std::string attempt_id_;
  std::vector<std::pair<std::string, std::string>> words_;
};

void check(const Answer& answer) {
  require(answer.status >= 200 && answer.status < 500, "no input makes the server say that it is at fault");
  require(answer.has_request_id || answer.status == 200, "an answer carries the id of its request");
  if (answer.content_type != "application/json" || answer.body.empty()) return;
  require(api::Json::is_valid(answer.body), "what is said to be JSON is JSON");
  if (answer.status < 400) return;
  text_of(answer.body, "error");
  text_of(answer.body, "code");
}

}  // namespace

void http_edge(std::string_view input) {
  // A world keeps the changes of its inputs; a new world now and then keeps them few.
  constexpr int kInputsPerWorld = 100;
  static std::unique_ptr<World> world;
  static int inputs = 0;
  if (inputs++ % kInputsPerWorld == 0) world.reset(), world = std::make_unique<World>();
  for (const auto& answer : world->talk(world->in_its_words(input))) check(answer);
}

}  // namespace flowfabric::fuzz
