#include "engine/batch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "core/invariants.h"
#include "core/offer.h"

namespace flowfabric::engine {

Error damaged(const core::MissingRecord& missing) {
  return {ErrorCode::corruption, std::string(missing.table) + ": a record is missing",
          "The store is damaged: run `flowfabric doctor` on it, or restore it from a backup."};
}

namespace {

// An operation that still meets unloaded records after this many rounds is following a chain that no batch
// should wait for.
constexpr int kMaxRounds = 64;
// Of claims that join a batch: everybody in it waits with them.
constexpr int kRoundsOfJoined = 3;

class BatchRun {
 public:
  BatchRun(store::Session& session, std::vector<Operation>& operations, const BatchSettings& settings,
           const TakeWaiting& take_waiting)
      : session_(session),
        operations_(operations),
        settings_(settings),
        take_waiting_(take_waiting),
        whole_(std::make_unique<core::Unit>(
            session,
            [partitions = settings.partitions](core::Unit& unit, const Execution& execution) {
              core::want_for_taking(unit, execution, partitions);
            })),
        unit_(*whole_) {}

  WorkedOut run() {
    want_all();
    now_ms_ = session_.begin(unit_);
    run_from(0);
    note_offers();
    let_waiting_claims_join();
    note_effects();
    return {std::move(result_), std::move(whole_)};
  }

 private:
  void want_all() {
    // A store that loads on the spot needs no list; and then trouble with a record is trouble of the one
    // operation that asked for it.
    if (session_.loads_instantly()) return;
    want_from(0);
  }

  void want_from(std::size_t first) {
    for (auto i = first; i < operations_.size(); ++i) {
      if (operations_[i].want) operations_[i].want(unit_);
    }
  }

  void run_from(std::size_t first) {
    result_.refusals.resize(operations_.size(), nullptr);
    std::vector<std::size_t> all(operations_.size() - first);
    std::iota(all.begin(), all.end(), first);
    // Claims come last: what the others offer is then taken in the same commit, and written once.
    const auto claims =
        std::ranges::stable_partition(all, [&](std::size_t index) { return !operations_[index].claim; });
    run_all({all.begin(), claims.begin()});
    if (claims.empty()) return;
    fetch_for_taking();
    run_all({claims.begin(), claims.end()});
  }

  // Everything that claims need of what this batch offers, where they would ask for it one by one.
  void fetch_for_taking() {
    if (session_.loads_instantly()) return;
    for_each_offered(
        [&](const Execution& execution) { core::want_for_taking(unit_, execution, settings_.partitions); });
    load_more();
  }

  void run_all(std::vector<std::size_t> todo) {
    std::unordered_map<std::size_t, int> runs;
    while (!todo.empty()) {
      std::vector<std::size_t> again;
      std::unordered_set<std::size_t> held_up;
      for (const auto index : todo) {
        const auto& operation = operations_[index];
        // One that has to wait for its records is not overtaken by the next about the same task.
        const bool waits = operation.in_order && held_up.contains(operation.affinity);
        if (!waits && run_one(index)) continue;
        if (!waits && runs[index]++ == kMaxRounds) {
          refuse(index,
                 {ErrorCode::retry_exhausted, "", "The operation met too many new records; repeat it."});
          continue;
        }
        again.push_back(index);
        if (operation.in_order) held_up.insert(operation.affinity);
      }
      if (!again.empty()) load_more();
      todo.swap(again);
    }
  }

  void load_more() {
    session_.load(unit_);
    now_ms_ = std::max(now_ms_, session_.time_of_load().value_or(now_ms_));
  }

  // False: it met a record that is not loaded, and has to run again.
  bool run_one(std::size_t index) {
    auto& operation = operations_[index];
    core::Context at{now_ms_,
                     Random(operation.seed),
                     settings_.partitions,
                     settings_.retention_ms,
                     settings_.budget_grace_ms,
                     settings_.reclaim_grace_ms};
    unit_.begin_operation();
    try {
      const auto outcome = operation.run(unit_, at);
      if (outcome == Outcome::undo) {
        unit_.undo();
      } else if (auto holds = core::check_invariants(unit_); !holds) {
        unit_.undo();
        refuse(index, std::move(holds.error()));
      } else {
        unit_.keep();
      }
      return true;
    } catch (const core::NotLoaded&) {
      unit_.undo();
      return false;
    } catch (const core::MissingRecord& missing) {
      unit_.undo();
      refuse(index, damaged(missing));
      return true;
    } catch (store::StoreFailure& failure) {
      if (failure.error.code != ErrorCode::corruption) throw;
      unit_.undo();
      refuse(index, std::move(failure.error));
      return true;
    }
  }

  void refuse(std::size_t index, Error error) {
    result_.owned.push_back(std::make_unique<Error>(std::move(error)));
    result_.refusals[index] = result_.owned.back().get();
  }

  void note_offers() {
    auto offers = unit_.new_offers();
    // Other writers could not see what this batch read ahead and did not take; their claims may be waiting.
    if (session_.has_other_writers()) {
      for (const auto& [route_id, count] : unit_.offers_left()) offers.try_emplace(route_id, count);
    }
    const auto remembered = remembered_routes();
    for (const auto& [route_id, count] : offers) {
      if (!remembered.contains(route_id)) unit_.want<Route>({route_id});
    }
    session_.load(unit_);
    for (const auto& [route_id, count] : offers) {
      const auto it = remembered.find(route_id);
      auto route = it == remembered.end() ? *unit_.find<Route>({route_id}) : it->second;
      route.next_due_at_ms.reset();  // may have changed since it was remembered, and says nothing to claims
      result_.effects.offers.emplace_back(std::move(route), count);
    }
  }

  // Those of new offers, as an earlier batch saw them.
  std::map<std::int64_t, Route> remembered_routes() const {
    std::map<std::int64_t, Route> found;
    for_each_offered([&](const Execution& execution) {
      if (found.contains(execution.route_id)) return;
      const auto* routes = unit_.remembered_routes(execution.lane_id);
      if (!routes) return;
      const auto it = std::ranges::find(*routes, execution.route_id, &Route::route_id);
      if (it != routes->end()) found[it->route_id] = *it;
    });
    return found;
  }

  // What this batch offers, and nobody in it has taken.
  template <class F>
  void for_each_offered(F&& f) const {
    unit_.for_each_dirty<Execution>([&](const core::Slot<Execution>& slot) {
      const bool was_offered = slot.stored && slot.stored->offer_order;
      if (slot.changed && slot.changed->offer_order && !was_offered) f(*slot.changed);
    });
  }
  std::map<std::int64_t, std::uint32_t> count_offered() const {
    std::map<std::int64_t, std::uint32_t> counts;
    for_each_offered([&](const Execution& execution) { ++counts[execution.route_id]; });
    return counts;
  }

  // Work is then offered and taken in one commit: the worker has it sooner, and it is written once.
  void let_waiting_claims_join() {
    if (!take_waiting_ || result_.effects.offers.empty()) return;
    if (!session_.loads_instantly()) return let_waiting_claims_take_what_is_here();
    auto claims = take_waiting_(result_.effects.offers);
    if (claims.empty()) return;
    const auto first = operations_.size();
    std::ranges::move(claims, std::back_inserter(operations_));
    run_from(first);
  }

  // Everybody in the batch would wait for a scan. But claims that wait have found nothing when they began to,
  // and whoever has offered anything since wakes others for it: so they look at what this batch offers only.
  void let_waiting_claims_take_what_is_here() {
    auto& offers = result_.effects.offers;
    const auto offered = count_offered();
    OfferedWork here;
    for (const auto& [route, count] : offers) {
      const auto it = offered.find(route.route_id);
      if (it != offered.end()) here.emplace_back(route, it->second);
    }
    auto claims = take_waiting_(here);
    if (claims.empty()) return;
    const auto first = operations_.size();
    std::ranges::move(claims, std::back_inserter(operations_));
    result_.refusals.resize(operations_.size(), nullptr);
    std::vector<std::size_t> todo(operations_.size() - first);
    std::iota(todo.begin(), todo.end(), first);
    want_from(first);
    // One that needs still more goes on waiting, and is woken for what is left.
    for (int round = 0; round < kRoundsOfJoined && !todo.empty(); ++round) {
      offer_nothing_unseen();
      fetch_for_taking();
      std::erase_if(todo, [&](std::size_t index) { return run_one(index); });
    }
    auto left = count_offered();
    for (auto& [route, count] : offers) {
      const auto it = offered.find(route.route_id);
      if (it != offered.end()) count -= it->second - left[route.route_id];
    }
    std::erase_if(offers, [](const auto& offer) { return offer.second == 0; });
  }

  // On routes that this batch has not looked at, its own offers are all there is.
  void offer_nothing_unseen() {
    for (const auto& scan : std::exchange(unit_.wanted_offers(), {})) {
      if (!scan.after) unit_.put_offers(scan, {});
    }
  }

  void note_effects() {
    unit_.for_each_dirty<Execution>(
        [&](const core::Slot<Execution>& slot) { result_.effects.changed.push_back(slot.key); });
    unit_.for_each_dirty<Stream>(
        [&](const core::Slot<Stream>& slot) { result_.effects.written.push_back(owner_of(slot.key)); });
    for (const auto& type : event_types()) {
      if (unit_.appended(type.place).size() > 0) result_.effects.feeds.push_back(type.family);
    }
    note_figures();
    for (const auto& type : record_types()) {
      if (type.clock) note_clocks(type);
    }
  }

  void note_clocks(const RecordType& type) {
    auto& earliest = result_.effects.earliest_due;
    for (const auto* slot : unit_.dirty(type.place)) {
      const auto due = slot->changed ? time_in(type.clock, slot->changed.get()) : std::nullopt;
      if (due) earliest = std::min(earliest.value_or(*due), *due);
    }
  }

  void note_figures() {
    auto& effects = result_.effects;
    effects.notes = unit_.take_notes();
    for (const auto& event : unit_.appended<LeaseEvent>()) {
      ++effects.lease_events[static_cast<std::size_t>(event.event_type.known)];
      effects.has_lease_events = true;
    }
    if (!settings_.tells_ended_attempts) return;
    unit_.for_each_dirty<Attempt>([&](const core::Slot<Attempt>& slot) {
      if (slot.stored || !slot.changed) return;
      const auto& attempt = *slot.changed;
      effects.ended_attempts.push_back({.execution_id = {attempt.partition_key, attempt.execution_id},
                                        .attempt_id = attempt.attempt_id,
                                        .attempt_index = attempt.attempt_index,
                                        .attempt_type = attempt.attempt_type,
                                        .how = attempt.attempt_state,
                                        .worker_id = attempt.worker_id,
                                        .failure_reason = attempt.failure_reason,
                                        .failure_category = attempt.failure_category,
                                        .started_at = attempt.started_at_ms,
                                        .ended_at = attempt.terminal_at_ms});
    });
  }

  store::Session& session_;
  std::vector<Operation>& operations_;
  const BatchSettings& settings_;
  const TakeWaiting& take_waiting_;
  std::unique_ptr<core::Unit> whole_;
  core::Unit& unit_;
  std::int64_t now_ms_{};
  BatchResult result_;
};

}  // namespace

namespace {

// What work on a store may throw becomes a failed result.
template <class Work>
bool succeeds(BatchResult& result, store::Session& session, Work work) {
  try {
    work();
    return true;
  } catch (const store::StoreFailure& failure) {
    result.fail(failure);
  } catch (const std::exception& exception) {
    result.fail({Error{ErrorCode::unavailable, exception.what(),
                       "The engine could not run the operation; nothing was changed. Repeat it."}});
  }
  session.rollback();
  return false;
}

}  // namespace

WorkedOut work_out(store::Session& session, std::vector<Operation>& operations, const BatchSettings& settings,
                   const TakeWaiting& take_waiting) {
  WorkedOut worked;
  succeeds(worked.result, session,
           [&] { worked = BatchRun(session, operations, settings, take_waiting).run(); });
  return worked;
}

void commit(store::Session& session, std::unique_ptr<core::Unit> unit, bool others_wait, BatchResult& failed,
            store::Session::Settled settled) {
  succeeds(failed, session, [&] { session.commit_behind(std::move(unit), others_wait, std::move(settled)); });
}

}  // namespace flowfabric::engine
