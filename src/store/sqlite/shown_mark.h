// How far the database shows what callers were told. They are told as soon as the redo log has it; whoever
// reads for them begins when it is in the tables.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "store/store.h"

namespace flowfabric::store::sqlite {

class ShownMark {
 public:
  // Batches up to this one are durable, and told of from now on.
  void told(std::uint64_t number) { told_ = number; }
  // They are in the tables.
  void shown(std::uint64_t number) {
    {
      std::lock_guard lock(mutex_);
      shown_ = number;
      if (trouble_ && trouble_->retry != Retry::after_restart) trouble_.reset();
    }
    moved_.notify_all();
  }
  // They cannot be put there.
  void held_up(const StoreFailure& why) {
    {
      std::lock_guard lock(mutex_);
      // After a failed disk, other trouble is only a symptom.
      if (!trouble_ || trouble_->retry != Retry::after_restart) trouble_ = why;
    }
    moved_.notify_all();
  }
  // Until all that was told by now is shown.
  void await() {
    const std::uint64_t told = told_;
    if (shown_ >= told) return;
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return shown_ >= told || trouble_; });
    if (shown_ < told) throw *trouble_;
  }

 private:
  std::atomic<std::uint64_t> told_{0};
  std::atomic<std::uint64_t> shown_{0};
  std::mutex mutex_;
  std::condition_variable moved_;
  std::optional<StoreFailure> trouble_;
};

}  // namespace flowfabric::store::sqlite
