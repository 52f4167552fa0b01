// A rate limit per client address. Every address has a bucket that refills evenly; an empty bucket refuses.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace flowfabric::api {

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateLimit(std::size_t per_minute) : per_minute_(static_cast<double>(per_minute)) {}

  // Takes one token. False: the bucket of the address is empty.
  bool take(const std::string& address, Time now = std::chrono::steady_clock::now());

 private:
  struct Bucket {
    double left;
    Time at;
  };
  double left_at(const Bucket& bucket, Time now) const;

  const double per_minute_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace flowfabric::api
