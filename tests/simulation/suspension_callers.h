// Suspends, signals and resumes at random, the way workers and the world outside would: mostly sensible,
// often late, repeated, forged or malformed.
#pragma once

#include "core/suspension/resume_condition.h"
#include "simulation/dice.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

class SuspensionCallers {
 public:
  SuspensionCallers(Dice& dice, const std::int64_t& now_ms) : dice_(dice), now_(now_ms) {}

  // ---- workers ----

  // The execution and the fence are given.
  Request suspend(SuspendExecution request) {
    if (!suspends_.empty() && dice_.chance(8)) return dice_.pick(suspends_);
    request.resume_condition = condition(0, {"a", "b", "c"});
    if (!pending_.empty() && dice_.chance(25)) {
      bind_pending(request, dice_.pick_late(pending_, 6));
    } else {
      bind(request);
    }
    if (dice_.chance(50)) request.attempt_index.reset();
    if (request.attempt_index && dice_.chance(2)) ++*request.attempt_index;
    if (dice_.chance(20)) request.suspension_id = SuspensionId{dice_.uuid(now_)};
    request.reason_code = dice_.pick({SuspensionReason::waiting_for_signal, SuspensionReason::manual_pause,
                                      SuspensionReason::waiting_for_approval});
    set_timeout(request);
    if (dice_.chance(20)) request.resume_policy.resume_delay_ms = dice_.between(0, 2000);
    if (dice_.chance(1)) request.resume_policy.close_waitpoint_on_resume = false;
    if (dice_.chance(30)) request.idempotency_key = dice_.name("s-", 4);
    if (dice_.chance(10)) request.continuation_metadata_pointer = "s3://somewhere";
    remember(suspends_, request, 20);
    return request;
  }
  Request create_waitpoint(CreateWaitpoint request) {
    if (dice_.chance(50)) request.attempt_index.reset();
    request.waitpoint_key = dice_.pick<std::string>({"a", "a", "b", ""});
    request.expires_in_ms = dice_.chance(65) ? 60'000 : dice_.below(400);
    if (dice_.chance(3)) request.expires_in_ms = dice_.pick({std::int64_t{-1}, kForever});
    return request;
  }

  // ---- those outside ----

  Request signal(const ExecutionId& nobody) {
    if (!signals_.empty() && dice_.chance(8)) return dice_.pick(signals_);
    const auto known = waitpoint(nobody);
    DeliverSignal request{.execution_id = known.execution_id,
                          .waitpoint_id = known.waitpoint.waitpoint_id,
                          .waitpoint_token = known.waitpoint.waitpoint_token,
                          .signal_name = name()};
    if (dice_.chance(30)) request.signal_id = SignalId{dice_.uuid(now_)};
    // One who sends the same signal to several waitpoints.
    if (!signals_.empty() && dice_.chance(5)) request.signal_id = dice_.pick(signals_).signal_id;
    request.source_type = dice_.pick<std::string>({"external", "external", "a", "a:b"});
    request.source_identity = dice_.pick<std::string>({"", "ann", "b:c", "c"});
    if (dice_.chance(60)) request.payload = dice_.bytes(30);
    if (dice_.chance(30)) request.idempotency_key = dice_.name("i-", 3);
    request.dedup_ttl_ms = dice_.pick({std::int64_t{0}, std::int64_t{800}, std::int64_t{86'400'000}});
    if (dice_.chance(10)) request.resume_delay_ms = dice_.between(0, 2000);
    if (dice_.chance(10)) request.created_at = now_ - 5;
    if (dice_.chance(3)) request.max_signals_per_execution = 2;
    if (dice_.chance(4)) spoil(request);
    if (dice_.chance(10)) forge(request, nobody);
    remember(signals_, request, 20);
    return request;
  }
  template <class LaneOf>
  Request approve(const ExecutionId& nobody, LaneOf lane_of) {
    const auto known = waitpoint(nobody);
    DeliverApprovalSignal request{.execution_id = known.execution_id,
                                  .lane_id = lane_of(known.execution_id),
                                  .waitpoint_id = known.waitpoint.waitpoint_id,
                                  .signal_name = name()};
    request.idempotency_suffix = dice_.chance(60) ? dice_.name("by-", 2) : "";
    if (dice_.chance(4)) request.waitpoint_id = WaitpointId{dice_.uuid(now_)};
    return request;
  }

  // ---- operators ----

  Request resume(const ExecutionId& nobody) {
    ResumeExecution request{.execution_id = waitpoint(nobody).execution_id};
    if (dice_.chance(30)) request.resume_delay_ms = dice_.chance(10) ? -1 : dice_.below(2000);
    return request;
  }
  Request close(const ExecutionId& nobody) {
    const auto known = waitpoint(nobody);
    CloseWaitpoint request{.execution_id = known.execution_id, .waitpoint_id = known.waitpoint.waitpoint_id};
    if (dice_.chance(30)) request.reason = dice_.pick<std::string>({"", "not needed"});
    if (dice_.chance(4)) request.waitpoint_id = WaitpointId{dice_.uuid(now_)};
    return request;
  }
  Request seed() {
    return SeedWaitpointSecret{.kid = kid(dice_.below(2)), .secret_hex = secret_of(dice_.below(2))};
  }
  // Mostly to a new one; now and then to one that was there before.
  Request rotate() {
    const auto number = dice_.chance(60) ? ++kids_ : dice_.below(kids_ + 1);
    RotateWaitpointSecret request{.new_kid = kid(number), .new_secret_hex = secret_of(number)};
    request.grace_ms = dice_.pick<std::int64_t>({0, 3000, 86'400'000, 86'400'000});
    const auto roll = dice_.below(100);
    if (roll < 4) request.new_secret_hex = secret_of(number + 1);
    if (roll >= 4 && roll < 10) request.new_secret_hex = "zz";
    if (roll >= 10 && roll < 16) request.new_kid = "a:b";
    if (roll >= 16 && roll < 22) request.grace_ms = -1;
    return request;
  }

  RecordKey due(const ExecutionId& nobody) {
    const auto known = waitpoint(nobody);
    const auto& id = known.execution_id;
    if (dice_.chance(50)) return record_key<Suspension>({id.partition, id.uuid});
    return record_key<Waitpoint>({id.partition, id.uuid, known.waitpoint.waitpoint_id});
  }
  // A request about an execution that has waitpoints.
  ExecutionId some_execution(const ExecutionId& nobody) { return waitpoint(nobody).execution_id; }

  // ---- learning ----

  void learn(const SuspendExecution& request, const Suspended& answer) {
    for (const auto& each : answer.waitpoints) learn_waitpoint(request.execution_id, each);
  }
  void learn(const CreateWaitpoint& request, const TokenedWaitpoint& answer) {
    learn_waitpoint(request.execution_id, answer);
    remember(pending_, Known{request.execution_id, answer, request.fence}, 20);
  }

 private:
  struct Known {
    ExecutionId execution_id;
    TokenedWaitpoint waitpoint;
    LeaseFence fence{};  // of who has made it before suspending
  };
  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

  void learn_waitpoint(const ExecutionId& id, const TokenedWaitpoint& waitpoint) {
    remember(known_, Known{id, waitpoint, {}}, 60);
  }
  Known waitpoint(const ExecutionId& nobody) {
    if (known_.empty() || dice_.chance(2)) return {nobody, {WaitpointId{dice_.uuid(now_)}, "a", "k0:12"}, {}};
    return dice_.pick_late(known_, 12);
  }

  // ---- conditions and waitpoints ----

  std::string name() { return dice_.pick<std::string>({"go", "go", "go", "stop", "more"}); }
  SignalMatcher matcher() { return dice_.chance(50) ? SignalMatcher{} : SignalMatcher{name()}; }

  ResumeCondition condition(int depth, const std::vector<std::string>& keys) {
    const auto roll = dice_.below(100);
    if (roll < 4) return {SingleSignal{"", matcher()}};  // of the first waitpoint
    if (roll < 45) return {SingleSignal{dice_.pick(keys), matcher()}};
    if (roll < 65) return {count(keys)};
    if (roll < 68) return {OperatorOnly{}};
    if (roll < 71) return {TimeoutOnly{}};
    if (depth > 4) return {SingleSignal{keys.front(), {}}};
    AllOf all;
    for (auto members = dice_.chance(2) ? 0 : dice_.between(1, 3); members > 0; --members) {
      all.members.push_back(condition(depth + 1, keys));
    }
    return {std::move(all)};
  }
  CountOf count(const std::vector<std::string>& keys) {
    using enum CountKind;
    CountOf count{.n = static_cast<std::uint32_t>(dice_.between(1, 3)),
                  .count_kind = dice_.pick({distinct_waitpoints, distinct_signals, distinct_sources}),
                  .matcher = matcher(),
                  .waitpoints = {}};
    for (const auto& key : keys) {
      if (count.waitpoints.empty() || dice_.chance(40)) count.waitpoints.push_back(key);
    }
    const auto different = static_cast<std::uint32_t>(count.waitpoints.size());
    if (count.count_kind == distinct_waitpoints && !dice_.chance(3)) count.n = std::min(count.n, different);
    return count;
  }

  // Most are made by themselves, for each key one.
  void bind(SuspendExecution& request) {
    const auto roll = dice_.below(100);
    if (roll < 15) {
      const auto* known = waitpoint_of(request.execution_id, pending_);
      if (known == nullptr) return;
      use(request, known->waitpoint);
    } else if (roll < 60) {
      for (const auto& key : core::keys_of(request.resume_condition)) {
        request.waitpoints.push_back({.waitpoint_id = WaitpointId{dice_.uuid(now_)}, .waitpoint_key = key});
      }
      if (!request.waitpoints.empty() && dice_.chance(5)) request.waitpoints.front().waitpoint_key = "z";
    } else if (roll < 64) {
      const auto* known = waitpoint_of(request.execution_id, known_);
      if (known == nullptr) return;
      request.resume_condition = {SingleSignal{"a", matcher()}};
      request.waitpoints = {{.waitpoint_id = known->waitpoint.waitpoint_id}};
    }
  }
  void bind_pending(SuspendExecution& request, const Known& known) {
    request.execution_id = known.execution_id;
    request.fence = known.fence;
    request.attempt_index.reset();
    use(request, known.waitpoint);
  }
  void use(SuspendExecution& request, const TokenedWaitpoint& waitpoint) {
    request.resume_condition = condition(2, {waitpoint.waitpoint_key});
    request.waitpoints = {{.waitpoint_id = waitpoint.waitpoint_id, .use_pending = true}};
    if (dice_.chance(2)) request.waitpoints.front().waitpoint_id = WaitpointId{dice_.uuid(now_)};
    if (dice_.chance(3)) request.waitpoints.push_back({.waitpoint_key = "b"});
  }
  // Mostly one of this execution.
  const Known* waitpoint_of(const ExecutionId& id, const std::deque<Known>& list) {
    for (const auto& known : list) {
      if (known.execution_id == id) return &known;
    }
    return list.empty() || !dice_.chance(20) ? nullptr : &dice_.pick(list);
  }

  void set_timeout(SuspendExecution& request) {
    using enum TimeoutBehavior;
    if (dice_.chance(60)) request.timeout_at = now_ + dice_.between(-500, 6000);
    if (dice_.chance(1)) request.timeout_at = now_ - 700'000;
    if (dice_.chance(85)) {
      request.timeout_behavior =
          dice_.pick({fail, cancel, expire, escalate, auto_resume_with_timeout_signal, auto_resume});
    }
    if (dice_.chance(10)) request.timeout_signal_name = dice_.pick<std::string>({"woke_up", "__x", ""});
  }

  // ---- signals ----

  void spoil(DeliverSignal& request) {
    switch (dice_.below(5)) {
      case 0:
        request.signal_name.clear();
        return;
      case 1:
        request.signal_name = "__operator_only__";
        return;
      case 2:
        request.payload = std::string(65'537, 'p');
        return;
      case 3:
        request.idempotency_key = std::string("a\0b", 3);
        return;
      default:
        request.source_identity = "\xff";
        return;
    }
  }
  void forge(DeliverSignal& request, const ExecutionId& nobody) {
    auto& token = request.waitpoint_token;
    switch (dice_.below(8)) {
      case 0:
        token.clear();
        return;
      case 1:
        token.back() = token.back() == '0' ? '1' : '0';
        return;
      case 2:
        token = waitpoint(nobody).waitpoint.waitpoint_token;
        return;
      case 3:
        token = "unknown" + token.substr(token.find(':'));
        return;
      case 4:
        token = token.substr(token.find(':') + 1);
        return;
      case 5:
        token = std::string("k\0\xff", 3) + token.substr(token.find(':'));
        return;
      case 6:
        request.waitpoint_id = waitpoint(nobody).waitpoint.waitpoint_id;
        return;
      default:
        request.execution_id = waitpoint(nobody).execution_id;
        return;
    }
  }

  static std::string kid(std::int64_t number) { return "k" + std::to_string(number); }
  static std::string secret_of(std::int64_t number) {
    constexpr const char* digits = "0123456789abcdef";
    return std::string(63, digits[number % 16]) + digits[number / 16 % 16];
  }

  Dice& dice_;
  const std::int64_t& now_;
  std::int64_t kids_{1};
  // The latest first.
  std::deque<Known> known_;
  std::deque<Known> pending_;
  std::deque<SuspendExecution> suspends_;
  std::deque<DeliverSignal> signals_;
};

}  // namespace flowfabric::simulation
