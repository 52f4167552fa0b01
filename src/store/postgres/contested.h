// Which rows of a table are better locked when they are read.
//
// A batch that only adds to the counts of a row, or takes from them, does not lock it before it commits: see
// session_counts.cpp. Where that did not work out, it is not tried again for a while, and for longer each
// time.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "model/any_key.h"

namespace flowfabric::store::postgres {

template <class Key>
class Contested {
 public:
  // To be asked once per batch.
  bool locks(const Key& key) {
    const auto it = contests_.find(key);
    if (it == contests_.end() || it->second.left == 0) return false;
    --it->second.left;
    return true;
  }
  void add(const Key& key) {
    if (contests_.size() >= kMost) contests_.clear();
    auto& contest = contests_[key];
    contest.batches = std::clamp(contest.batches * 2, kFewest, kLongest);
    contest.left = contest.batches;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  static constexpr int kFewest = 16;
  static constexpr int kLongest = 1024;
  struct Contest {
    int batches{0};
    int left{0};
  };
  std::unordered_map<Key, Contest, KeyHash<Key>> contests_;
};

}  // namespace flowfabric::store::postgres
