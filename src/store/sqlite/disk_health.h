// Whether the disk can still be trusted. After a failure that leaves nobody knowing what is on it (files.h),
// the store refuses everything for the rest of the process.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "store/store.h"

namespace flowfabric::store::sqlite {

class DiskHealth {
 public:
  // `tell` is called once, by whoever meets the failure.
  explicit DiskHealth(std::function<void(const Error&)> tell) : tell_(std::move(tell)) {}

  bool is_well() const { return is_well_; }

  void has_failed(const StoreFailure& why) {
    {
      std::lock_guard lock(mutex_);
      if (!is_well_) return;
      later_ = why;
      later_.error.advice =
          "The disk has failed; nothing of this call was stored. Check the disk, then start the process "
          "again: it "
          "goes on from what is known to be on disk.";
      is_well_ = false;
    }
    if (tell_) tell_(later_.error);
  }

  void require() const {
    if (!is_well_) throw later_;
  }
  // What everybody is told from then on.
  const StoreFailure& failure() const { return later_; }

 private:
  const std::function<void(const Error&)> tell_;
  std::mutex mutex_;
  std::atomic<bool> is_well_{true};
  StoreFailure later_;  // what is said from then on; written once, before `is_well_`
};

}  // namespace flowfabric::store::sqlite
