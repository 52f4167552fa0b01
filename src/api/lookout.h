// Reads something that may not answer for a long time, such as a store, on a thread of its own, so that
// callers get an answer in time. Callers that ask while a read is in progress share the next one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "flowfabric/error.h"

namespace flowfabric::api {

template <class Seen>
class Lookout {
 public:
  Lookout(std::function<Result<Seen>()> look, std::chrono::milliseconds patience)
      : look_(std::move(look)), patience_(patience), thread_([this] { loop(); }) {}
  ~Lookout() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // The result of a read that began after the call; absent if it takes too long. If the read in progress has
  // taken too long already, the call does not wait for another.
  std::optional<Result<Seen>> fresh() {
    std::unique_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    const bool is_stuck = begun_ > ended_ && now - began_at_ > patience_;
    wanted_ = begun_ + 1;
    changed_.notify_all();
    if (is_stuck) return std::nullopt;
    const auto mine = wanted_;
    const bool in_time =
        changed_.wait_for(lock, patience_, [&] { return ended_ >= mine || stopping_; }) && ended_ >= mine;
    return in_time ? last_ : std::nullopt;
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || wanted_ > ended_; });
      if (stopping_) return;
      ++begun_;
      began_at_ = std::chrono::steady_clock::now();
      lock.unlock();
      auto seen = look_();
      lock.lock();
      last_ = std::move(seen);
      ended_ = begun_;
      changed_.notify_all();
    }
  }

  const std::function<Result<Seen>()> look_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_{false};
  // Reads are numbered.
  std::uint64_t wanted_{0};
  std::uint64_t begun_{0};
  std::uint64_t ended_{0};
  std::chrono::steady_clock::time_point began_at_{};
  std::optional<Result<Seen>> last_;
  std::thread thread_;
};

}  // namespace flowfabric::api
