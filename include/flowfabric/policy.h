// The policy of an execution: frozen when it is created, defaults as here. The JSON form is in
// src/model/policy_json.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"

namespace flowfabric {

inline constexpr std::int32_t kMinPriority = 0;
inline constexpr std::int32_t kMaxPriority = 9000;
inline constexpr std::uint32_t kDefaultMaxReclaimCount = 100;
inline constexpr std::uint32_t kDefaultMaxReplayCount = 10;
inline constexpr std::uint32_t kDefaultMaxSignals = 10'000;
inline constexpr std::int64_t kDefaultDedupWindowMs = 86'400'000;
inline constexpr std::size_t kMaxCapabilityTokens = 256;
inline constexpr std::size_t kMaxCapabilityBytes = 4096;
inline constexpr std::size_t kMaxPolicyEntries = 64;  // of each list in a policy except the capabilities

struct FixedBackoff {
  std::uint64_t delay_ms{1000};
  bool operator==(const FixedBackoff&) const = default;
};
struct ExponentialBackoff {
  std::uint64_t initial_delay_ms{1000};
  std::uint64_t max_delay_ms{60'000};
  double multiplier{2.0};
  bool jitter{false};
  bool operator==(const ExponentialBackoff&) const = default;
};
using Backoff = std::variant<ExponentialBackoff, FixedBackoff>;

struct RetryPolicy {
  std::uint32_t max_retries{3};
  Backoff backoff;
  std::vector<std::string> retryable_categories;  // empty: every category that may retry at all
  bool operator==(const RetryPolicy&) const = default;
};

struct TimeoutPolicy {
  std::optional<std::uint64_t> attempt_timeout_ms;
  std::optional<std::uint64_t> execution_deadline_ms;  // from creation
  std::optional<std::uint32_t> max_reclaim_count;      // used when the top-level one is not set
  bool operator==(const TimeoutPolicy&) const = default;
};

struct SuspensionPolicy {
  std::optional<std::uint64_t> default_timeout_ms;
  std::string timeout_behavior{"fail"};
  bool operator==(const SuspensionPolicy&) const = default;
};

struct FallbackTier {
  std::string provider;
  std::string model;
  std::optional<std::uint64_t> timeout_ms;
  bool operator==(const FallbackTier&) const = default;
};
struct FallbackPolicy {
  std::vector<FallbackTier> tiers;
  bool operator==(const FallbackPolicy&) const = default;
};

struct RoutingRequirements {
  std::vector<std::string> required_capabilities;
  std::string preferred_locality;  // empty: none
  std::string isolation_level;     // empty: none
  bool operator==(const RoutingRequirements&) const = default;
};

struct StreamPolicy {
  std::string durability_mode{"buffered"};  // or "durable"
  std::uint64_t retention_maxlen{10'000};
  std::optional<std::uint64_t> retention_ttl_ms;  // of the whole execution, once terminal
  bool operator==(const StreamPolicy&) const = default;
};

struct ExecutionPolicy {
  std::int32_t priority{0};                 // used when the create call gives none
  std::optional<std::int64_t> delay_until;  // likewise
  std::optional<RetryPolicy> retry_policy;  // absent: no retries
  std::optional<TimeoutPolicy> timeout_policy;
  std::optional<std::uint32_t> max_reclaim_count;
  std::optional<SuspensionPolicy> suspension_policy;
  std::optional<FallbackPolicy> fallback_policy;
  std::uint32_t max_replay_count{kDefaultMaxReplayCount};
  std::vector<BudgetId> budget_ids;
  std::optional<QuotaPolicyId> quota_policy_id;
  std::optional<RoutingRequirements> routing_requirements;
  std::optional<std::uint64_t> dedup_window_ms;  // 0: keys are not remembered
  std::optional<StreamPolicy> stream_policy;
  std::uint32_t max_signals_per_execution{kDefaultMaxSignals};  // 0: unlimited

  bool operator==(const ExecutionPolicy&) const = default;

  // Top-level value, else the one inside the timeout policy, else the default.
  std::uint32_t reclaim_cap() const;
};

// Refuses errors that the types alone allow: bad capability tokens, a multiplier that is not a number,
// unknown words.
Result<void> validate(const ExecutionPolicy& policy);

}  // namespace flowfabric
