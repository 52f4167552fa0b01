// What all connections of a server share: its options, its handler, and the list of them all.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "http/message.h"
#include "http/server.h"

namespace flowfabric::http {

class Connection;
using SteadyTime = std::chrono::steady_clock::time_point;

// Handlers keep callbacks as long as they like, also longer than the server lives. Through the gate they come
// only while there is somebody to be called.
class Gate {
 public:
  // Runs f, and is not closed meanwhile. False: it is closed.
  template <class F>
  bool pass(F&& f) {
    std::shared_lock lock(mutex_);
    if (is_closed_) return false;
    f();
    return true;
  }
  void close() {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

 private:
  std::shared_mutex mutex_;
  bool is_closed_{false};
};

class Edge {
 public:
  Edge(ServerOptions given_options, Handler& its_handler)
      : options(std::move(given_options)), handler(its_handler) {}

  const ServerOptions options;
  Handler& handler;
  const std::shared_ptr<Gate> gate{std::make_shared<Gate>()};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> in_flight{0};

  // Tells the operator.
  void notice(const std::string& what) const;

  // False: the server is closing.
  bool add(std::shared_ptr<Connection> connection);
  void remove(const std::shared_ptr<Connection>& connection);
  std::size_t connections() const;
  std::vector<std::shared_ptr<Connection>> all() const;
  std::vector<std::shared_ptr<Connection>> overdue(SteadyTime now) const;

  // No connection is added after this.
  void begin_closing();
  bool is_closing() const { return is_closing_; }
  // False: some are still there when the time is up.
  bool wait_until_empty(SteadyTime until);

 private:
  std::atomic<bool> is_closing_{false};
  mutable std::mutex mutex_;
  std::condition_variable removed_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
};

}  // namespace flowfabric::http
