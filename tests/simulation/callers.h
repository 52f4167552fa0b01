// Makes random requests, the way many callers and workers would: mostly sensible, often late, repeated,
// stale or malformed. Learns ids and fences from the answers.
#pragma once

#include <deque>
#include <limits>

#include "model/partition.h"
#include "model/random.h"
#include "simulation/state.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

class Callers {
 public:
  Callers(std::uint64_t seed, const std::int64_t& now_ms) : random_(seed), now_(now_ms) {}

  Step next() {
    const auto roll = below(100);
    if (roll < 30) return step(create());
    if (roll < 44) return step(claim());
    if (roll < 50) return step(renew());
    if (roll < 56) return step(progress());
    if (roll < 68) return step(complete());
    if (roll < 78) return step(fail());
    if (roll < 86) return step(delay());
    if (roll < 92) return step(cancel());
    return step(due());
  }

  Step step(Request request) { return {std::move(request), random_.next()}; }

  void learn(const Step& asked, const Answer& answer) {
    if (const auto* create = std::get_if<CreateExecution>(&asked.request)) {
      known_.executions.insert(*create->execution_id);
      ids_.push_back(*create->execution_id);
      known_.lanes.insert(create->lane_id);
      if (!create->idempotency_key.empty()) {
        known_.keys.insert({create->namespace_, create->idempotency_key});
      }
    }
    const auto* claimed = std::get_if<Result<std::vector<ClaimedTask>>>(&answer);
    if (!claimed || !*claimed) return;
    for (const auto& task : **claimed) tasks_.push_front(task);
    while (tasks_.size() > 80) tasks_.pop_back();
  }

  const Known& known() const { return known_; }

  // How far the clock moves on before the next batch.
  std::int64_t pause() {
    const auto roll = below(1000);
    if (roll < 300) return 0;
    if (roll < 900) return between(1, 200);
    if (roll < 995) return between(200, 5000);
    return between(5000, 90'000'000);
  }
  std::size_t batch_size() { return static_cast<std::size_t>(between(1, 40)); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::int64_t below(std::int64_t bound) { return between(0, bound - 1); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.between(0, static_cast<std::uint64_t>(high - low)));
  }
  template <class Container>
  const auto& pick(const Container& container) {
    return container[static_cast<std::size_t>(below(static_cast<std::int64_t>(container.size())))];
  }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  std::string bytes(std::int64_t most) {
    std::string text(static_cast<std::size_t>(below(most + 1)), '\0');
    for (auto& c : text) c = static_cast<char>(below(256));
    return text;
  }

  static constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

  RetryPolicy retries() {
    RetryPolicy policy{.max_retries = static_cast<std::uint32_t>(below(4)), .backoff = {}};
    if (chance(50)) {
      policy.backoff = FixedBackoff{chance(3) ? kHuge : static_cast<std::uint64_t>(below(2000))};
    } else {
      policy.backoff =
          ExponentialBackoff{.initial_delay_ms = chance(3) ? kHuge : static_cast<std::uint64_t>(below(1000)),
                             .max_delay_ms = chance(3) ? kHuge : static_cast<std::uint64_t>(below(5000)),
                             .multiplier = pick({1.0, 1.5, 2.0, 0.1, 1e300}),
                             .jitter = chance(50)};
    }
    if (chance(20)) policy.retryable_categories = {"transient", "timeout"};
    return policy;
  }

  ExecutionPolicy policy() {
    ExecutionPolicy policy;
    if (chance(10)) policy.priority = pick({1, 7, 9001});
    if (chance(5)) policy.delay_until = now_ + between(-100, 2000);
    if (chance(50)) policy.retry_policy = retries();
    if (chance(25)) {
      TimeoutPolicy timeouts;
      if (chance(70)) timeouts.attempt_timeout_ms = chance(3) ? kHuge : random_.between(300, 8000);
      if (chance(30)) timeouts.execution_deadline_ms = chance(3) ? kHuge : random_.between(1, 30'000);
      if (chance(30)) timeouts.max_reclaim_count = static_cast<std::uint32_t>(below(3));
      policy.timeout_policy = timeouts;
    }
    if (chance(15)) policy.max_reclaim_count = static_cast<std::uint32_t>(below(3));
    if (chance(30)) policy.routing_requirements = RoutingRequirements{capabilities(), "", ""};
    if (chance(50)) policy.dedup_window_ms = pick<std::uint64_t>({0, 1000, 5000, 60'000, kHuge});
    return policy;
  }

  std::vector<std::string> capabilities() {
    return chance(50) ? std::vector<std::string>{"gpu"} : std::vector<std::string>{"ssd", "gpu"};
  }

  void spoil(CreateExecution& request) {
    switch (below(8)) {
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

  Request create() {
    CreateExecution request;
    request.lane_id = pick<std::string>({"a", "b", "default"});
    const auto partition = chance(70) ? partition_of_lane(request.lane_id, 256) : below(256);
    request.execution_id = ExecutionId{static_cast<std::uint16_t>(partition), mint_uuid(now_, random_)};
    if (chance(4) && !ids_.empty()) request.execution_id = pick(ids_);
    request.namespace_ = pick<std::string>({"", "", "team"});
    request.execution_kind = "kind";
    request.input = bytes(60);
    request.payload_encoding = pick<std::string>({"", "json"});
    request.priority = pick({0, 0, 0, 1, 5, 9000, -3, 20'000});
    if (chance(25)) request.idempotency_key = "key-" + std::to_string(below(40));
    if (chance(20)) request.tags["cairn.instance_id"] = "i-" + std::to_string(below(3));
    if (chance(10)) request.tags["caller.\"quoted\""] = "\xc3\xa4 \\ \n\t end";
    request.policy = policy();
    if (chance(12)) request.delay_until = now_ + between(-1000, 5000);
    if (chance(8)) request.execution_deadline_at = now_ + between(-10, 20'000);
    if (chance(1)) request.execution_deadline_at = std::numeric_limits<std::int64_t>::max();
    if (chance(4)) spoil(request);
    return request;
  }

  Request claim() {
    ClaimTasks request{.worker_id = "w" + std::to_string(below(4))};
    if (chance(50)) request.worker_instance_id = request.worker_id + "-" + std::to_string(below(2));
    if (chance(40)) request.namespace_ = pick<std::string>({"", "team", "nobody"});
    request.lanes.clear();
    for (const auto* lane : {"a", "b", "default", "empty"}) {
      if (chance(45)) request.lanes.emplace_back(lane);
    }
    if (request.lanes.empty() && !chance(2)) request.lanes = {"a"};
    if (chance(60)) request.capabilities = {"gpu", "ssd", "more"};
    request.max_tasks = static_cast<std::uint32_t>(chance(3) ? pick({0, 257, 20}) : between(1, 5));
    request.lease_ttl_ms = pick({1000, 1000, 3000, 30'000, 3'600'000});
    if (chance(2)) request.lease_ttl_ms = 999;
    return request;
  }

  // A task that was claimed some time ago; rather a late one.
  const ClaimedTask& task() {
    const auto size = static_cast<std::int64_t>(tasks_.size());
    return tasks_[static_cast<std::size_t>(chance(75) ? below(std::min<std::int64_t>(size, 12))
                                                      : below(size))];
  }
  ExecutionId some_id() {
    if (ids_.empty() || chance(3)) return ExecutionId{3, mint_uuid(now_, random_)};
    return pick(ids_);
  }

  // Right most of the time; otherwise another's, a part, or none.
  template <class R>
  R aimed() {
    R request{};
    if (tasks_.empty()) {
      request.execution_id = some_id();
      return request;
    }
    const auto& held = task();
    request.execution_id = held.execution_id;
    request.fence = held.fence;
    const auto roll = below(100);
    if (roll < 5) request.fence = task().fence;
    if (roll >= 5 && roll < 8) request.fence.lease_id.reset();
    if (roll >= 8 && roll < 10) request.fence.attempt_id.reset();
    if (roll >= 10 && roll < 14) request.fence = {};
    if (roll >= 14 && roll < 17) ++*request.fence.lease_epoch;
    if (roll >= 17 && roll < 20) request.execution_id = some_id();
    if constexpr (requires { request.attempt_index; }) request.attempt_index = held.attempt_index;
    return request;
  }

  Request renew() {
    auto request = aimed<RenewLease>();
    if (chance(3)) ++request.attempt_index;
    request.lease_ttl_ms = pick({1000, 2000, 30'000, 5});
    return request;
  }
  Request progress() {
    auto request = aimed<UpdateProgress>();
    if (chance(70)) request.percent = static_cast<std::int32_t>(between(-2, 102));
    if (chance(50)) request.message = "step " + std::to_string(below(10));
    return request;
  }
  std::string source() { return chance(90) ? kLeaseHolder : kOperatorOverride; }
  Request complete() {
    auto request = aimed<CompleteExecution>();
    request.result = bytes(40);
    request.source = source();
    return request;
  }
  Request fail() {
    auto request = aimed<FailExecution>();
    request.reason = chance(3) ? std::string(5000, 'r') : "reason " + std::to_string(below(5));
    request.category = pick<std::string>(
        {"transient", "transient", "timeout", "permanent", "cancelled", "infra_crash", "handler_error", ""});
    request.source = source();
    return request;
  }
  Request delay() {
    auto request = aimed<DelayExecution>();
    request.delay_until = chance(3) ? -1 : now_ + between(-500, 3000);
    if (chance(1)) request.delay_until = std::numeric_limits<std::int64_t>::max();
    request.source = source();
    return request;
  }
  Request cancel() {
    auto request = aimed<CancelExecution>();
    if (chance(50)) request.execution_id = some_id();
    if (chance(60)) request.fence = {};
    request.reason = "because";
    request.source = pick<std::string>(
        {kOperatorOverride, "flow_cascade", "system_timeout", kLeaseHolder, kLeaseHolder, "", "somebody"});
    return request;
  }
  Request due() {
    if (chance(20)) {
      return RunDue{CreateDedupKey{pick<std::string>({"", "team"}), "key-" + std::to_string(below(40))}};
    }
    return RunDue{tasks_.empty() || chance(50) ? some_id() : task().execution_id};
  }

  Random random_;
  const std::int64_t& now_;
  Known known_;
  std::vector<ExecutionId> ids_;
  std::deque<ClaimedTask> tasks_;  // the latest first
};

}  // namespace flowfabric::simulation
