// What the writing session knows without asking the database: the records that it wrote lately, and all that
// batches have changed which the database may not show yet. Sound because one process, through this one
// session, is all that ever changes the file.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "store/record_cache.h"

namespace flowfabric::store::sqlite {

class Recent {
 public:
  // A record, or nothing (null). Absent: the database knows.
  template <class Record>
  std::optional<std::shared_ptr<const Record>> find(const typename Record::Key& key) {
    if (auto cached = cache<Record>().find(key)) return cached;
    for (auto batch = unwritten_.rbegin(); batch != unwritten_.rend(); ++batch) {
      if (auto left = batch->unit->left<Record>(key)) return left;
    }
    return std::nullopt;
  }

  // This batch is about to be written; what it has changed is how things are from now on.
  void add(std::shared_ptr<const core::Unit> unit);
  void remember(const core::Unit& unit);
  // All but the latest `count` are written.
  void are_written_but(std::size_t count);

  // Something may not be in the database yet.
  bool is_ahead() const { return !unwritten_.empty(); }
  template <class Record>
  bool is_ahead_in() const {
    return std::ranges::any_of(unwritten_,
                               [](const auto& batch) { return batch.unit->template has_changed<Record>(); });
  }
  // Edges that are not.
  std::vector<EdgeKey> new_edges_from(const ExecutionId& upstream) const;
  // Executions that were offered on the route lately, as they were then.
  std::vector<std::shared_ptr<const Execution>> new_offers(std::int64_t route_id) const;

 private:
  template <class Record>
  RecordCache<Record>& cache() {
    return std::get<RecordCache<Record>>(caches_);
  }

  boost::mp11::mp_rename<boost::mp11::mp_transform<RecordCache, Records>, std::tuple> caches_;
  struct Unwritten {
    std::shared_ptr<const core::Unit> unit;
    std::unordered_multimap<ExecutionId, EdgeKey> new_edges;  // by upstream
  };
  std::deque<Unwritten> unwritten_;  // oldest first
};

}  // namespace flowfabric::store::sqlite
