// Fencing (02 §2): every operation of a lease holder, against everything that can be wrong with its lease.
// The code is exact, and nothing changes, except that a lease found expired is marked as such.
#include <functional>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

// The claims that a caller makes about its lease.
struct Holder {
  ExecutionId execution_id;
  LeaseFence fence;
  std::uint32_t attempt_index{0};
  std::string source{kLeaseHolder};
};

struct Operation {
  std::string name;
  std::function<std::optional<Error>(Engine&, const Holder&)> run;
  bool marks_expiry{true};
  bool operator_may_go_unfenced{false};
};

template <class Answer>
std::optional<Error> error_of(const Result<Answer>& answer) {
  return answer ? std::nullopt : std::optional(answer.error());
}

std::vector<Operation> operations() {
  return {
      {"renew",
       [](Engine& engine, const Holder& by) {
         return error_of(engine.call(RenewLease{by.execution_id, by.fence, by.attempt_index}));
       }},
      {"progress",
       [](Engine& engine, const Holder& by) {
         return error_of(engine.call(UpdateProgress{by.execution_id, by.fence, 50, "half"}));
       },
       false},
      {"complete",
       [](Engine& engine, const Holder& by) {
         return error_of(engine.call(CompleteExecution{by.execution_id, by.fence, "result", by.source}));
       },
       true, true},
      {"fail",
       [](Engine& engine, const Holder& by) {
         return error_of(
             engine.call(FailExecution{by.execution_id, by.fence, "boom", "transient", by.source}));
       },
       true, true},
      {"delay",
       [](Engine& engine, const Holder& by) {
         return error_of(engine.call(DelayExecution{by.execution_id, by.fence, kStart + kHour, by.source}));
       },
       true, true},
      {"cancel",
       [](Engine& engine, const Holder& by) {
         return error_of(engine.call(CancelExecution{by.execution_id, "stop", by.source, by.fence}));
       }},
  };
}

// An operation, and where it matters the other one that has ended the lease before.
struct FencingCase {
  std::string name;
  Operation operation;
  std::string ended_by{};
};
void PrintTo(const FencingCase& fencing, std::ostream* out) {
  *out << fencing.name;
}

template <class Predicate>
std::vector<FencingCase> cases_where(Predicate wanted) {
  std::vector<FencingCase> cases;
  for (auto& operation : operations()) {
    if (wanted(operation)) cases.push_back({operation.name, operation});
  }
  return cases;
}
std::vector<FencingCase> all_operations() {
  return cases_where([](const Operation&) { return true; });
}
// Cancelling what does not run is another matter: see cancel_test.cpp.
std::vector<FencingCase> all_but_cancel() {
  return cases_where([](const Operation& operation) { return operation.name != "cancel"; });
}
std::vector<FencingCase> what_operators_do() {
  return cases_where([](const Operation& operation) { return operation.operator_may_go_unfenced; });
}
// The same operation again is a repetition: see repeat_test.cpp.
std::vector<FencingCase> one_after_another() {
  std::vector<FencingCase> cases;
  for (const char* first : {"complete", "fail", "delay"}) {
    for (auto& second : all_but_cancel()) {
      if (second.name != first) cases.push_back({second.name + "_after_" + first, second.operation, first});
    }
  }
  return cases;
}

class FencingBase : public EngineCaseTest<FencingCase> {
 protected:
  std::optional<Error> attempt(const Holder& by) { return given().operation.run(engine(), by); }
  static Holder holder_of(const ClaimedTask& task) {
    return {task.execution_id, task.fence, task.attempt_index};
  }
  Error refused(const Holder& by, ErrorCode code) {
    const auto error = attempt(by);
    if (!error) {
      ADD_FAILURE() << "succeeded instead of answering " << error_name(code);
      return {};
    }
    EXPECT_EQ(error_name(error->code), error_name(code)) << error->to_string();
    EXPECT_FALSE(error->advice.empty());
    return *error;
  }
  Error refused_without_change(const Holder& by, ErrorCode code) {
    const auto before = story(by.execution_id);
    const auto error = refused(by, code);
    EXPECT_EQ(story(by.execution_id), before);
    return error;
  }
  static LeaseId another_lease() { return *LeaseId::parse("11111111-1111-4111-8111-111111111111"); }
  static AttemptId another_attempt() { return *AttemptId::parse("22222222-2222-4222-8222-222222222222"); }
};

class Fencing : public FencingBase {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Fencing, on_every_store(all_operations()), case_name<FencingCase>);

TEST_P(Fencing, TheHolderIsLetIn) {
  const auto task = running();

  EXPECT_EQ(attempt(holder_of(task)), std::nullopt);
}

TEST_P(Fencing, AnUnknownExecutionIsNotFound) {
  const auto task = running();
  auto by = holder_of(task);
  by.execution_id.partition ^= 1;

  refused(by, ErrorCode::execution_not_found);
}

// ---- the lease ran out ----

TEST_P(Fencing, AMomentBeforeItsExpiryTheLeaseHolds) {
  const auto task = running();
  tick(kLeaseTtl - 1);

  EXPECT_EQ(attempt(holder_of(task)), std::nullopt);
}

TEST_P(Fencing, AtTheInstantOfItsExpiryTheLeaseIsGone) {
  const auto task = running();
  tick(kLeaseTtl);

  if (!given().operation.marks_expiry) {
    refused_without_change(holder_of(task), ErrorCode::lease_expired);
    return;
  }
  refused(holder_of(task), ErrorCode::lease_expired);
  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::lost()) << "marked by the call that found it";
  EXPECT_EQ(seen.blocking_detail, "lease expired, awaiting reclaim");
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 expired"}));
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial started"});
  EXPECT_EQ(result(task.execution_id), std::nullopt);
}

TEST_P(Fencing, ALeaseMarkedExpiredIsRefusedWithoutChange) {
  const auto task = lost();

  refused_without_change(holder_of(task), ErrorCode::lease_expired);
}

TEST_P(Fencing, ExpiryIsToldBeforeStaleness) {
  const auto task = lost();
  auto by = holder_of(task);
  by.fence.lease_id = another_lease();

  refused_without_change(by, ErrorCode::lease_expired);
}

TEST_P(Fencing, AfterTheReclaimTheOldWorkerIsStale) {
  const auto old = lost();
  claim_one({.worker_id = "second"});

  refused_without_change(holder_of(old), ErrorCode::stale_lease);
}

// ---- the wrong fence ----

TEST_P(Fencing, AnotherLeaseIdIsStale) {
  auto by = holder_of(running());
  by.fence.lease_id = another_lease();

  refused_without_change(by, ErrorCode::stale_lease);
}

TEST_P(Fencing, AnotherEpochIsStale) {
  auto by = holder_of(running());
  for (const std::int64_t epoch : {std::int64_t{0}, std::int64_t{2}, std::int64_t{-1}}) {
    by.fence.lease_epoch = epoch;
    refused_without_change(by, ErrorCode::stale_lease);
  }
}

TEST_P(Fencing, AnotherAttemptIdIsStale) {
  auto by = holder_of(running());
  by.fence.attempt_id = another_attempt();

  refused_without_change(by, ErrorCode::stale_lease);
}

TEST_P(Fencing, PartOfAFenceIsRefused) {
  const auto task = running();
  const auto& whole = task.fence;
  const std::vector<LeaseFence> parts{
      {.lease_id = whole.lease_id},
      {.lease_epoch = whole.lease_epoch},
      {.attempt_id = whole.attempt_id},
      {.lease_id = whole.lease_id, .lease_epoch = whole.lease_epoch},
      {.lease_id = whole.lease_id, .attempt_id = whole.attempt_id},
      {.lease_epoch = whole.lease_epoch, .attempt_id = whole.attempt_id},
  };
  for (const auto& part : parts) {
    for (const char* source : {kLeaseHolder, kOperatorOverride}) {
      refused_without_change({task.execution_id, part, 0, source}, ErrorCode::partial_fence_triple);
    }
  }
}

TEST_P(Fencing, NoFenceIsRefused) {
  const auto task = running();
  for (const char* source : {kLeaseHolder, "somebody", ""}) {
    refused_without_change({task.execution_id, {}, 0, source}, ErrorCode::fence_required);
  }
}

// ---- the operator ----

TEST_P(Fencing, TheOperatorGoesUnfencedOnlyWhereAllowed) {
  const auto task = running();
  const Holder by{task.execution_id, {}, 0, kOperatorOverride};
  const bool allowed = given().operation.operator_may_go_unfenced || given().name == "cancel";
  if (!allowed) {
    refused_without_change(by, ErrorCode::fence_required);
    return;
  }

  EXPECT_EQ(attempt(by), std::nullopt);
  EXPECT_NE(state(task.execution_id), expected::running());
}

class FencingOperator : public FencingBase {};
INSTANTIATE_TEST_SUITE_P(EveryStore, FencingOperator, on_every_store(what_operators_do()),
                         case_name<FencingCase>);

TEST_P(FencingOperator, CannotEndAnExpiredLease) {
  const auto task = running();
  tick(kLeaseTtl);
  refused({task.execution_id, {}, 0, kOperatorOverride}, ErrorCode::lease_expired);

  EXPECT_EQ(state(task.execution_id), expected::lost());
}

TEST_P(FencingOperator, CannotEndWhatDoesNotRun) {
  const auto id = create();

  refused_without_change({id, {}, 0, kOperatorOverride}, ErrorCode::execution_not_active);
}

TEST_P(FencingOperator, IsStillBoundToAFenceThatItGives) {
  const auto task = running();
  LeaseFence stale = task.fence;
  stale.lease_epoch = 7;

  refused_without_change({task.execution_id, stale, 0, kOperatorOverride}, ErrorCode::stale_lease);
}

// ---- not running ----

class FencingNotActive : public FencingBase {
 protected:
  void expect_not_active(const ClaimedTask& task, const NotActiveDetails& details) {
    const auto error = refused_without_change(holder_of(task), ErrorCode::execution_not_active);
    EXPECT_EQ(error.not_active, details);
  }
  static std::string attempt_of(const ClaimedTask& task) { return task.fence.attempt_id->to_string(); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FencingNotActive, on_every_store(all_but_cancel()),
                         case_name<FencingCase>);

TEST_P(FencingNotActive, NeverClaimed) {
  const auto id = create();
  const Holder by{id, {another_lease(), 1, another_attempt()}};

  const auto error = refused_without_change(by, ErrorCode::execution_not_active);
  EXPECT_EQ(error.not_active, (NotActiveDetails{LifecyclePhase::runnable, TerminalOutcome::none, 0, ""}));
}

TEST_P(FencingNotActive, Cancelled) {
  const auto task = running();
  cancel(task.execution_id);

  expect_not_active(task, {LifecyclePhase::terminal, TerminalOutcome::cancelled, 1, attempt_of(task)});
}

TEST_P(FencingNotActive, Expired) {
  const auto task = running(attempt_timeout(100));
  advance(100);

  expect_not_active(task, {LifecyclePhase::terminal, TerminalOutcome::expired, 1, attempt_of(task)});
}

TEST_P(FencingNotActive, GivenUpAfterTooManyReclaims) {
  const auto task = lost(reclaim_cap(0));

  expect_not_active(task, {LifecyclePhase::terminal, TerminalOutcome::failed, 1, attempt_of(task)});
}

class FencingAfterAnother : public FencingBase {
 protected:
  ClaimedTask ended(const std::string& by) {
    const auto task = running(retries(1));
    if (by == "complete") complete(task, "mine");
    if (by == "fail") fail(task);
    if (by == "delay") delay(task, kStart + kHour);
    return task;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FencingAfterAnother, on_every_store(one_after_another()),
                         case_name<FencingCase>);

TEST_P(FencingAfterAnother, IsToldWhatHasBecomeOfIt) {
  const auto task = ended(given().ended_by);
  const auto attempt_id = task.fence.attempt_id->to_string();
  NotActiveDetails details{LifecyclePhase::runnable, TerminalOutcome::none, 1, attempt_id};
  if (given().ended_by == "complete") {
    details = {LifecyclePhase::terminal, TerminalOutcome::success, 1, attempt_id};
  }
  if (given().ended_by == "fail") details.attempt_id = "";  // the retry will have an attempt of its own

  const auto error = refused_without_change(holder_of(task), ErrorCode::execution_not_active);
  EXPECT_EQ(error.not_active, details);
}

// ---- renewals name the attempt's index, too ----

class FencingRenewal : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, FencingRenewal, kStores, store_name);

TEST_P(FencingRenewal, AnotherAttemptIndexIsStale) {
  const auto task = running();

  expect_refused(RenewLease{task.execution_id, task.fence, 1}, ErrorCode::stale_lease);
}

TEST_P(FencingRenewal, AfterAPauseTheOldLeaseIsStale) {
  const auto task = running();
  delay(task, kStart);
  run_due();
  claim_one();

  expect_refused(RenewLease{task.execution_id, task.fence, 0}, ErrorCode::stale_lease);
}

}  // namespace
}  // namespace flowfabric
