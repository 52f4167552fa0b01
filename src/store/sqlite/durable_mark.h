// How far what readers can see is on disk. Commits are announced to readers before they are synced; whoever
// tells others what it has read waits until that is durable.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace flowfabric::store::sqlite {

class DurableMark {
 public:
  // Before commits can be seen.
  void announce(std::uint64_t commits) { announced_ += commits; }
  // They are durable, or they failed.
  void settle(std::uint64_t commits) {
    {
      std::lock_guard lock(mutex_);
      settled_ += commits;
    }
    moved_.notify_all();
  }
  // Until all that can be seen now is settled.
  void await() {
    const std::uint64_t seen = announced_;
    if (settled_ >= seen) return;
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return settled_ >= seen; });
  }

 private:
  std::atomic<std::uint64_t> announced_{0};
  std::atomic<std::uint64_t> settled_{0};
  std::mutex mutex_;
  std::condition_variable moved_;
};

}  // namespace flowfabric::store::sqlite
