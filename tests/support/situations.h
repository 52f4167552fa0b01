// One execution in each situation that the transition table (01 §2.4) knows, alone on a lane of its own, so
// that a rule can be tried on all of them. And the words that tests about single executions share: grants,
// operators, lanes.
#pragma once

#include <set>

#include "support/engine_fixture.h"

namespace flowfabric::expected {

inline StateVector revoked() {
  auto state = lost();
  state.ownership_state = OwnershipState::lease_revoked;
  return state;
}

inline StateVector blocked(EligibilityState eligibility, BlockingReason reason, PublicState shown,
                           AttemptState attempt = AttemptState::pending_first_attempt) {
  return {LifecyclePhase::runnable,
          OwnershipState::unowned,
          eligibility,
          reason,
          TerminalOutcome::none,
          attempt,
          shown};
}
inline StateVector held(AttemptState attempt = AttemptState::pending_first_attempt) {
  return blocked(EligibilityState::blocked_by_operator, BlockingReason::paused_by_operator,
                 PublicState::waiting, attempt);
}

}  // namespace flowfabric::expected

namespace flowfabric::tests {

inline constexpr std::int64_t kGrantTtl = 10'000;  // of GrantTerms

enum class Situation : std::uint8_t {
  waiting,
  retry_due,
  replayed,
  resumable,  // was paused, is due
  delayed,
  retrying,
  paused,
  held,
  blocked,
  running,
  lapsed,  // the lease ran out, and no call has noticed
  lost,
  revoked,
  completed,
  failed,
  cancelled,
  cancelled_unstarted,
  expired
};
BOOST_DESCRIBE_ENUM(Situation, waiting, retry_due, replayed, resumable, delayed, retrying, paused, held,
                    blocked, running, lapsed, lost, revoked, completed, failed, cancelled,
                    cancelled_unstarted, expired)

using Situations = std::set<Situation>;
inline const Situations kEligible = {Situation::waiting, Situation::retry_due, Situation::replayed,
                                     Situation::resumable};
inline const Situations kDelayed = {Situation::delayed, Situation::retrying, Situation::paused};
inline const Situations kBlocked = {Situation::held, Situation::blocked};
inline const Situations kLeaseless = {Situation::lapsed, Situation::lost, Situation::revoked};
inline const Situations kTerminal = {Situation::completed, Situation::failed, Situation::cancelled,
                                     Situation::cancelled_unstarted, Situation::expired};
inline const Situations kRunnable = [] {
  Situations all = kEligible;
  all.insert(kDelayed.begin(), kDelayed.end());
  all.insert(kBlocked.begin(), kBlocked.end());
  return all;
}();

struct Placed {
  ExecutionId id;
  std::string lane;
  ClaimedTask task;  // of the last claim, if there was one
};

// `Base` is one of the fixtures that run once per store.
template <class Base>
class SituationTests : public Base {
 protected:
  using Base::advance, Base::cancel, Base::claim, Base::claim_one, Base::complete, Base::create, Base::delay,
      Base::describe, Base::fail, Base::must, Base::now, Base::run_due, Base::state, Base::story, Base::tick;

  Placed place(Situation situation, ExecutionPolicy policy = {}) {
    Placed placed;
    placed.lane = std::string(enum_name(situation)) + "-" + std::to_string(++lanes_);
    const bool due_at_once = situation == Situation::retry_due;
    if (situation == Situation::retrying || due_at_once) {
      policy.retry_policy = RetryPolicy{1, FixedBackoff{due_at_once ? 0u : 36'000'000u}, {}};
    }
    CreateExecution request{.lane_id = placed.lane, .policy = std::move(policy)};
    if (situation == Situation::delayed) request.delay_until = now() + 10 * kHour;
    if (situation == Situation::expired) request.execution_deadline_at = now() + 1;
    placed.id = create(std::move(request));
    if (starts(situation)) placed.task = take_next(placed.lane, lease_ttl_of(situation));
    bring_into(situation, placed);
    return placed;
  }

  // Runs `check` on a fresh execution of each situation in turn.
  template <class Check>
  void in_each(const Situations& situations, Check check) {
    for (const auto situation : situations) {
      SCOPED_TRACE(enum_name(situation));
      check(place(situation));
    }
  }
  template <class Check>
  void in_all_but(const Situations& situations, Check check) {
    Situations others;
    for (std::size_t i = 0; i < enum_size<Situation>(); ++i) {
      if (!situations.contains(static_cast<Situation>(i))) others.insert(static_cast<Situation>(i));
    }
    in_each(others, check);
  }

  ClaimedTask take_next(const std::string& lane, std::int64_t lease_ttl_ms = kLeaseTtl) {
    return claim_one({.lanes = {lane}, .lease_ttl_ms = lease_ttl_ms});
  }
  bool is_offered(const std::string& lane) { return !claim({.lanes = {lane}}).empty(); }

  // ---- grants ----

  static LeaseId some_lease() { return *LeaseId::parse("11111111-1111-4111-8111-111111111111"); }
  static AttemptId some_attempt() { return *AttemptId::parse("22222222-2222-4222-8222-222222222222"); }
  static GrantTerms terms(std::string worker = kWorker, std::vector<std::string> capabilities = {}) {
    return {.worker_id = std::move(worker), .capabilities = std::move(capabilities)};
  }
  static GrantUse use_by(std::string worker = kWorker, std::string key = "") {
    return {.worker_id = std::move(worker), .grant_key = std::move(key)};
  }
  ClaimGrant grant(const ExecutionId& id, std::string worker = kWorker) {
    return must(IssueClaimGrant{id, describe(id).lane_id, terms(std::move(worker))});
  }
  ClaimGrant grant_reclaim(const ExecutionId& id, std::string worker = kWorker) {
    const auto answer = must(IssueReclaimGrant{id, terms(std::move(worker))});
    if (!answer.grant) throw std::runtime_error("no grant: " + answer.detail);
    return *answer.grant;
  }
  // Whatever the execution needs now.
  ClaimGrant grant_any(const ExecutionId& id, std::string worker = kWorker) {
    const bool active = state(id).lifecycle_phase == LifecyclePhase::active;
    return active ? grant_reclaim(id, std::move(worker)) : grant(id, std::move(worker));
  }

  // Nothing has changed since, except that a grant came or went.
  void expect_as_before(Story before) {
    const auto after = story(before.execution.execution_id);
    before.execution.last_mutation_at = after.execution.last_mutation_at;
    EXPECT_EQ(after, before);
  }

  // ---- operators ----

  void set_lane(const std::string& lane, LaneState lane_state) { must(SetLaneState{lane, lane_state}); }
  Revocation revoke(const ExecutionId& id) { return must(RevokeLease{.execution_id = id}); }
  Replayed replay(const ExecutionId& id) { return must(ReplayExecution{.execution_id = id}); }
  void hold(const ExecutionId& id) { must(HoldExecution{.execution_id = id}); }
  std::vector<OperatorEventView> operator_events(const ExecutionId& id) {
    auto events = must(ReadOperatorEvents{.limit = 1000});
    std::erase_if(events, [&](const OperatorEventView& event) { return event.execution_id != id; });
    return events;
  }

 private:
  static bool starts(Situation situation) {
    static const Situations unstarted = {Situation::waiting, Situation::delayed, Situation::held,
                                         Situation::blocked, Situation::cancelled_unstarted};
    return !unstarted.contains(situation);
  }
  static std::int64_t lease_ttl_of(Situation situation) {
    return situation == Situation::lapsed || situation == Situation::lost ? 1000 : kHour;
  }

  void bring_into(Situation situation, const Placed& placed) {
    switch (situation) {
      case Situation::waiting:
      case Situation::delayed:
      case Situation::running:
        return;
      case Situation::retry_due:
      case Situation::retrying:
        fail(placed.task);
        return run_due();
      case Situation::replayed:
        complete(placed.task, "old");
        replay(placed.id);
        return;
      case Situation::resumable:
        delay(placed.task, now());
        return run_due();
      case Situation::paused:
        delay(placed.task, now() + 10 * kHour);
        return;
      case Situation::held:
        return hold(placed.id);
      case Situation::blocked:
        must(BlockExecution{placed.id, BlockingReason::paused_by_policy, "for a while"});
        return;
      case Situation::lapsed:
        return tick(1000);
      case Situation::lost:
        return advance(1000);
      case Situation::revoked:
        revoke(placed.id);
        return;
      case Situation::completed:
        return complete(placed.task, "result");
      case Situation::failed:
        fail(placed.task, "no way", "permanent");
        return;
      case Situation::cancelled:
      case Situation::cancelled_unstarted:
        cancel(placed.id);
        return;
      case Situation::expired:
        return advance(1);
    }
  }

  int lanes_{0};
};
extern template class SituationTests<EngineTest>;  // once for all tests, in situations.cpp
using SituationTest = SituationTests<EngineTest>;

}  // namespace flowfabric::tests
