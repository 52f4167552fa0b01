#include "api/rate_limit.h"

#include <algorithm>

namespace flowfabric::api {

namespace {

// Above this number, full buckets are forgotten: a new bucket would be full as well.
constexpr std::size_t kManyBuckets = 10'000;
// The part of one minute's share that may come at once.
constexpr double kBurst = 0.2;

}  // namespace

double RateLimit::left_at(const Bucket& bucket, Time now) const {
  const std::chrono::duration<double> passed = now - bucket.at;
  return std::min(std::max(1.0, per_minute_ * kBurst), bucket.left + passed.count() * per_minute_ / 60);
}

bool RateLimit::take(const std::string& address, Time now) {
  if (per_minute_ == 0) return false;
  std::lock_guard lock(mutex_);
  const double most = std::max(1.0, per_minute_ * kBurst);
  if (buckets_.size() >= kManyBuckets) {
    std::erase_if(buckets_, [&](const auto& each) { return left_at(each.second, now) >= most; });
  }
  auto& bucket = buckets_.try_emplace(address, most, now).first->second;
  bucket = {left_at(bucket, now), now};
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace flowfabric::api
