#include "flowfabric/stats.h"

#include <algorithm>
#include <numeric>

namespace flowfabric {

void Distribution::observe(double value) {
  const auto at = std::ranges::lower_bound(bounds, value);
  ++counts[static_cast<std::size_t>(at - bounds.begin())];
  sum += value;
}

std::uint64_t Distribution::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void Distribution::add(const Distribution& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
}

}  // namespace flowfabric
