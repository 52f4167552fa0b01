// The state that all connections of a server share: options, handler, and the list of connections.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "http/message.h"
#include "http/server.h"

namespace flowfabric::http {

class Connection;
using SteadyTime = std::chrono::steady_clock::time_point;

// One client address, and the totals of its connections.
struct Address {
  std::string name;  // the name it is counted by
  bool is_trusted{false};
  std::size_t connections{0};  // guarded by the edge
  std::atomic<std::size_t> requests{0};
  std::atomic<std::size_t> bytes{0};
};

// A connection that waits for a request, and the time since when.
struct Waiting {
  std::weak_ptr<Connection> connection;
  SteadyTime since;
};

// Handlers may keep callbacks longer than the server lives. The gate lets a callback through only while the
// server is there.
class Gate {
 public:
  // Runs f; the gate is not closed meanwhile. False if it is closed.
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
  std::atomic<std::uint64_t> made_room{0};
  std::atomic<std::uint64_t> in_flight{0};
  std::atomic<std::size_t> held_bytes{0};  // of requests that are being read

  // Reports to the operator.
  void notice(const std::string& what) const;

  // Counts one more connection of the address. Null if the address is at its limit.
  std::shared_ptr<Address> enter(const std::string& name, bool is_trusted);
  void leave(const std::shared_ptr<Address>& address);
  // False if the address is at its limit of requests.
  bool take_request(Address& address) const;
  // True if only small requests of this address may be read.
  bool is_full_for(const Address& address) const;
  // True if connections must not read ahead.
  bool is_nearly_full() const { return held_bytes > options.max_body_memory / 2; }

  // False: the server is closing.
  bool add(std::shared_ptr<Connection> connection);
  void remove(const std::shared_ptr<Connection>& connection);
  std::size_t connections() const;
  std::vector<std::shared_ptr<Connection>> all() const;
  std::vector<std::shared_ptr<Connection>> overdue(SteadyTime now) const;
  // The connections that have waited longest, the longest at the end. Connections for vital requests only if
  // no other waits.
  std::vector<Waiting> waiting_longest(std::size_t most) const;

  // No connection is added after this.
  void begin_closing();
  bool is_closing() const { return is_closing_; }
  // False if connections are left when the time is up.
  bool wait_until_empty(SteadyTime until);

 private:
  std::atomic<bool> is_closing_{false};
  mutable std::mutex mutex_;
  std::condition_variable removed_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::string, std::shared_ptr<Address>> addresses_;
};

}  // namespace flowfabric::http
