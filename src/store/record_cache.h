// Recently written records, kept so that the next operation on them need not read them back. Who uses it says
// why what it holds is still true: only one session ever writes, or a version is compared.
//
// Two generations stand in for an exact order of use: when the younger is full it becomes the older, and what
// was older is forgotten.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>

#include "model/any_key.h"

namespace flowfabric::store {

template <class Key, class Value, class Hash = KeyHash<Key>>
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
  using Map = boost::unordered_flat_map<Key, Value, Hash>;
  Map young_;
  Map old_;
};

}  // namespace flowfabric::store
