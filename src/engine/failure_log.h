// Tells what the clock could not do. Records that fail do so at every look: of each, once a minute is told.
// Safe from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "flowfabric/error.h"

namespace flowfabric::engine {

class FailureLog {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  explicit FailureLog(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  // `about` is the record, by its table and id; "" means the look itself. `now` may be chosen by tests.
  void add(const std::string& rule, const std::string& about, const Error& error,
           SteadyTime now = std::chrono::steady_clock::now());

 private:
  static constexpr std::chrono::minutes kBetween{1};
  bool is_news(const std::string& about, SteadyTime now);

  const std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  std::map<std::string, SteadyTime> told_at_;
  SteadyTime forgot_at_{};
};

}  // namespace flowfabric::engine
