// Makes random executions: of every policy, and now and then malformed.
#pragma once

#include <deque>
#include <limits>

#include "flowfabric/operations.h"
#include "model/partition.h"
#include "simulation/dice.h"
#include "simulation/limit_callers.h"

namespace flowfabric::simulation {

class Submitter {
 public:
  Submitter(Dice& dice, const std::int64_t& now_ms) : dice_(dice), now_(now_ms) {}

  // `known` are ids that were used before.
  CreateExecution create(const std::deque<ExecutionId>& known) {
    CreateExecution request;
    request.lane_id = dice_.pick<std::string>({"a", "b", "default"});
    const auto partition = dice_.chance(70) ? partition_of_lane(request.lane_id, 256) : dice_.below(256);
    request.execution_id = ExecutionId{static_cast<std::uint16_t>(partition), dice_.uuid(now_)};
    if (dice_.chance(4) && !known.empty()) request.execution_id = dice_.pick(known);
    request.namespace_ = dice_.pick<std::string>({"", "", "team"});
    request.execution_kind = dice_.pick<std::string>({"kind", "kind", "", "other"});
    request.input = dice_.bytes(60);
    request.payload_encoding = dice_.pick<std::string>({"", "json"});
    request.priority = dice_.pick({0, 0, 0, 1, 5, 9000, -3, 20'000});
    if (dice_.chance(25)) request.idempotency_key = dice_.name("key-", 40);
    if (dice_.chance(20)) request.tags["cairn.instance_id"] = dice_.name("i-", 3);
    if (dice_.chance(10)) request.tags["caller.\"quoted\""] = "\xc3\xa4 \\ \n\t end";
    if (dice_.chance(15)) request.tags["test.color"] = dice_.pick<std::string>({"", "red", "green"});
    request.policy = policy();
    if (dice_.chance(12)) request.delay_until = now_ + dice_.between(-1000, 5000);
    if (dice_.chance(8)) request.execution_deadline_at = now_ + dice_.between(-10, 20'000);
    if (dice_.chance(1)) request.execution_deadline_at = std::numeric_limits<std::int64_t>::max();
    if (dice_.chance(4)) spoil(request);
    return request;
  }

 private:
  static constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t duration(std::int64_t low, std::int64_t high) {
    return dice_.chance(3) ? kHuge : static_cast<std::uint64_t>(dice_.between(low, high));
  }
  std::uint32_t few(std::int64_t bound) { return static_cast<std::uint32_t>(dice_.below(bound)); }

  RetryPolicy retries() {
    RetryPolicy policy{.max_retries = few(4), .backoff = {}};
    if (dice_.chance(50)) {
      policy.backoff = FixedBackoff{duration(0, 2000)};
    } else {
      policy.backoff = ExponentialBackoff{.initial_delay_ms = duration(0, 1000),
                                          .max_delay_ms = duration(0, 5000),
                                          .multiplier = dice_.pick({1.0, 1.5, 2.0, 0.1, 1e300}),
                                          .jitter = dice_.chance(50)};
    }
    if (dice_.chance(20)) policy.retryable_categories = {"transient", "timeout"};
    return policy;
  }

  TimeoutPolicy timeouts() {
    TimeoutPolicy policy;
    if (dice_.chance(70)) policy.attempt_timeout_ms = duration(300, 8000);
    if (dice_.chance(30)) policy.execution_deadline_ms = duration(1, 30'000);
    if (dice_.chance(30)) policy.max_reclaim_count = few(3);
    return policy;
  }

  FallbackPolicy fallbacks() {
    FallbackPolicy policy;
    for (auto tiers = dice_.below(4); tiers > 0; --tiers) {
      FallbackTier tier{.provider = dice_.name("provider-", 2), .model = dice_.name("model-", 3)};
      if (dice_.chance(30)) tier.timeout_ms = duration(0, 3000);
      policy.tiers.push_back(std::move(tier));
    }
    return policy;
  }

  SuspensionPolicy suspensions() {
    SuspensionPolicy policy;
    if (dice_.chance(70)) policy.default_timeout_ms = duration(0, 5000);
    policy.timeout_behavior = dice_.pick<std::string>({"fail", "cancel", "escalate", "auto_resume"});
    return policy;
  }

  ExecutionPolicy policy() {
    ExecutionPolicy policy;
    if (dice_.chance(10)) policy.priority = dice_.pick({1, 7, 9001});
    if (dice_.chance(5)) policy.delay_until = now_ + dice_.between(-100, 2000);
    if (dice_.chance(50)) policy.retry_policy = retries();
    if (dice_.chance(25)) policy.timeout_policy = timeouts();
    if (dice_.chance(15)) policy.max_reclaim_count = few(3);
    if (dice_.chance(15)) policy.fallback_policy = fallbacks();
    if (dice_.chance(20)) policy.max_replay_count = few(3);
    if (dice_.chance(30)) policy.routing_requirements = RoutingRequirements{capabilities(), "", ""};
    if (dice_.chance(50)) policy.dedup_window_ms = dice_.pick<std::uint64_t>({0, 1000, 5000, 60'000, kHuge});
    if (dice_.chance(10)) policy.suspension_policy = suspensions();
    if (dice_.chance(5)) policy.max_signals_per_execution = few(4);
    LimitCallers::limit(dice_, policy);
    if (dice_.chance(20)) {
      policy.stream_policy = StreamPolicy{};
      if (dice_.chance(60))
        policy.stream_policy->retention_maxlen = static_cast<std::uint64_t>(dice_.below(4));
      if (dice_.chance(80)) policy.stream_policy->retention_ttl_ms = duration(0, 5000);
    }
    return policy;
  }

  std::vector<std::string> capabilities() {
    return dice_.chance(50) ? std::vector<std::string>{"gpu"} : std::vector<std::string>{"ssd", "gpu"};
  }

  void spoil(CreateExecution& request) {
    switch (dice_.below(8)) {
      case 0:
        request.lane_id = std::string(65, 'x');
        return;
      case 1:
        request.lane_id.clear();
        return;
      case 2:
        request.execution_id->partition = 256;
        return;
      case 3:
        request.execution_kind = std::string("a\0b", 3);
        return;
      case 4:
        request.delay_until = -1;
        return;
      case 5:
        request.tags[""] = "no key";
        return;
      case 6:
        request.policy.routing_requirements = RoutingRequirements{{"a,b"}, "", ""};
        return;
      default:
        request.creator_identity = "\xff";
        return;
    }
  }

  Dice& dice_;
  const std::int64_t& now_;
};

}  // namespace flowfabric::simulation
