// Columns that many writers add to and take from at once.
#pragma once

#include <array>
#include <string_view>

#include "model/limit_records.h"

namespace flowfabric {

struct BoundedCount {
  std::string_view count;
  std::string_view bound;  // the column that it never passes; 0 there: nothing bounds it
};
inline constexpr std::array kCountsOfQuotaPolicy{BoundedCount{"active_concurrency", "active_concurrency_cap"},
                                                 BoundedCount{"window_count", "max_requests_per_window"}};

}  // namespace flowfabric
