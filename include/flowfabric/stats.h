// What an engine has counted since it was opened, and what its store holds: for those who watch it.
//
// Everything that operations did is counted when it is committed, once: not what was refused, and not what
// ran again.
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

// How values are spread: `counts[i]` of them lie between the bound before and `bounds[i]`, the last above
// all.
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
  Counts attempts{};  // that ended, by outcome: ok, error, timeout, cancelled, retry
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
  Distribution commit_seconds{};          // of it, writing and making durable
  std::uint64_t round_trips{0};           // of the committers, to a store across a network
  Counts store_failures{};                // batches and reads that failed, maybe to be run again, by kind
  std::uint64_t shutdown_timeouts{0};     // stops whose grace was not enough for what was queued

  // ---- now ----
  std::uint64_t queued{0};  // operations that no batch has taken yet
  std::uint64_t queued_bytes{0};
  std::uint64_t max_queued{0};
  bool queue_is_full{false};  // a committer answers `resource_exhausted`
  // Why the last commit failed, if that was within half a minute and none has succeeded since.
  std::string store_trouble{};
  std::uint64_t waiting_claims{0};
  std::uint64_t watchers{0};

  // ---- the clock ----
  bool clock_is_on{false};
  std::uint64_t clock_looks{0};  // finished ones, also those that found nothing
  std::uint64_t clock_operations{0};
  std::uint64_t clock_failures{0};  // of them, those that will be tried again
  std::uint64_t clock_filtered{0};  // of them, those that became others' meanwhile (`scanner_filter`)
  std::uint64_t clock_resting{0};   // records that fail again and again and are left alone for a while, now
  std::uint64_t clock_restarts{0};  // looks that ended by an exception
  std::int64_t clock_lag_ms{0};     // how long the oldest due record has been due, after the last look
  std::int64_t since_clock_look_ms{0};
  bool clock_is_stalled{false};  // that is too long
  std::string clock_trouble{};   // why the last look was not finished, if it was not
  // By the names of the rules: lease_expiry, edge_cancel_dispatcher, …
  Counts clock_rules{};   // how often each has fired; rules that never did are left out
  Counts clock_errors{};  // how often it failed
  std::map<std::string, Distribution> clock_seconds{};  // in each look, until it was through; all rules

  // ---- what operations did ----
  // For each of the first 200 lanes that were seen; the others share `other`.
  std::map<std::string, LaneStats> lanes{};
  std::map<std::string, Distribution> grant_claims{};  // claims of granted work, by lane
  Counts lease_events{};                               // by type: acquired, renewed, …
  Counts renewals{};                                   // calls, by outcome: ok, error
  Counts budget_hits{};                                // claims that a budget held back, by dimension
  Counts quota_hits{};                                 // claims that a quota held back: rate, concurrency
  Counts join_policies{};                              // given to joins, by kind
  Counts siblings_cancelled_for{};                     // siblings that were to be cancelled, by reason
  Counts sibling_dispositions{};                       // what became of them
  Counts sibling_reconciliations{};                    // joins that nothing had to be cancelled for any more
  Counts unblocked{};                                  // let go, by what they waited for
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

// What the store holds, counted by all engines on it.
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
