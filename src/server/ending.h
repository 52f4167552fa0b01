// The end of the server process: its triggers, its time limit, and the forced exit beyond that.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

#include "flowfabric/error.h"
#include "server/log.h"

namespace flowfabric::server {

inline constexpr int kFailed = 1;
inline constexpr int kDiskFailed = 74;  // EX_IOERR of sysexits.h
inline constexpr int kForced = 75;      // EX_TEMPFAIL: the grace was over, and something still ran

// SIGINT, SIGTERM, or a store that has failed for good ask for the end. A dedicated thread waits for them
// from the start on, so nothing that runs in the process can delay its end. A second signal ends the process
// at once, and so does the time, a little after the grace. To the store this is a crash, which loses nothing
// that was acknowledged.
class Ending {
 public:
  // Construct it before any other thread starts, so that signals interrupt none of them.
  Ending(Log& log, std::chrono::milliseconds grace);
  ~Ending();
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  // Asks for the end; from any thread.
  void store_has_failed(const Error& why);
  bool store_failed() const { return store_failed_; }

  // False if nobody has asked for the end in that time.
  bool wait_for(std::chrono::milliseconds most);
  // Names the present stage (a literal), for the log of a process that is ended by force.
  void is_at(const char* stage) { stage_ = stage; }

  // The time at which the grace of the requested end is over.
  std::chrono::steady_clock::time_point grace_ends() const;
  std::chrono::milliseconds grace_left() const;

 private:
  void watch();
  std::chrono::milliseconds grace() const;
  [[noreturn]] void end_by_force();

  Log& log_;
  const std::chrono::milliseconds grace_;
  sigset_t signals_{};
  std::atomic<bool> store_failed_{false};
  std::atomic<const char*> stage_{"starting"};
  std::atomic<bool> is_over_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_{false};
  std::chrono::steady_clock::time_point grace_ends_{};
  std::thread thread_;
};

}  // namespace flowfabric::server
