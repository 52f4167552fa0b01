// Suspensions in a damaged store: what the consistency check finds and repairs, and what tokens and secrets
// that are not whole do.
#include <algorithm>

#include "support/damage.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class DamagedSuspension : public SuspensionFixture {
 protected:
  DamagedSuspension() : SuspensionFixture("sqlite") {}

  void damage(const std::string& sql) {
    close();
    damage_file(store().file(), sql);
    reopen();
  }
  std::string whose() const {
    auto digits = id().uuid.to_string();
    std::erase(digits, '-');
    return " where execution_id=x'" + digits + "'";
  }
  StoreReport check(bool repair = false) {
    auto report = must(CheckStore{.repair = repair});
    for (const auto& each : report.violations) {
      const bool shows_token = std::ranges::any_of(tokens_, [&](const std::string& token) {
        return (each.where + each.what).find(token.substr(3)) != std::string::npos;
      });
      EXPECT_FALSE(shows_token) << "a token is shown";
    }
    return report;
  }
  static bool says(const StoreReport& report, const std::string& what, bool repaired) {
    return std::ranges::any_of(report.violations, [&](const Violation& each) {
      return each.repaired == repaired && (each.where + " " + each.what).find(what) != std::string::npos;
    });
  }

  // The check names it, changes nothing until it is asked to repair, and then leaves no damage.
  void expect_repaired(const std::string& what) {
    const auto found = check();
    EXPECT_TRUE(says(found, what, false)) << what;
    EXPECT_EQ(check(), found);
    const auto repaired = check(true);
    EXPECT_EQ(repaired.found, found.found);
    EXPECT_EQ(repaired.repaired, repaired.found);
    EXPECT_EQ(check().found, 0u);
  }
  // The check names it, and does not guess.
  void expect_reported(const std::string& what) {
    const auto found = check();
    EXPECT_TRUE(says(found, what, false)) << what;
    EXPECT_TRUE(says(check(true), what, false)) << what;
    EXPECT_EQ(check(), found);
  }
  void suspend_with_tokens(ResumeCondition condition = single("k")) {
    for (const auto& each : suspend_new(std::move(condition)).waitpoints) {
      tokens_.push_back(each.waitpoint_token);
    }
  }

 private:
  std::vector<std::string> tokens_;
};

// ---- an execution and its suspension ----

TEST_F(DamagedSuspension, IsSoundAsLongAsNobodyTouchesIt) {
  suspend_with_tokens(all_of({single("a"), single("b")}));
  deliver(signal(waitpoint(0)));
  EXPECT_EQ(check().found, 0u);
  deliver(signal(waitpoint(1)));
  const auto resumed = claim_one();
  const auto spare = make_waitpoint(resumed, "spare");
  must(CloseWaitpoint{id(), make_waitpoint(resumed, "closed").waitpoint_id});
  suspend(suspension(resumed));
  EXPECT_EQ(check().found, 0u);
  cancel(id());
  const auto report = check();
  EXPECT_EQ(report.found, 0u);
  EXPECT_GE(report.records, 10u);
}

TEST_F(DamagedSuspension, IsClosedWhenItsExecutionIsNotSuspended) {
  suspend_with_tokens();
  deliver(signal(waitpoint()));
  const auto resumed = claim_one();
  damage(
      "update ff_suspension_current set closed_at_ms=null,close_reason=null;"
      "update ff_waitpoint_pending set state='active',closed_at_ms=null");
  expect_repaired("a suspension is open, and it is not suspended");
  EXPECT_EQ(seen().close_reason, "repaired");
  EXPECT_EQ(seen().waitpoints[0].state, WaitpointState::closed);
  expect_refused(signal(waitpoint()), ErrorCode::target_not_signalable);
  complete(resumed);
}

TEST_F(DamagedSuspension, ThatIsMissingIsLeftToAnOperator) {
  suspend_with_tokens();
  damage("update ff_suspension_current set closed_at_ms=5,close_reason='resumed'");
  expect_reported("it is suspended, and no suspension is open");
  expect_refused(ResumeExecution{id()}, ErrorCode::execution_not_suspended);
  cancel(id());
}

TEST_F(DamagedSuspension, ThatIsGoneLeavesItsWaitpointsBehind) {
  suspend_with_tokens();
  deliver(signal(waitpoint(), "x"));
  claim_one();
  damage("delete from ff_suspension_current");
  expect_reported("belongs to no suspension");
}

TEST_F(DamagedSuspension, GetsItsClockBack) {
  auto request = suspension(running());
  request.timeout_at = now() + 1000;
  suspend(request);
  damage("update ff_suspension_current set next_due_at_ms=null");
  expect_repaired("the clock of its suspension is late");
  advance(1000);
  EXPECT_EQ(now_in().public_state, PublicState::failed);
}

TEST_F(DamagedSuspension, AClockMayBeEarly) {
  auto request = suspension(running());
  request.timeout_at = now() + 1000;
  suspend(request);
  const auto spare = running();
  make_waitpoint(spare, "k", 1000);
  damage(
      "update ff_suspension_current set next_due_at_ms=5 where next_due_at_ms is not null;"
      "update ff_waitpoint_pending set next_due_at_ms=5");
  EXPECT_EQ(check().found, 0u);
  run_due();
  EXPECT_EQ(state(request.execution_id), expected::suspended());
  EXPECT_EQ(must(ListPendingWaitpoints{spare.execution_id}).waitpoints.size(), 1u);
  EXPECT_EQ(engine().run_due(), 0u) << "and has been set right";
  advance(1000);
  EXPECT_EQ(state(request.execution_id).public_state, PublicState::failed);
  EXPECT_TRUE(must(ListPendingWaitpoints{spare.execution_id}).waitpoints.empty());
}

TEST_F(DamagedSuspension, MustHaveItsHistory) {
  suspend_with_tokens();
  deliver(signal(waitpoint()));
  suspend(suspension(claim_one()));
  damage("update ff_suspension_history set closed_at_ms=null");
  expect_reported("its suspension 0 is past, and open");
  damage("delete from ff_suspension_history");
  expect_reported("it counts 1 suspensions of the past and has 0");
}

// ---- waitpoints and signals ----

TEST_F(DamagedSuspension, ClosesAWaitpointThatNothingIsSuspendedOn) {
  suspend_with_tokens();
  deliver(signal(waitpoint()));
  damage("update ff_waitpoint_pending set state='active',closed_at_ms=null");
  expect_repaired("is active, and nothing is suspended on it");
}

TEST_F(DamagedSuspension, MissesAWaitpoint) {
  suspend_with_tokens();
  damage("delete from ff_waitpoint_pending");
  expect_reported("of its suspension is missing");
  EXPECT_EQ(must(ResumeExecution{id()}).public_state, PublicState::waiting) << "an operator can help";
}

TEST_F(DamagedSuspension, GivesAPendingWaitpointItsClockBack) {
  make_waitpoint(running(), "k", 1000);
  damage("update ff_waitpoint_pending set next_due_at_ms=null");
  expect_repaired("is pending, and its clock is late");
  advance(1000);
  EXPECT_TRUE(must(ListPendingWaitpoints{id()}).waitpoints.empty());
}

TEST_F(DamagedSuspension, GoesOnCountingAfterTheLastSignal) {
  suspend_with_tokens(all_of({single("k", {"a"}), single("k", {"b"})}));
  deliver(signal(waitpoint(), "a"));
  deliver(signal(waitpoint(), "a"));
  damage("update ff_suspension_current set signal_count=0");
  expect_repaired("it counts 0 signals and has 2");
  EXPECT_EQ(deliver(signal(waitpoint(), "b")).effect, SignalEffect::resume_condition_satisfied);
  EXPECT_EQ(seen().signals.size(), 3u);
}

TEST_F(DamagedSuspension, MissesASignal) {
  suspend_with_tokens();
  deliver(signal(waitpoint()));
  damage("delete from ff_signal");
  expect_reported("it counts 1 signals and has 0");
  EXPECT_TRUE(claim_one().resume_signals.empty()) << "one that has vanished is skipped";
}

TEST_F(DamagedSuspension, WhatIsLeftOfALostExecutionIsRemoved) {
  auto request = suspension(running());
  request.idempotency_key = "K";
  suspend(request);
  auto go = signal(waitpoint());
  go.idempotency_key = "L";
  deliver(go);
  suspend(suspension(claim_one()));
  const auto lost = id();
  suspend_with_tokens();
  damage("delete from ff_exec_core where execution_id in (select execution_id from ff_suspend_dedup)");
  const auto found = check();
  for (const auto* table : {"ff_suspension_current", "ff_suspension_history", "ff_waitpoint_pending",
                            "ff_signal", "ff_signal_dedup", "ff_suspend_dedup"}) {
    EXPECT_TRUE(says(found, std::string(table) + " " + lost.to_string() + " belongs to no execution", false))
        << table;
  }
  const auto repaired = check(true);
  EXPECT_EQ(repaired.repaired, repaired.found);
  EXPECT_EQ(check().found, 0u);
  EXPECT_EQ(now_in(), expected::suspended()) << "the other is as it was";
  EXPECT_EQ(deliver(signal(waitpoint())).effect, SignalEffect::resume_condition_satisfied);
  forget(lost);
}

TEST_F(DamagedSuspension, ThatCannotBeReadIsReported) {
  suspend_with_tokens();
  damage("update ff_suspension_current set resume_condition='{nonsense'");
  expect_reported("resume_condition");
  damage(
      "update ff_suspension_current set resume_condition='\"OperatorOnly\"';"
      "update ff_waitpoint_pending set state='nonsense'");
  expect_reported("state");
  forget(id());
}

// ---- tokens and secrets ----

TEST_F(DamagedSuspension, MayHaveATokenThatIsNone) {
  suspend_with_tokens();
  damage("update ff_waitpoint_pending set token='nonsense'");
  expect_reported("has a malformed token");
  expect_error(signal(waitpoint()), ErrorCode::invalid_token);
  const auto listed = must(ListPendingWaitpoints{id()}).waitpoints.at(0);
  EXPECT_EQ(listed.token_kid + listed.token_fingerprint, "");
}

TEST_F(DamagedSuspension, MayHaveATokenThatNobodySigned) {
  suspend_with_tokens();
  damage("update ff_waitpoint_pending set token='k1:" + std::string(64, 'a') + "'");
  expect_reported("has a token that its secret did not sign");
  auto request = signal(waitpoint());
  request.waitpoint_token = "k1:" + std::string(64, 'a');
  expect_error(request, ErrorCode::invalid_token);
}

TEST_F(DamagedSuspension, ASecretThatIsGoneSignsAndOpensNothing) {
  suspend_with_tokens();
  const auto task = running();
  must(RotateWaitpointSecret{"k2", std::string(64, '2')});
  damage("update ff_waitpoint_hmac set secret=x''");
  expect_reported("kid k2 has no secret");
  expect_error(signal(waitpoint()), ErrorCode::invalid_secret);
  expect_refused(suspension(task), ErrorCode::invalid_secret);
  EXPECT_TRUE(must(RotateWaitpointSecret{"k2", std::string(64, '2')}).noop) << "and is put back";
  must(suspension(task));
}

TEST_F(DamagedSuspension, AKidWithoutItsEndHasEnded) {
  suspend_with_tokens();
  must(RotateWaitpointSecret{"k2", std::string(64, '2')});
  for (const auto* value : {"null", "0", "-1"}) {
    damage("update ff_waitpoint_hmac set expires_at_ms=" + std::string(value) + " where kid='k1'");
    expect_error(signal(waitpoint()), ErrorCode::token_expired);
    EXPECT_TRUE(must(ListWaitpointKids{}).verifying.empty());
  }
  damage("update ff_waitpoint_hmac set expires_at_ms=null where kid='k1'");
  expect_reported("kid k1 is retired, and does not say until when it is accepted");
  EXPECT_EQ(must(RotateWaitpointSecret{"k3", std::string(64, '3')}).gc_count, 1u);
}

TEST_F(DamagedSuspension, OneKidIsInForce) {
  must(RotateWaitpointSecret{"k2", std::string(64, '2')});
  damage("update ff_waitpoint_hmac set active=not active");
  expect_repaired("kid k2 is in force, and not marked so");
  EXPECT_EQ(must(ListWaitpointKids{}).current_kid, "k2");
  damage("delete from ff_waitpoint_keystore");
  expect_repaired("there are secrets, and none is in force");
  suspend_with_tokens();
  EXPECT_TRUE(waitpoint().waitpoint_token.starts_with("k2:"));
  damage("delete from ff_waitpoint_hmac where kid='k2'");
  expect_reported("kid k2 is in force, and not there");
}

}  // namespace
}  // namespace flowfabric
