// What the writing session knows without asking the database: the records that it wrote lately, and all that
// the batch which is being written has changed. Sound because one process, through this one session, is all
// that ever changes the file.
#pragma once

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
    if (being_written_) return being_written_->left<Record>(key);
    return std::nullopt;
  }

  // What this batch has changed is how things are from now on.
  void remember(const core::Unit& unit);
  // It is about to be written: the database may or may not show it yet.
  void is_being_written(std::shared_ptr<const core::Unit> unit);
  void is_written();
  const core::Unit* being_written() const { return being_written_.get(); }
  // Edges that the batch which is being written has added.
  std::vector<EdgeKey> new_edges_from(const ExecutionId& upstream) const;

 private:
  template <class Record>
  RecordCache<Record>& cache() {
    return std::get<RecordCache<Record>>(caches_);
  }

  boost::mp11::mp_rename<boost::mp11::mp_transform<RecordCache, Records>, std::tuple> caches_;
  std::shared_ptr<const core::Unit> being_written_;
  std::unordered_multimap<ExecutionId, EdgeKey> new_edges_;
};

}  // namespace flowfabric::store::sqlite
