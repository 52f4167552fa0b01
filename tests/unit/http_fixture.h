// For tests of the HTTP edge: a handler that does what its test wants, a server with it, and a client that
// sends exactly the bytes it is given.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/server.h"

namespace flowfabric::http {

constexpr auto kPatience = std::chrono::seconds(20);  // only failing tests wait so long

template <class Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A request that its handler has not answered yet.
struct Held {
  std::shared_ptr<Exchange> exchange;
  std::function<void(Response)> answer;
};

// Says what it was asked, unless there is a route for the path. Bodies have up to kMaxBody bytes,
// those to /big… up to kBigBody. /vital is vital.
class TestHandler : public Handler {
 public:
  static constexpr std::size_t kMaxBody = 100;
  static constexpr std::size_t kBigBody = 4u << 20;
  using Route = std::function<void(std::shared_ptr<Exchange>, std::function<void(Response)>)>;

  void route(const std::string& path, Route route) {
    std::lock_guard lock(mutex_);
    routes_[path] = std::move(route);
  }
  // Requests to this path are kept until the test answers them.
  void hold(const std::string& path) {
    route(path, [this](auto exchange, auto answer) {
      exchange->on_abandoned = [this] { ++abandoned; };
      std::lock_guard lock(mutex_);
      held_.push_back({std::move(exchange), std::move(answer)});
    });
  }
  Held next_held() {
    const bool came = eventually([this] {
      std::lock_guard lock(mutex_);
      return !held_.empty();
    });
    if (!came) throw std::runtime_error("no request came");
    std::lock_guard lock(mutex_);
    auto held = std::move(held_.front());
    held_.erase(held_.begin());
    return held;
  }
  // "/path status", in the order of the calls of `answered`.
  std::vector<std::string> log() const {
    std::lock_guard lock(mutex_);
    return log_;
  }

  Admission admit(const Request& head) override {
    if (head.path == "/refused") return {.refusal = Response{.status = 401, .body = "who are you"}};
    if (head.path == "/admit-throws") throw std::runtime_error("admit");
    return {.max_body = head.path.starts_with("/big") ? kBigBody : kMaxBody,
            .is_vital = head.path == "/vital"};
  }
  void handle(std::shared_ptr<Exchange> exchange, std::function<void(Response)> answer) override {
    if (const auto route = route_of(exchange->request.path))
      return route(std::move(exchange), std::move(answer));
    const auto& request = exchange->request;
    const auto query = request.query.empty() ? "" : "?" + request.query;
    answer({.content_type = "text/plain",
            .body = request.method + " " + request.path + query + " " + request.body});
  }
  Response refuse(Malformed why, const Request* head) override {
    static const std::map<Malformed, int> kStatus{
        {Malformed::bad_request, 400},    {Malformed::header_too_large, 431}, {Malformed::too_slow, 408},
        {Malformed::body_too_large, 413}, {Malformed::too_busy, 503},         {Malformed::address_busy, 429},
        {Malformed::no_memory, 503},      {Malformed::closing, 503}};
    const bool closing = why == Malformed::closing;
    return {.status = kStatus.at(why),
            .body = (closing ? "closing " : "refused ") + (head ? head->path : "-")};
  }
  void answered(const Request& head, const Response& response, double) override {
    std::lock_guard lock(mutex_);
    log_.push_back(head.path + " " + std::to_string(response.status));
  }

  std::atomic<int> abandoned{0};

 private:
  Route route_of(const std::string& path) const {
    std::lock_guard lock(mutex_);
    const auto found = routes_.find(path);
    return found == routes_.end() ? Route{} : found->second;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Route> routes_;
  std::vector<Held> held_;
  std::vector<std::string> log_;
};

// Pieces come when the test gives them. Once it is abandoned it answers no more, or too late.
class TestSource : public BodySource {
 public:
  void next(std::function<void(std::optional<std::string>)> piece) override {
    std::unique_lock lock(mutex_);
    EXPECT_FALSE(asked_) << "the piece before has not come yet";
    asked_ = std::move(piece);
    give(lock);
  }
  void abandon() override { ++abandoned; }

  void add(std::optional<std::string> piece) {
    std::unique_lock lock(mutex_);
    pieces_.push_back(std::move(piece));
    give(lock);
  }
  bool is_asked() {
    std::lock_guard lock(mutex_);
    return asked_ != nullptr;
  }

  std::atomic<int> abandoned{0};

 private:
  void give(std::unique_lock<std::mutex>& lock) {
    if (!asked_ || pieces_.empty()) return;
    const auto asked = std::exchange(asked_, nullptr);
    auto piece = std::move(pieces_.front());
    pieces_.pop_front();
    lock.unlock();
    asked(std::move(piece));
  }

  std::mutex mutex_;
  std::function<void(std::optional<std::string>)> asked_;
  std::deque<std::optional<std::string>> pieces_;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return is_connected_; }
  int socket() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void close_half() { ::shutdown(socket_, SHUT_WR); }
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

  RawClient& send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // the server has seen enough; what it says is read
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return *this;
  }
  RawClient& get(const std::string& target) { return send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"); }

  // The bytes up to and including `end`; other bytes if `end` did not come.
  std::string read_to(std::string_view end) {
    std::size_t at = 0;
    for (std::size_t from = 0; (at = buffer_.find(end, from)) == std::string::npos;) {
      from = buffer_.size() < end.size() ? 0 : buffer_.size() - end.size();
      if (!read_more()) return "[ended] " + std::exchange(buffer_, "");
    }
    return take(at + end.size());
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return has_timed_out_ ? "[no end] " + buffer_ : std::exchange(buffer_, "");
  }
  // An answer with its body, by its content-length.
  std::string read_answer() {
    auto answer = read_to("\r\n\r\n");
    const std::string_view name = "content-length: ";
    const auto at = answer.find(name);
    const std::size_t length = at == std::string::npos ? 0 : std::stoul(answer.substr(at + name.size()));
    while (buffer_.size() < length && read_more()) {
    }
    return answer + take(std::min(length, buffer_.size()));
  }
  bool was_reset() {
    pollfd one{socket_, 0, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & POLLERR) != 0;
  }
  // True if no bytes have come and the connection is open.
  bool is_quiet() {
    pollfd one{socket_, POLLIN, 0};
    return buffer_.empty() && ::poll(&one, 1, 0) == 0;
  }

 private:
  std::string take(std::size_t count) {
    auto taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }
  bool read_more() {
    pollfd one{socket_, POLLIN, 0};
    const auto patience = std::chrono::milliseconds(kPatience).count();
    has_timed_out_ = ::poll(&one, 1, static_cast<int>(patience)) == 0;
    if (has_timed_out_) return false;
    static thread_local std::array<char, 64u << 10> bytes;
    const auto got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  int socket_;
  bool is_connected_{false};
  bool has_timed_out_{false};
  std::string buffer_;
};

// "HTTP/1.1 200 OK" of an answer.
inline std::string status_of(const std::string& answer) {
  return answer.substr(0, answer.find('\r'));
}
inline std::string body_of(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}
inline bool says_close(const std::string& answer) {
  return answer.contains("\r\nconnection: close\r\n");
}

class HttpServerTest : public testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    options.notice = [this](const std::string& what) {
      std::lock_guard lock(mutex_);
      notices_.push_back(what);
    };
    auto started = Server::start(std::move(options), handler_);
    ASSERT_TRUE(started) << started.error().to_string();
    server_ = *std::move(started);
  }
  std::unique_ptr<RawClient> connect() { return std::make_unique<RawClient>(server_->port()); }
  // The server's reply to these bytes, on a new connection, until the server closes it.
  std::string last_words_to(std::string_view bytes) { return connect()->send(bytes).read_to_end(); }
  std::vector<std::string> notices() const {
    std::lock_guard lock(mutex_);
    return notices_;
  }

  TestHandler handler_;
  mutable std::mutex mutex_;
  std::vector<std::string> notices_;
  std::unique_ptr<Server> server_;
};

}  // namespace flowfabric::http
