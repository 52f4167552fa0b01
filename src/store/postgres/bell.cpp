#include "store/postgres/bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <random>

namespace flowfabric::store::postgres {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenNotifications{10};
constexpr milliseconds kShortestBackoff{100};
constexpr milliseconds kLongestBackoff{5000};
// A notification holds 8000 bytes; what does not fit says "look everywhere".
constexpr std::size_t kMaxPayload = 7900;

struct Close {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + std::to_string(random());
}

// The sender's name, then the lanes, a line each. No lanes mean all.
std::string payload_of(const std::string& name, const std::set<std::string>& lanes) {
  std::string payload = name;
  for (const auto& lane : lanes) payload += "\n" + lane;
  return payload.size() > kMaxPayload ? name : payload;
}

std::vector<std::string> lines_of(const std::string& payload) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start <= payload.size();) {
    const auto end = std::min(payload.find('\n', start), payload.size());
    lines.push_back(payload.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

bool run(PGconn* connection, const std::string& sql, const char* parameter = nullptr) {
  PGresult* result = parameter
                         ? PQexecParams(connection, sql.c_str(), 1, nullptr, &parameter, nullptr, nullptr, 0)
                         : PQexec(connection, sql.c_str());
  const auto status = PQresultStatus(result);
  PQclear(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

std::string value_of(PGconn* connection, const char* sql) {
  PGresult* result = PQexec(connection, sql);
  const std::string value =
      PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
  PQclear(result);
  return value;
}

}  // namespace

PostgresBell::PostgresBell(ConnectionSettings settings, HeardBell heard)
    : settings_(std::move(settings)),
      heard_(std::move(heard)),
      name_(random_name()),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      thread_([this] { loop(); }) {}

PostgresBell::~PostgresBell() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  close(wake_fd_);
}

void PostgresBell::ring(const std::vector<std::string>& lanes) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = rung_.empty();
    rung_.insert(lanes.begin(), lanes.end());
  }
  if (first) wake();
}

void PostgresBell::wake() {
  eventfd_write(wake_fd_, 1);
}

bool PostgresBell::is_stopping() {
  std::lock_guard lock(mutex_);
  return stopping_;
}

bool PostgresBell::has_rung() {
  std::lock_guard lock(mutex_);
  return !rung_.empty();
}

void PostgresBell::sleep_until(SteadyTime until) {
  while (!is_stopping()) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now()).count();
    if (left <= 0) return;
    pollfd wake{.fd = wake_fd_, .events = POLLIN, .revents = 0};
    // Rings in the meantime only add to what will be said.
    if (poll(&wake, 1, static_cast<int>(left)) > 0) {
      eventfd_t count = 0;
      eventfd_read(wake_fd_, &count);
    }
  }
}

void PostgresBell::loop() {
  auto backoff = kShortestBackoff;
  std::minstd_rand random(std::random_device{}());
  while (!is_stopping()) {
    const std::unique_ptr<PGconn, Close> connection(PQconnectdb(settings_.uri.c_str()));
    PQsetNoticeProcessor(
        connection.get(), [](void*, const char*) {}, nullptr);
    channel_ = "ff_offers_" + value_of(connection.get(), "select 'ff_event_id_seq'::regclass::oid");
    const bool listens = PQstatus(connection.get()) == CONNECTION_OK &&
                         run(connection.get(), "set synchronous_commit=off") &&
                         run(connection.get(), "listen " + channel_);
    if (listens) {
      backoff = kShortestBackoff;
      // Nobody knows what was said while nobody listened.
      heard_({});
      serve(connection.get());
    }
    const auto jitter = milliseconds(random() % static_cast<std::uint32_t>(backoff.count()));
    sleep_until(steady_clock::now() + backoff + jitter);
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
}

// Until the connection is lost, or the bell is no longer wanted.
void PostgresBell::serve(PGconn* connection) {
  SteadyTime next_send{};
  while (!is_stopping()) {
    if (has_rung() && steady_clock::now() >= next_send) {
      if (!send(connection)) return;
      next_send = steady_clock::now() + kBetweenNotifications;
    }
    hear(connection);
    const auto left = std::chrono::ceil<milliseconds>(next_send - steady_clock::now()).count();
    const int timeout = has_rung() ? static_cast<int>(std::max<std::int64_t>(left, 0)) : -1;
    std::array<pollfd, 2> fds{pollfd{.fd = PQsocket(connection), .events = POLLIN, .revents = 0},
                              pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), timeout);
    if (fds[1].revents != 0) {
      eventfd_t count = 0;
      eventfd_read(wake_fd_, &count);
    }
    if (fds[0].revents != 0 && PQconsumeInput(connection) != 1) return;
  }
}

bool PostgresBell::send(PGconn* connection) {
  std::set<std::string> rung;
  {
    std::lock_guard lock(mutex_);
    rung.swap(rung_);
  }
  return run(connection, "select pg_notify('" + channel_ + "',$1)", payload_of(name_, rung).c_str());
}

void PostgresBell::hear(PGconn* connection) {
  while (PGnotify* notification = PQnotifies(connection)) {
    auto lines = lines_of(notification->extra);
    PQfreemem(notification);
    if (lines.front() == name_) continue;
    lines.erase(lines.begin());
    heard_(lines);
  }
}

}  // namespace flowfabric::store::postgres
