// What the writing session knows without asking the database: the records that it wrote lately, and all that
// batches have changed which the database may not show yet. Sound because one process, through this one
// session, is all that ever changes the file.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/unit.h"
#include "store/record_cache.h"

namespace flowfabric::store::sqlite {

class Recent {
 public:
  // A record, or nothing (null). Absent: the database knows.
  std::optional<std::shared_ptr<const void>> find(const RecordType& type, const AnyKey& key);

  // This batch will be written; what it has changed is how things are from now on.
  void add(std::shared_ptr<const core::Unit> unit, std::uint64_t number);
  // This one was written.
  void remember(const core::Unit& unit);
  // Those up to this one are written.
  void are_written(std::uint64_t number);

  // Something may not be in the database yet.
  bool is_ahead() const { return !unwritten_.empty(); }
  template <class Record>
  bool is_ahead_in() const {
    return std::ranges::any_of(unwritten_,
                               [](const auto& batch) { return batch.unit->template has_changed<Record>(); });
  }
  // All edges of a member that was submitted with its flow lately. Null: the database knows, but for those
  // that are not in it yet.
  const std::vector<EdgeKey>* edges_from(const ExecutionId& upstream) { return edges_.find(upstream); }
  std::vector<EdgeKey> new_edges_from(const ExecutionId& upstream) const;
  // Routes on which something is offered that may not be there.
  std::set<std::int64_t> offering_routes() const;
  // The best that are offered on the route and may not be.
  std::vector<core::Offer> new_offers(const core::OfferScan& scan) const;

  // What the database offers up to there was taken: a scan need not look at it again and again.
  std::optional<core::Offer> taken_up_to(std::int64_t route_id) const;
  void is_taken(std::int64_t route_id, const core::Offer& offer) { routes_[route_id].taken_up_to = offer; }

 private:
  void remember_edges(const core::Unit& unit);

  std::array<Generations<AnyKey, std::shared_ptr<const void>, AnyKeyHash>, kRecordTypes> caches_;
  Generations<ExecutionId, std::vector<EdgeKey>> edges_;
  struct Unwritten {
    std::shared_ptr<const core::Unit> unit;
    std::uint64_t number;
  };
  std::deque<Unwritten> unwritten_;  // oldest first
  // What they have made, and the number of the batch that did.
  std::unordered_multimap<ExecutionId, std::pair<EdgeKey, std::uint64_t>> new_edges_;  // by upstream
  struct OnRoute {
    std::map<core::Offer, std::uint64_t> new_offers;
    std::optional<core::Offer> taken_up_to;
  };
  std::unordered_map<std::int64_t, OnRoute> routes_;
};

}  // namespace flowfabric::store::sqlite
