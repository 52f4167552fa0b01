// LISTEN and NOTIFY, on a connection and a thread of their own: off the path of commits, because a
// transaction that notifies takes a lock of the whole database when it commits. What is rung within a few
// milliseconds is one notification.
#pragma once

#include <mutex>
#include <set>
#include <thread>

#include "store/postgres/connection.h"

namespace flowfabric::store::postgres {

class PostgresBell final : public Bell {
 public:
  PostgresBell(ConnectionSettings settings, HeardBell heard);
  ~PostgresBell() override;

  void ring(const std::vector<std::string>& lanes) override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void loop();
  bool is_stopping();
  void serve(PGconn* connection);
  void hear(PGconn* connection);
  bool send(PGconn* connection);
  bool has_rung();
  void wake();
  void sleep_until(SteadyTime until);

  const ConnectionSettings settings_;
  const HeardBell heard_;
  const std::string name_;  // of this bell, so that it does not hear itself
  std::string channel_;
  int wake_fd_;
  std::mutex mutex_;
  bool stopping_{false};
  std::set<std::string> rung_;
  std::thread thread_;
};

}  // namespace flowfabric::store::postgres
