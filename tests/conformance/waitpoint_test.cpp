// Waitpoints that are created before a suspension (03 §5), and listings of waitpoints (03 §11).
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using enum SignalEffect;

class Waitpoints : public SuspensionTest {
 protected:
  SuspendExecution on(const TokenedWaitpoint& waitpoint, ResumeCondition condition) {
    auto request = suspension(task(), std::move(condition));
    request.waitpoints = {{.waitpoint_id = waitpoint.waitpoint_id, .use_pending = true}};
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Waitpoints, kStores, store_name);

TEST_P(Waitpoints, KeepSignalsUntilSomebodyIsSuspended) {
  const auto made = make_waitpoint(running());
  auto wrong = signal(made);
  wrong.waitpoint_token = forged(wrong.waitpoint_token);
  expect_error(wrong, ErrorCode::invalid_token);
  EXPECT_EQ(effect_of(signal(made)), buffered_for_pending_waitpoint);
  EXPECT_EQ(state(id()), expected::running());
  const auto answer = must(on(made, single("k", {"go"})));
  EXPECT_TRUE(answer.already_satisfied);
  EXPECT_EQ(shown(answer.signals), Log{"go:none"});
  EXPECT_EQ(state(id()), expected::running()) << "the lease goes on";
  EXPECT_EQ(must(on(made, single("k", {"go"}))), answer) << "repeated";
  EXPECT_EQ(must(ObserveSignals{id(), 0}).size(), 1u);
  EXPECT_EQ(seen().resume_trigger, ResumeTrigger::signal);
  EXPECT_EQ(seen().signals[0].observed_effect, resume_condition_satisfied);
  complete(task());
}

// The request of a worker that has to stop.
TEST_P(Waitpoints, ThatHaveEnoughAreRefusedToTheStrict) {
  const auto made = make_waitpoint(running());
  deliver(signal(made));
  auto strict = on(made, single("k", {"go"}));
  strict.strict = true;
  expect_refused(strict, ErrorCode::already_satisfied);
  auto request = on(made, single("k", {"go"}));
  request.idempotency_key = "K";
  EXPECT_TRUE(must(request).already_satisfied) << "it was not used up";
  EXPECT_TRUE(must(request).already_satisfied) << "by its key";
  request.strict = true;
  expect_refused(request, ErrorCode::already_satisfied);
  strict = suspension(task());
  strict.strict = true;
  EXPECT_FALSE(suspend(strict).already_satisfied);
}

TEST_P(Waitpoints, KeepTheNewestSignals) {
  constexpr std::size_t kKept = 1000;
  const auto made = make_waitpoint(running());
  std::vector<std::future<Result<SignalDelivered>>> answers;
  for (std::size_t i = 0; i < kKept + 2; ++i) {
    auto request = signal(made, i == 0 ? "first" : i == 1 ? "second" : "later");
    request.signal_maxlen = 1;  // a sender cannot push out the signals of others
    answers.push_back(engine().submit(std::move(request)));
  }
  for (auto& answer : answers) ASSERT_TRUE(answer.get());
  suspend(on(made, all_of({single("k", {"first"}), single("k", {"second"}), single("k", {"later"})})));
  EXPECT_EQ(now_in(), expected::suspended()) << "the two oldest were given up";
  const auto view = seen();
  EXPECT_EQ(view.satisfied, std::vector<std::string>{"members[2] leaf"});
  EXPECT_EQ(view.waitpoints[0].signal_count, kKept + 2) << "and are on record";
  EXPECT_EQ(effect_of(signal(made, "first")), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(made, "second")), resume_condition_satisfied);
}

TEST_P(Waitpoints, HalfOfItIsNotEnough) {
  const auto made = make_waitpoint(running());
  deliver(signal(made, "a"));
  const auto answer = suspend(on(made, all_of({single("k", {"a"}), single("k", {"b"})})));
  EXPECT_FALSE(answer.already_satisfied);
  EXPECT_EQ(answer.waitpoints[0], made) << "id, key and token stay";
  EXPECT_EQ(now_in(), expected::suspended());
  EXPECT_EQ(effect_of(signal(made, "b")), resume_condition_satisfied);
  EXPECT_EQ(shown(claim_one().resume_signals), (Log{"a:none", "b:none"}));
}

TEST_P(Waitpoints, AreRefusedWhereTheyDoNotFit) {
  const auto task = running();
  const auto made = make_waitpoint(task);
  EXPECT_EQ(expect_refused(on(made, single("other")), ErrorCode::invalid_input).detail,
            "waitpoint_key_mismatch");
  auto unknown = made;
  unknown.waitpoint_id = {};
  expect_refused(on(unknown, single("k")), ErrorCode::waitpoint_not_found);
  must(CloseWaitpoint{task.execution_id, made.waitpoint_id});
  EXPECT_TRUE(must(CloseWaitpoint{task.execution_id, made.waitpoint_id}).already_closed);
  expect_refused(on(made, single("k")), ErrorCode::waitpoint_not_pending);
  expect_refused(signal(made), ErrorCode::waitpoint_closed);
  expect_error(CloseWaitpoint{task.execution_id, {}}, ErrorCode::waitpoint_not_found);
}

TEST_P(Waitpoints, Expire) {
  const auto task = running();
  const auto made = make_waitpoint(task, "k", 1000);
  tick(1000);
  expect_refused(on(made, single("k")), ErrorCode::pending_waitpoint_expired);
  expect_refused(signal(made), ErrorCode::waitpoint_closed);
  EXPECT_EQ(must(ReadWaitpointToken{task.execution_id, made.waitpoint_id}), std::nullopt);
  run_due();
  EXPECT_TRUE(must(ListPendingWaitpoints{task.execution_id}).waitpoints.empty());
  expect_refused(on(made, single("k")), ErrorCode::waitpoint_not_pending);
}

TEST_P(Waitpoints, DoNotExpireOnceTheyAreUsed) {
  const auto made = make_waitpoint(running(), "k", 1000);
  suspend(on(made, single("k")));
  advance(kHour);
  EXPECT_EQ(now_in(), expected::suspended());
  EXPECT_EQ(effect_of(signal(made)), resume_condition_satisfied);
}

TEST_P(Waitpoints, MayLastForEver) {
  const auto made = make_waitpoint(running(), "k", std::numeric_limits<std::int64_t>::max());
  const auto page = must(ListPendingWaitpoints{id()});
  EXPECT_EQ(page.waitpoints.at(0).expires_at, std::numeric_limits<std::int64_t>::max());
  const auto again = make_waitpoint(task());
  EXPECT_NE(again.waitpoint_id, made.waitpoint_id) << "not idempotent by its key";
  EXPECT_NE(again.waitpoint_token, made.waitpoint_token);
}

TEST_P(Waitpoints, BelongToTheirAttempt) {
  const auto first = running(retries(1));
  const auto made = make_waitpoint(first, "k", 5 * kHour);
  fail(first);
  advance(kHour);
  const auto second = claim_one();
  auto request = on(made, single("k"));
  request.fence = second.fence;
  expect_refused(request, ErrorCode::invalid_waitpoint_for_execution);
}

TEST_P(Waitpoints, BelongToTheirExecution) {
  const auto made = make_waitpoint(running());
  auto request = on(made, single("k"));
  const auto other = running();
  request.execution_id = other.execution_id;
  request.fence = other.fence;
  expect_refused(request, ErrorCode::invalid_waitpoint_for_execution);
  EXPECT_EQ(must(ReadWaitpointToken{other.execution_id, made.waitpoint_id}), std::nullopt);
}

TEST_P(Waitpoints, OfWhatHasEndedAreNobodys) {
  const auto task = running();
  const auto made = make_waitpoint(task);
  complete(task);
  EXPECT_TRUE(must(ListPendingWaitpoints{task.execution_id}).waitpoints.empty());
  EXPECT_EQ(must(ReadWaitpointToken{task.execution_id, made.waitpoint_id}), std::nullopt);
  expect_refused(signal(made), ErrorCode::target_not_signalable);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
}

TEST_P(Waitpoints, NeedTheLease) {
  const auto task = running();
  CreateWaitpoint request{.execution_id = task.execution_id, .fence = {}};
  expect_refused(request, ErrorCode::fence_required);
  request.fence = task.fence;
  request.attempt_index = 2;
  expect_refused(request, ErrorCode::stale_lease);
  request.attempt_index.reset();
  request.expires_in_ms = -1;
  expect_refused(request, ErrorCode::invalid_input);
}

// ---- reads ----

TEST_P(Waitpoints, AreListedWithoutTheirTokens) {
  suspend_new(all_of({single("a", {"x"}), single("b"), single("c", {"y"})}));
  auto page = must(ListPendingWaitpoints{.execution_id = id(), .limit = 2});
  ASSERT_EQ(page.waitpoints.size(), 2u);
  ASSERT_TRUE(page.next_cursor);
  const auto rest = must(ListPendingWaitpoints{.execution_id = id(), .after = page.next_cursor, .limit = 2});
  ASSERT_EQ(rest.waitpoints.size(), 1u);
  EXPECT_FALSE(rest.next_cursor);
  page.waitpoints.push_back(rest.waitpoints[0]);
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& each : page.waitpoints) names[each.waitpoint_key] = each.required_signal_names;
  EXPECT_EQ(names, (std::map<std::string, std::vector<std::string>>{{"a", {"x"}}, {"b", {}}, {"c", {"y"}}}));
  EXPECT_EQ(must(ReadWaitpointToken{id(), waitpoint(0).waitpoint_id}), waitpoint(0).waitpoint_token);
  EXPECT_EQ(must(ReadWaitpointToken{id(), {}}), std::nullopt);
  must(ResumeExecution{id()});
  EXPECT_EQ(must(ReadWaitpointToken{id(), waitpoint(0).waitpoint_id}), std::nullopt);
  EXPECT_TRUE(must(ListPendingWaitpoints{id()}).waitpoints.empty());
  EXPECT_TRUE(must(ListPendingWaitpoints{create({.lane_id = "elsewhere"})}).waitpoints.empty());
  ExecutionId nobody = id();
  nobody.uuid.bytes[9] ^= 1;
  expect_error(ListPendingWaitpoints{nobody}, ErrorCode::execution_not_found);
}

TEST_P(Waitpoints, WhoIsSuspendedIsListed) {
  std::vector<ExecutionId> all;
  std::uint16_t partition = 0;
  for (int i = 0; i < 3; ++i) {
    suspend_new();
    partition = id().partition;
    all.push_back(id());
    tick(1);
  }
  const auto ids = [](const SuspendedPage& page) {
    std::vector<ExecutionId> found;
    for (const auto& each : page.suspended) found.push_back(each.execution_id);
    return found;
  };
  EXPECT_EQ(ids(must(ListSuspended{partition})), all);
  const auto first = must(ListSuspended{.partition = partition, .limit = 2});
  EXPECT_EQ(ids(first), (std::vector{all[0], all[1]}));
  ASSERT_TRUE(first.next_cursor);
  must(ResumeExecution{all[1]});
  EXPECT_EQ(ids(must(ListSuspended{.partition = partition, .cursor = first.next_cursor})),
            std::vector{all[2]});
  EXPECT_TRUE(must(ListSuspended{.partition = partition, .limit = 0}).suspended.empty());
  EXPECT_EQ(ids(must(ListSuspended{partition})), (std::vector{all[0], all[2]}));
}

// Suspensions of all partitions, in the order in which they began.
TEST_P(Waitpoints, WhoIsSuspendedIsListedWhereverItIs) {
  std::vector<ExecutionId> all;
  for (const auto partition : std::vector<std::uint16_t>{200, 3, 255, 0, 77}) {
    const ExecutionId wanted{partition, Uuid{{static_cast<std::uint8_t>(partition), 1}}};
    create({.execution_id = wanted, .namespace_ = "acme", .lane_id = "reviews"});
    auto request = suspension(claim_one({.lanes = {"reviews"}}), all_of({single("a"), single("b")}));
    request.timeout_at = now() + kHour;
    request.reason_code = SuspensionReason::waiting_for_approval;
    suspend(request);
    all.push_back(id());
    tick(1);
  }
  std::vector<ExecutionId> listed;
  ListSuspended request{.limit = 2};
  for (bool more = true; more;) {
    const auto page = must(request);
    for (const auto& each : page.suspended) listed.push_back(each.execution_id);
    more = page.next_cursor.has_value();
    request.cursor = page.next_cursor;
    request.cursor_suspended_at_ms = page.suspended.back().suspended_at_ms;
    // The next page does not depend on the later fate of the last entry.
    if (listed.size() == 2) {
      must(ResumeExecution{all[1]});
      suspend(suspension(claim_one({.lanes = {"reviews"}})));
    }
  }
  all.push_back(all[1]);
  EXPECT_EQ(listed, all);
  const auto entry = must(ListSuspended{.limit = 1}).suspended.at(0);
  EXPECT_EQ(entry.namespace_, "acme");
  EXPECT_EQ(entry.lane_id, "reviews");
  EXPECT_EQ(entry.reason, SuspensionReason::waiting_for_approval);
  EXPECT_EQ(entry.timeout_at, entry.suspended_at_ms + kHour);
  EXPECT_EQ(entry.waitpoint_ids.size(), 2u);
  EXPECT_EQ(must(ListSuspended{.partition = 77}).suspended.size(), 1u);
}

}  // namespace
}  // namespace flowfabric
