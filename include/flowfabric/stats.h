// Figures for monitoring: what an engine has counted since it was opened, and the contents of its store.
//
// An operation is counted once, when it is committed. Refused operations and reruns are not counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "flowfabric/ids.h"
#include "flowfabric/state.h"

namespace flowfabric {

inline constexpr std::array kSecondsBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};
inline constexpr std::array kSizeBounds{1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0};

// A histogram: `counts[i]` values lie between the previous bound and `bounds[i]`, those of the last count
// above all bounds.
struct Distribution {
  Distribution() : Distribution(kSecondsBounds) {}
  explicit Distribution(std::span<const double> the_bounds)
      : bounds(the_bounds), counts(the_bounds.size() + 1) {}

  std::span<const double> bounds;
  std::vector<std::uint64_t> counts;
  double sum{0};

  void observe(double value);
  std::uint64_t count() const;
  void add(const Distribution& other);  // with the same bounds
};

using Counts = std::map<std::string, std::uint64_t>;

struct LaneStats {
  Counts attempts{};  // ended, by outcome: ok, error, timeout, cancelled, retry
  // From the first claim of an execution to its end, by outcome.
  std::map<std::string, Distribution> seconds{};
};

struct EngineStats {
  // ---- operations and commits ----
  std::uint64_t operations{0};
  std::uint64_t batches{0};
  std::uint64_t largest_batch{0};
  Distribution batch_sizes{kSizeBounds};  // operations in each commit
  Distribution batch_seconds{};           // from the first load to the answers
  Distribution commit_seconds{};          // the part that writes and makes durable
  std::uint64_t round_trips{0};           // of the committers, to a store across a network
  Counts store_failures{};                // failed batches and reads, also those that are run again, by kind
  std::uint64_t shutdown_timeouts{0};     // stops whose grace was too short for the queued operations

  // ---- now ----
  std::uint64_t queued{0};  // operations in no batch yet
  std::uint64_t queued_bytes{0};
  std::uint64_t max_queued{0};
  bool queue_is_full{false};  // a committer answers `resource_exhausted`
  // The reason why the last commit failed, if that was within half a minute and none has succeeded since.
  std::string store_trouble{};
  std::uint64_t waiting_claims{0};
  std::uint64_t watchers{0};

  // ---- the clock ----
  bool clock_is_on{false};
  std::uint64_t clock_looks{0};  // finished rounds, also those that found nothing
  std::uint64_t clock_operations{0};
  std::uint64_t clock_failures{0};  // of these, records that will be tried again
  std::uint64_t clock_filtered{
      0};  // of these, records that belong to another engine by now (`scanner_filter`)
  std::uint64_t clock_resting{0};   // records that are left alone now because they fail again and again
  std::uint64_t clock_restarts{0};  // rounds that ended by an exception
  std::int64_t clock_lag_ms{0};     // the age of the oldest due record after the last round
  std::int64_t since_clock_look_ms{0};
  bool clock_is_stalled{false};  // the lag is too long
  std::string clock_trouble{};   // why the last round was not finished; empty: it was
  // By the names of the rules: lease_expiry, edge_cancel_dispatcher, …
  Counts clock_rules{};   // times each has fired; rules that never did are left out
  Counts clock_errors{};  // times each has failed
  std::map<std::string, Distribution> clock_seconds{};  // time of each round; all rules

  // ---- what operations did ---- For each of the first 200 lanes; all others share `other`.
  std::map<std::string, LaneStats> lanes{};
  std::map<std::string, Distribution> grant_claims{};  // claims of granted work, by lane
  Counts lease_events{};                               // by type: acquired, renewed, …
  Counts renewals{};                                   // calls, by outcome: ok, error
  Counts budget_hits{};                                // claims that a budget held back, by dimension
  Counts quota_hits{};                                 // claims that a quota held back: rate, concurrency
  Counts join_policies{};                              // given to joins, by kind
  Counts siblings_cancelled_for{};                     // siblings to be cancelled, by reason
  Counts sibling_dispositions{};                       // their fates
  Counts sibling_reconciliations{};                    // joins without siblings left to cancel
  Counts unblocked{};                                  // released, by the reason they waited for
  Counts budget_breaches;                              // reports over a limit, by `hard` and `soft`
  std::uint64_t budget_resets{0};
  Counts created{};  // executions, by lane
  // By this engine, in the last ten seconds.
  double submitted_per_second{0};
  double completed_per_second{0};
  double failed_per_second{0};
  Counts frames{};  // by mode
  std::uint64_t frame_bytes{0};
};

// The contents of the store, counted by all engines on it.
struct StoreFigures {
  std::map<std::string, std::map<PublicState, std::int64_t>> executions;  // by lane
  std::map<std::string, std::uint64_t> workers;                           // alive, by namespace
  std::uint64_t cancel_backlog{};  // cancelled flows with members to cancel
  std::uint64_t lanes{};           // registered
  bool operator==(const StoreFigures&) const = default;
};
struct ReadFigures {
  using Answer = StoreFigures;
};

// An attempt that has ended.
struct EndedAttempt {
  ExecutionId execution_id;
  AttemptId attempt_id;
  std::uint32_t attempt_index{};
  AttemptType attempt_type{};
  AttemptLifecycle how{};
  std::string worker_id;
  std::string failure_reason;
  std::string failure_category;
  std::int64_t started_at{};
  std::int64_t ended_at{};
};

}  // namespace flowfabric
