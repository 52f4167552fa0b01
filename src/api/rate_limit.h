// How often each address may do something. Every address has a bucket that fills up evenly; who finds it
// empty comes again later.
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

  // Takes one. False: the address has had its share.
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
