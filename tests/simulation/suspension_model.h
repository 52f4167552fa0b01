// A model of suspensions, built from the answers alone: who is suspended on which waitpoints, which signals
// have arrived there, and which of them the resumed worker must get. The model judges conditions over all
// signals; the engine keeps a set of met nodes instead.
#pragma once

#include <gtest/gtest.h>

#include <span>

#include "core/context.h"
#include "core/suspension/resume_condition.h"
#include "simulation/state.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

using Signals = std::span<const ResumeSignal>;

struct Tally {
  bool met{false};
  std::size_t counted{0};  // how often a signal was the first of its kind at a node
};

inline Tally tally(const ResumeCondition& condition, Signals signals) {
  const auto matches = [](const SignalMatcher& matcher, const ResumeSignal& signal) {
    return !matcher.name || *matcher.name == signal.signal_name;
  };
  if (const auto* single = std::get_if<SingleSignal>(&condition.node)) {
    const bool met = std::ranges::any_of(signals, [&](const ResumeSignal& signal) {
      return signal.waitpoint_key == single->waitpoint_key && matches(single->matcher, signal);
    });
    return {met, met ? 1u : 0u};
  }
  if (const auto* count = std::get_if<CountOf>(&condition.node)) {
    std::set<WaitpointId> waitpoints;
    std::set<SignalId> ids;
    std::set<std::pair<std::string, std::string>> sources;
    for (const auto& signal : signals) {
      const bool listens = std::ranges::count(count->waitpoints, signal.waitpoint_key) > 0;
      if (!listens || !matches(count->matcher, signal)) continue;
      waitpoints.insert(signal.waitpoint_id);
      ids.insert(signal.signal_id);
      sources.insert({signal.source_type, signal.source_identity});
    }
    const auto counted = count->count_kind == CountKind::distinct_waitpoints ? waitpoints.size()
                         : count->count_kind == CountKind::distinct_signals  ? ids.size()
                                                                             : sources.size();
    return {counted >= count->n, counted};
  }
  if (const auto* all = std::get_if<AllOf>(&condition.node)) {
    Tally sum{.met = true};
    for (const auto& member : all->members) {
      const auto part = tally(member, signals);
      sum = {sum.met && part.met, sum.counted + part.counted};
    }
    return sum;
  }
  return {};
}

// The signals that have contributed.
inline std::vector<ResumeSignal> satisfiers(const ResumeCondition& condition, Signals signals) {
  std::vector<ResumeSignal> found;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    const auto before = tally(condition, signals.first(i)).counted;
    if (tally(condition, signals.first(i + 1)).counted > before) found.push_back(signals[i]);
  }
  return found;
}

class SuspensionModel {
 public:
  // ---- the life of an execution ----

  void created(const ExecutionId& id, const ExecutionPolicy& policy) {
    executions_[id].policy = policy.suspension_policy;
  }
  void purged(const ExecutionId& id) { executions_.erase(id); }
  void ended(const ExecutionId& id) {
    auto& known = executions_[id];
    known.owed.clear();
    if (!known.open) return;
    for (auto& [waitpoint_id, waitpoint] : known.waitpoints) waitpoint.state = WaitpointState::closed;
    known.open.reset();
  }
  void claimed(const ClaimedTask& task) {
    auto& known = executions_[task.execution_id];
    EXPECT_FALSE(known.open) << task.execution_id.to_string() << " was handed out while it was suspended";
    if (known.by_timeout && !known.owed.empty() && !task.resume_signals.empty()) {
      known.owed.back().signal_id = task.resume_signals.back().signal_id;  // only the engine knows it
    }
    EXPECT_TRUE(task.resume_signals == known.owed)
        << task.execution_id.to_string() << " was given " << task.resume_signals.size() << " signals of "
        << known.owed.size();
    known.owed.clear();
    known.by_timeout = false;
  }

  // ---- suspending ----

  // False: the call repeats an earlier one.
  bool suspended(const SuspendExecution& request, const Suspended& answer, std::int64_t now_ms) {
    const auto name = request.execution_id.to_string();
    auto& known = executions_[request.execution_id];
    const auto same_fence = std::ranges::find(known.by_fence, request.fence, &KnownFence::first);
    if (same_fence != known.by_fence.end() && request.idempotency_key.empty()) {
      EXPECT_EQ(answer.suspension_id, same_fence->second) << name << ": a fence suspends once";
    }
    if (const auto it = known.answers.find(answer.suspension_id); it != known.answers.end()) {
      EXPECT_TRUE(it->second == answer) << name << ": a repeated call gets another answer";
      return false;
    }
    known.answers[answer.suspension_id] = answer;
    EXPECT_FALSE(known.open) << name << " was suspended twice";
    const bool pending = !request.waitpoints.empty() && request.waitpoints.front().use_pending;
    Open open = opened(request, answer, known.policy, now_ms);
    if (pending) open.signals = known.waitpoints[answer.waitpoints.front().waitpoint_id].signals;
    for (const auto& each : answer.waitpoints) {
      const auto it = known.waitpoints.find(each.waitpoint_id);
      EXPECT_EQ(it != known.waitpoints.end(), pending) << name << ": a waitpoint that was there before";
      EXPECT_TRUE(!pending || it->second.state == WaitpointState::pending) << name;
      auto& waitpoint = known.waitpoints[each.waitpoint_id];
      if (!pending) waitpoint = made(each);
      EXPECT_EQ(waitpoint.token, each.waitpoint_token) << name << ": a token has changed";
      waitpoint.state = WaitpointState::active;
    }
    known.open = std::move(open);
    judge_buffered(known, answer, name);
    if (known.open) known.by_fence.emplace_back(request.fence, answer.suspension_id);
    return true;
  }

  void made_pending(const CreateWaitpoint& request, const TokenedWaitpoint& answer, std::int64_t now_ms) {
    auto& known = executions_[request.execution_id];
    EXPECT_FALSE(known.waitpoints.contains(answer.waitpoint_id)) << "a waitpoint that was there before";
    auto waitpoint = made(answer);
    waitpoint.expires_at = core::saturating_add(now_ms, static_cast<std::uint64_t>(request.expires_in_ms));
    known.waitpoints[answer.waitpoint_id] = std::move(waitpoint);
  }
  void closed(const CloseWaitpoint& request, const WaitpointClosed& answer) {
    auto& waitpoint = executions_[request.execution_id].waitpoints.at(request.waitpoint_id);
    EXPECT_TRUE(answer.already_closed || waitpoint.state != WaitpointState::closed) << "closed twice";
    waitpoint.state = WaitpointState::closed;
  }
  void pending_expired(const WaitpointRecordKey& key, std::int64_t now_ms) {
    auto& waitpoint = executions_[{key.partition_key, key.execution_id}].waitpoints.at(key.waitpoint_id);
    EXPECT_EQ(waitpoint.state, WaitpointState::pending);
    EXPECT_LE(waitpoint.expires_at, now_ms) << "a pending waitpoint was closed before its time";
    waitpoint.state = WaitpointState::closed;
  }

  // ---- signals ----

  void delivered(const DeliverSignal& request, const SignalDelivered& answer, std::int64_t now_ms) {
    EXPECT_TRUE(is_genuine(request, now_ms)) << "a forged signal was accepted";
    accepted(request, answer, now_ms);
  }
  void refused(const DeliverSignal& request, const Error& error, std::int64_t now_ms) const {
    const bool as_forged = error.code == ErrorCode::missing_token || error.code == ErrorCode::invalid_token ||
                           error.code == ErrorCode::token_expired;
    EXPECT_FALSE(as_forged && is_genuine(request, now_ms)) << "a genuine signal was taken for a forged one";
  }
  void approved(const DeliverApprovalSignal& request, const SignalDelivered& answer, std::int64_t now_ms) {
    DeliverSignal signal{.execution_id = request.execution_id,
                         .waitpoint_id = request.waitpoint_id,
                         .waitpoint_token = "",
                         .signal_name = request.signal_name,
                         .signal_category = "approval",
                         .source_type = "operator"};
    signal.idempotency_key = "approval:" + request.signal_name + ":" + request.idempotency_suffix;
    accepted(signal, answer, now_ms);
  }

  // ---- other ends ----

  void resumed_by_operator(const ExecutionId& id) {
    EXPECT_TRUE(executions_[id].open) << id.to_string() << " was resumed and not suspended";
    resumed(executions_[id], {});
  }
  // True: the execution has ended with it.
  bool timed_out(const ExecutionId& id, std::int64_t now_ms) {
    auto& known = executions_[id];
    const bool open = known.open && known.open->timeout_at;
    EXPECT_TRUE(open) << id.to_string() << " has timed out and waits for no time";
    if (!open) return false;
    EXPECT_LE(*known.open->timeout_at, now_ms) << id.to_string() << " has timed out too early";
    if (known.open->behavior == TimeoutBehavior::escalate) {
      known.open->timeout_at.reset();
      return false;
    }
    const bool with_signal = known.open->behavior == TimeoutBehavior::auto_resume_with_timeout_signal;
    if (!with_signal && known.open->behavior != TimeoutBehavior::auto_resume) return true;
    auto signals = satisfiers(known.open->condition, known.open->signals);
    if (with_signal) {
      signals.push_back(timeout_signal(known, now_ms));
      ++known.accepted;
      ++all_accepted_;
    }
    resumed(known, std::move(signals));
    known.by_timeout = with_signal;
    return false;
  }

  // ---- secrets ----

  void seeded(const SeedWaitpointSecret& request, const SecretSeeded& answer) {
    if (!answer.same_secret) install(request.kid, request.secret_hex);
  }
  void rotated(const RotateWaitpointSecret& request, const SecretRotated& answer, std::int64_t now_ms) {
    EXPECT_EQ(answer.noop, secrets_.contains(request.new_kid)) << request.new_kid;
    if (answer.noop) return;
    const auto collected = std::erase_if(
        secrets_, [&](const auto& kept) { return kept.second.expires_at.value_or(now_ms) < now_ms; });
    EXPECT_EQ(answer.gc_count, collected);
    if (answer.previous_kid) {
      EXPECT_EQ(*answer.previous_kid, active_kid_);
      secrets_[active_kid_].expires_at = now_ms + request.grace_ms;
    }
    install(request.new_kid, request.new_secret_hex);
  }

  // ---- what is stored ----

  // The model does not know whether members of flows still live.
  template <class MayHaveEnded>
  void check(const State& state, MayHaveEnded may_have_ended) const {
    for (const auto& [key, row] : state.rows<Suspension>()) {
      const auto id = row.owner();
      const auto& known = executions_.at(id);
      const bool open = row.details.suspension_id && !row.details.closed_at_ms;
      EXPECT_EQ(row.signal_count, known.accepted) << id.to_string();
      EXPECT_EQ(row.suspension_count, known.answers.size()) << id.to_string();
      if (open || !may_have_ended(id)) {
        ASSERT_EQ(open, known.open.has_value()) << id.to_string();
      }
      if (open) {
        EXPECT_EQ(*row.details.suspension_id, known.open->suspension_id) << id.to_string();
        EXPECT_EQ(row.details.timeout_at_ms, known.open->timeout_at) << id.to_string();
      }
    }
    EXPECT_EQ(state.log<SignalEvent>().size(), all_accepted_ + all_repeated_) << "one event for each signal";
  }

 private:
  using KnownFence = std::pair<LeaseFence, SuspensionId>;
  struct KnownWaitpoint {
    std::string key;
    std::string token;
    std::string secret_hex;  // behind the token
    WaitpointState state{WaitpointState::pending};
    std::int64_t expires_at{};          // while pending
    std::vector<ResumeSignal> signals;  // while pending
  };
  struct Open {
    SuspensionId suspension_id;
    ResumeCondition condition;
    std::vector<WaitpointId> waitpoints;
    std::optional<std::int64_t> timeout_at;
    TimeoutBehavior behavior{};
    std::string timeout_signal_name;
    std::vector<ResumeSignal> signals;
  };
  struct Seen {
    SignalId signal_id;
    std::int64_t expires_at{};
  };
  struct Known {
    std::optional<SuspensionPolicy> policy;
    std::map<WaitpointId, KnownWaitpoint> waitpoints;
    std::optional<Open> open;
    std::vector<ResumeSignal> owed;  // to the resumed worker
    bool by_timeout{false};          // the last of them is the timeout's
    std::size_t accepted{0};
    std::map<SuspensionId, Suspended> answers;
    std::vector<KnownFence> by_fence;
    std::map<std::pair<WaitpointId, std::string>, Seen> seen;  // by idempotency key
  };
  struct Secret {
    std::string hex;
    std::optional<std::int64_t> expires_at;
  };

  static Open opened(const SuspendExecution& request, const Suspended& answer,
                     const std::optional<SuspensionPolicy>& policy, std::int64_t now_ms) {
    Open open{.suspension_id = answer.suspension_id,
              .condition = request.resume_condition,
              .waitpoints = {},
              .timeout_at = request.timeout_at,
              .behavior = request.timeout_behavior.value_or(TimeoutBehavior::fail),
              .timeout_signal_name = request.timeout_signal_name,
              .signals = {}};
    for (const auto& each : answer.waitpoints) open.waitpoints.push_back(each.waitpoint_id);
    core::name_waitpoint(open.condition, answer.waitpoints.front().waitpoint_key);
    if (policy && !open.timeout_at && policy->default_timeout_ms) {
      open.timeout_at = core::saturating_add(now_ms, *policy->default_timeout_ms);
    }
    if (policy && !request.timeout_behavior) {
      open.behavior = *enum_from_name<TimeoutBehavior>(policy->timeout_behavior);
    }
    return open;
  }

  KnownWaitpoint made(const TokenedWaitpoint& waitpoint) const {
    EXPECT_TRUE(waitpoint.waitpoint_token.starts_with(active_kid_ + ":")) << "signed with an old secret";
    KnownWaitpoint made{.key = waitpoint.waitpoint_key, .token = waitpoint.waitpoint_token};
    made.secret_hex = secrets_.at(active_kid_).hex;
    return made;
  }

  // Signals from before the suspension are judged in their order, until they are enough.
  static void judge_buffered(Known& known, const Suspended& answer, const std::string& name) {
    const Signals all = known.open->signals;
    std::size_t enough = 1;
    while (enough <= all.size() && !tally(known.open->condition, all.first(enough)).met) ++enough;
    const bool satisfied = enough <= all.size();
    EXPECT_EQ(answer.already_satisfied, satisfied) << name;
    if (!satisfied) return;
    EXPECT_TRUE(answer.signals == satisfiers(known.open->condition, all.first(enough))) << name;
    close_all(known);
  }

  static void close_all(Known& known) {
    for (const auto& id : known.open->waitpoints) known.waitpoints[id].state = WaitpointState::closed;
    known.open.reset();
  }
  static void resumed(Known& known, std::vector<ResumeSignal> owed) {
    if (!known.open) return;
    close_all(known);
    known.owed = std::move(owed);
  }

  bool is_genuine(const DeliverSignal& request, std::int64_t now_ms) const {
    const auto execution = executions_.find(request.execution_id);
    if (execution == executions_.end()) return false;
    const auto& waitpoints = execution->second.waitpoints;
    const auto waitpoint = waitpoints.find(request.waitpoint_id);
    if (waitpoint == waitpoints.end() || waitpoint->second.token != request.waitpoint_token) return false;
    const auto& token = waitpoint->second.token;
    const auto secret = secrets_.find(token.substr(0, token.find(':')));
    return secret != secrets_.end() && secret->second.hex == waitpoint->second.secret_hex &&
           secret->second.expires_at.value_or(now_ms) >= now_ms;
  }

  void accepted(const DeliverSignal& request, const SignalDelivered& answer, std::int64_t now_ms) {
    const auto name = request.execution_id.to_string();
    auto& known = executions_[request.execution_id];
    const bool has_key = !request.idempotency_key.empty() && request.dedup_ttl_ms > 0;
    auto& seen = known.seen[{request.waitpoint_id, request.idempotency_key}];
    const bool again = has_key && seen.expires_at > now_ms;
    EXPECT_EQ(answer.duplicate, again) << name << ": the idempotency key was used before, or was not";
    if (answer.duplicate) {
      ++all_repeated_;
      EXPECT_EQ(answer.signal_id, seen.signal_id) << name;
      return;
    }
    if (has_key) {
      seen = {answer.signal_id,
              core::saturating_add(now_ms, static_cast<std::uint64_t>(request.dedup_ttl_ms))};
    }
    ++known.accepted;
    ++all_accepted_;
    arrived(known, request, answer, now_ms);
  }

  static void arrived(Known& known, const DeliverSignal& request, const SignalDelivered& answer,
                      std::int64_t now_ms) {
    const auto name = request.execution_id.to_string();
    auto& waitpoint = known.waitpoints.at(request.waitpoint_id);
    const ResumeSignal signal{.signal_id = answer.signal_id,
                              .signal_name = request.signal_name,
                              .signal_category = request.signal_category,
                              .waitpoint_id = request.waitpoint_id,
                              .waitpoint_key = waitpoint.key,
                              .source_type = request.source_type,
                              .source_identity = request.source_identity,
                              .correlation_id = request.correlation_id,
                              .accepted_at = now_ms,
                              .payload_encoding = request.payload_encoding,
                              .payload = request.payload};
    EXPECT_TRUE(!request.signal_id || request.signal_id == answer.signal_id) << name;
    ASSERT_NE(waitpoint.state, WaitpointState::closed) << name << ": a closed waitpoint took a signal";
    if (waitpoint.state == WaitpointState::pending) {
      EXPECT_EQ(answer.effect, SignalEffect::buffered_for_pending_waitpoint) << name;
      EXPECT_GT(waitpoint.expires_at, now_ms) << name << ": the waitpoint had expired";
      waitpoint.signals.push_back(signal);
      return;
    }
    ASSERT_TRUE(known.open) << name << " took a signal and is not suspended";
    auto& open = *known.open;
    EXPECT_EQ(std::ranges::count(open.waitpoints, request.waitpoint_id), 1) << name;
    const auto before = tally(open.condition, open.signals);
    open.signals.push_back(signal);
    const auto after = tally(open.condition, open.signals);
    EXPECT_EQ(answer.effect == SignalEffect::resume_condition_satisfied, after.met) << name;
    EXPECT_EQ(answer.effect == SignalEffect::appended_to_waitpoint,
              after.counted > before.counted && !after.met)
        << name;
    if (after.met) resumed(known, satisfiers(open.condition, open.signals));
  }

  static ResumeSignal timeout_signal(const Known& known, std::int64_t now_ms) {
    const auto& primary = known.open->waitpoints.front();
    return {.signal_id = {},
            .signal_name = known.open->timeout_signal_name,
            .signal_category = "timeout",
            .waitpoint_id = primary,
            .waitpoint_key = known.waitpoints.at(primary).key,
            .source_type = "system",
            .source_identity = "suspension_timeout",
            .correlation_id = known.open->suspension_id.to_string(),
            .accepted_at = now_ms,
            .payload_encoding = "json",
            .payload = std::nullopt};
  }

  void install(const std::string& kid, const std::string& secret_hex) {
    active_kid_ = kid;
    secrets_[kid] = {secret_hex, std::nullopt};
  }

  std::map<ExecutionId, Known> executions_;
  std::map<std::string, Secret> secrets_;
  std::string active_kid_;
  std::size_t all_accepted_{0};
  std::size_t all_repeated_{0};
};

}  // namespace flowfabric::simulation
