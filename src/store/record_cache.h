// Recently written records, kept so that the next operation on them need not read them back. Who uses it says
// why what it holds is still true: only one session ever writes, or a version is compared.
//
// Two generations stand in for an exact order of use: when the younger is full it becomes the older, and what
// was older is forgotten.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/unit.h"

namespace flowfabric::store {

template <class Record>
class RecordCache {
 public:
  using Key = typename Record::Key;

  using Shared = std::shared_ptr<const Record>;

  Shared find(const Key& key) {
    if (const auto it = young_.find(key); it != young_.end()) return it->second;
    const auto it = old_.find(key);
    if (it == old_.end()) return nullptr;
    Shared record = std::move(it->second);
    put(key, record);
    return record;
  }

  void put(const Key& key, Shared record) {
    if (young_.size() >= kGeneration) {
      old_ = std::move(young_);
      young_.clear();
    }
    young_.insert_or_assign(key, std::move(record));
  }

  void forget(const Key& key) {
    young_.erase(key);
    old_.erase(key);
  }

 private:
  static constexpr std::size_t kGeneration = 8192;
  using Map = std::unordered_map<Key, Shared, core::KeyHash<Key>>;
  Map young_;
  Map old_;
};

}  // namespace flowfabric::store
