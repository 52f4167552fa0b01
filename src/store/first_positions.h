// The first so many of the positions that several walks come to.
#pragma once

#include <set>
#include <vector>

#include "core/list_position.h"
#include "flowfabric/listing.h"

namespace flowfabric::store {

class FirstPositions {
 public:
  FirstPositions(ListOrder order, std::size_t limit) : order_(order), limit_(limit) {}

  // False: neither it nor what comes after it is among them.
  bool take(const core::ListPosition& position) {
    if (found_.size() < limit_) return found_.insert(position).second;
    if (limit_ == 0) return false;
    const auto last = order_ == ListOrder::newest ? found_.begin() : std::prev(found_.end());
    const bool is_later = order_ == ListOrder::newest ? position < *last : *last < position;
    if (is_later) return false;
    found_.erase(last);
    found_.insert(position);
    return true;
  }

  std::vector<core::ListPosition> all() const {
    if (order_ == ListOrder::newest) return {found_.rbegin(), found_.rend()};
    return {found_.begin(), found_.end()};
  }

 private:
  const ListOrder order_;
  const std::size_t limit_;
  std::set<core::ListPosition> found_;
};

}  // namespace flowfabric::store
