// Recently written records, kept so that the next operation on them need not read them back. Who uses it says
// why what it holds is still true: only one session ever writes, or a version is compared.
//
// Two generations stand in for an exact order of use: when the younger is full it becomes the older, and what
// was older is forgotten.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>

#include "core/unit.h"

namespace flowfabric::store {

template <class Key, class Value>
class Generations {
 public:
  // Null: not kept. Good until the next call.
  Value* find(const Key& key) {
    if (const auto it = young_.find(key); it != young_.end()) return &it->second;
    const auto it = old_.find(key);
    return it == old_.end() ? nullptr : &put(key, std::move(it->second));
  }

  Value& put(const Key& key, Value value) {
    if (young_.size() >= kGeneration) {
      old_ = std::move(young_);
      young_.clear();
    }
    return young_.insert_or_assign(key, std::move(value)).first->second;
  }

  void forget(const Key& key) {
    young_.erase(key);
    old_.erase(key);
  }

 private:
  static constexpr std::size_t kGeneration = 8192;
  using Map = boost::unordered_flat_map<Key, Value, core::KeyHash<Key>>;
  Map young_;
  Map old_;
};

template <class Record>
class RecordCache {
 public:
  using Key = typename Record::Key;
  using Shared = std::shared_ptr<const Record>;

  Shared find(const Key& key) {
    const auto* kept = records_.find(key);
    return kept ? *kept : nullptr;
  }
  void put(const Key& key, Shared record) { records_.put(key, std::move(record)); }
  void forget(const Key& key) { records_.forget(key); }

 private:
  Generations<Key, Shared> records_;
};

}  // namespace flowfabric::store
