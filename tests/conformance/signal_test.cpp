// Signals (03 §4, §8): who may deliver one, and what it does.
#include "model/waitpoint_token.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using enum SignalEffect;

class Signals : public SuspensionTest {
 protected:
  // Refused, nothing has moved, and the attempt is on record with the execution it was aimed at.
  void expect_unauthentic(DeliverSignal request, ErrorCode code) {
    const auto& target = request.execution_id;
    auto expected = must(DescribeSuspension{target});
    auto story_expected = story(target);
    tick(kStampInterval);
    expect_error(request, code);
    story_expected.execution.last_hmac_validation_failed_at = now();
    EXPECT_EQ(story(target), story_expected);
    expected.last_hmac_validation_failed_at = now();
    EXPECT_EQ(must(DescribeSuspension{target}), expected);
  }
  static constexpr std::int64_t kStampInterval = 60'000;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Signals, kStores, store_name);

// ---- tokens ----

TEST_P(Signals, ARefusedTokenIsStampedOncePerMinute) {
  suspend_new();
  auto request = signal(waitpoint());
  request.waitpoint_token = forged(request.waitpoint_token);
  const auto stamp = [&] {
    expect_error(request, ErrorCode::invalid_token);
    return describe(id()).last_hmac_validation_failed_at;
  };
  EXPECT_EQ(describe(id()).last_hmac_validation_failed_at, std::nullopt);
  const auto first = now();
  EXPECT_EQ(stamp(), first);
  tick(1);
  EXPECT_EQ(stamp(), first);
  tick(kStampInterval - 2);
  EXPECT_EQ(stamp(), first);
  tick(1);
  EXPECT_EQ(stamp(), now());
  cancel(id());
  EXPECT_EQ(describe(id()).last_hmac_validation_failed_at, now()) << "it stays when the suspension is over";
}

TEST_P(Signals, NeedTheTokenOfTheirWaitpoint) {
  suspend_new();
  const auto first_id = id();
  const auto first = waitpoint();
  auto request = signal(first);
  for (const auto& [token, code] :
       {std::pair{std::string(), ErrorCode::missing_token},
        {forged(first.waitpoint_token), ErrorCode::invalid_token},
        {"k9" + first.waitpoint_token.substr(2), ErrorCode::invalid_token},
        {first.waitpoint_token.substr(0, 40), ErrorCode::invalid_token},
        {first.waitpoint_token + "0", ErrorCode::invalid_token},
        {first.waitpoint_token.substr(3), ErrorCode::invalid_token},
        {std::string("k1:") + std::string(64, 'z'), ErrorCode::invalid_token},
        {"\xff\xfe" + first.waitpoint_token.substr(2), ErrorCode::invalid_token},
        {std::string("k\0", 2) + first.waitpoint_token.substr(2), ErrorCode::invalid_token},
        {std::string(100'000, ':'), ErrorCode::invalid_token}}) {
    request.waitpoint_token = token;
    expect_unauthentic(request, code);
  }
  // A token of another execution, and one for a missing waitpoint.
  suspend_new();
  auto crossed = signal(waitpoint());
  crossed.waitpoint_token = first.waitpoint_token;
  expect_unauthentic(crossed, ErrorCode::invalid_token);
  auto invented = signal(waitpoint());
  invented.waitpoint_id.uuid.bytes[3] ^= 1;
  expect_unauthentic(invented, ErrorCode::invalid_token);
  auto foreign = signal(first);
  foreign.execution_id = id();
  expect_unauthentic(foreign, ErrorCode::invalid_token);
  foreign.execution_id = first_id;
  EXPECT_EQ(effect_of(foreign), resume_condition_satisfied);
}

TEST_P(Signals, SayNothingOfWhatRuns) {
  const auto task = running();
  DeliverSignal request{.execution_id = task.execution_id,
                        .waitpoint_id = {},
                        .waitpoint_token = "k1:" + std::string(64, 'a'),
                        .signal_name = "x"};
  expect_error(request, ErrorCode::invalid_token);
  request.execution_id.uuid.bytes[5] ^= 1;
  expect_error(request, ErrorCode::execution_not_found);
}

// Whatever a token looks like and whatever the execution does: without a genuine one there is no telling.
TEST_P(Signals, SayNothingOfWaitpointsToWhoHasNoToken) {
  suspend_new();
  const auto suspended = id();
  const auto token = waitpoint().waitpoint_token;
  const auto active = waitpoint().waitpoint_id;
  suspend_new();
  deliver(signal(waitpoint()));
  const auto ended = id();
  const auto closed = waitpoint().waitpoint_id;
  complete(claim_one());
  const auto pending = make_waitpoint(running());
  const auto of_another = pending.waitpoint_token;
  for (const auto& kid : {"k2", "k3"}) must(RotateWaitpointSecret{kid, std::string(64, kid[1]), 0});
  tick(1);
  for (const auto& [execution, known] :
       {std::pair{suspended, active}, {ended, closed}, {id(), pending.waitpoint_id}}) {
    for (const auto& wrong : {std::string(), std::string("k1"), forged(token), "k3:" + std::string(64, 'a'),
                              "k2" + token.substr(2), "k9" + token.substr(2), of_another.substr(0, 66) + "?",
                              execution == id() ? token : of_another}) {
      DeliverSignal request{
          .execution_id = execution, .waitpoint_id = known, .waitpoint_token = wrong, .signal_name = "x"};
      const auto there = engine().call(request);
      request.waitpoint_id.uuid.bytes[2] ^= 1;
      const auto not_there = engine().call(request);
      ASSERT_FALSE(there || not_there) << redacted_token(wrong);
      EXPECT_EQ(there.error(), not_there.error()) << redacted_token(wrong);
      request.execution_id.uuid.bytes[5] ^= 1;
      expect_error(request, ErrorCode::execution_not_found);
    }
  }
}

TEST_P(Signals, HaveKeysThatAreTexts) {
  const auto task = running();
  auto broken = suspension(task);
  broken.idempotency_key = "\xff";
  expect_refused(broken, ErrorCode::invalid_input);
  suspend(suspension(task));
  auto request = signal(waitpoint());
  request.idempotency_key = std::string("a\0b\xff", 4);
  expect_refused(request, ErrorCode::invalid_input);
}

// ---- conditions ----

TEST_P(Signals, OfAnotherNameChangeNothing) {
  suspend_new(single("k", {"go"}));
  EXPECT_EQ(effect_of(signal(waitpoint(), "stop")), no_op);
  EXPECT_EQ(now_in(), expected::suspended());
  EXPECT_EQ(effect_of(signal(waitpoint(), "go")), resume_condition_satisfied);
  EXPECT_EQ(now_in(), expected::waiting(AttemptState::attempt_interrupted));
}

TEST_P(Signals, AllOfThemOnOneWaitpoint) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
  EXPECT_EQ(effect_of(signal(waitpoint(), "a")), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(), "a")), appended_to_waitpoint_duplicate);
  EXPECT_EQ(effect_of(signal(waitpoint(), "c")), signal_ignored_matcher_failed);
  EXPECT_EQ(seen().satisfied, std::vector<std::string>{"members[0] leaf"});
  EXPECT_EQ(effect_of(signal(waitpoint(), "b")), resume_condition_satisfied);
  EXPECT_EQ(seen().satisfied, std::vector<std::string>{});
}

TEST_P(Signals, EachWaitpointHasItsToken) {
  suspend_new(all_of({single("a"), single("b"), single("c")}));
  auto crossed = signal(waitpoint(0));
  crossed.waitpoint_token = waitpoint(1).waitpoint_token;
  expect_unauthentic(crossed, ErrorCode::invalid_token);
  EXPECT_EQ(effect_of(signal(waitpoint(0))), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(2))), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(1))), resume_condition_satisfied);
  for (const auto& each : seen().waitpoints) EXPECT_EQ(each.state, WaitpointState::closed);
}

TEST_P(Signals, CountSources) {
  suspend_new(count_of(2, CountKind::distinct_sources, {"k"}));
  auto request = signal(waitpoint());
  request.source_identity = "alice";
  EXPECT_EQ(effect_of(request), appended_to_waitpoint);
  EXPECT_EQ(effect_of(request), appended_to_waitpoint_duplicate);
  request.source_identity = "bob";
  EXPECT_EQ(effect_of(request), resume_condition_satisfied);
}

TEST_P(Signals, CountSignalsAndWaitpoints) {
  suspend_new(count_of(2, CountKind::distinct_signals, {"k"}, {"yes"}));
  EXPECT_EQ(effect_of(signal(waitpoint(), "no")), signal_ignored_matcher_failed);
  EXPECT_EQ(effect_of(signal(waitpoint(), "yes")), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(), "yes")), resume_condition_satisfied) << "from one source";
  suspend(suspension(claim_one(), count_of(1, CountKind::distinct_waitpoints, {"a", "b"})));
  EXPECT_EQ(effect_of(signal(waitpoint(1))), resume_condition_satisfied);
  suspend(suspension(claim_one(), all_of({count_of(2, CountKind::distinct_signals, {"k"}, {"x"}),
                                          count_of(1, CountKind::distinct_signals, {"k"}, {"y"})})));
  EXPECT_EQ(effect_of(signal(waitpoint(), "x")), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(), "y")), appended_to_waitpoint);
  EXPECT_EQ(effect_of(signal(waitpoint(), "x")), resume_condition_satisfied) << "each count has its own";
}

// Sources that look like two others, or like what the engine writes down of them.
TEST_P(Signals, AreCountedByWhatTheySayAndNotByHowItLooks) {
  const std::vector<std::pair<std::string, std::string>> sources{
      {"a", "b:c"}, {"a:b", "c"}, {"leaf", ""}, {"", "leaf"}, {"src:1", "a"}, {"members[0] leaf", "\"\n,"}};
  const auto all = static_cast<std::uint32_t>(sources.size());
  suspend_new(all_of({single("k", {"never"}), count_of(all, CountKind::distinct_sources, {"k"}, {"x"})}));
  for (const auto& [type, identity] : sources) {
    auto request = signal(waitpoint(), "x");
    request.source_type = type;
    request.source_identity = identity;
    EXPECT_EQ(effect_of(request), appended_to_waitpoint) << type << ' ' << identity;
    EXPECT_EQ(effect_of(request), appended_to_waitpoint_duplicate) << type << ' ' << identity;
  }
  EXPECT_EQ(effect_of(signal(waitpoint(), "never")), resume_condition_satisfied);
}

TEST_P(Signals, DoNotResumeWhatIsAnOperators) {
  suspend_new({OperatorOnly{}});
  EXPECT_EQ(effect_of(signal(waitpoint())), no_op);
  for (const auto* name : {"__operator_only__", "__timeout_only__", "__timeout__", "__"}) {
    EXPECT_EQ(expect_refused(signal(waitpoint(), name), ErrorCode::invalid_input).detail,
              "signal_name: reserved");
  }
  EXPECT_EQ(now_in(), expected::suspended());
  EXPECT_EQ(must(ResumeExecution{id()}).public_state, PublicState::waiting);
  EXPECT_EQ(seen().resume_trigger, ResumeTrigger::operator_);
}

// ---- repeated and late ones ----

TEST_P(Signals, AreRepeatableByTheirKey) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
  auto request = signal(waitpoint(), "a");
  request.idempotency_key = "K";
  const auto first = deliver(request);
  const auto again = deliver(request);
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.signal_id, first.signal_id);
  EXPECT_EQ(seen().signals.size(), 1u);
  EXPECT_EQ(seen().waitpoints[0].signal_count, 1u);
  // Also the one that resumed it, and not for ever.
  auto last = signal(waitpoint(), "b");
  last.idempotency_key = "L";
  last.dedup_ttl_ms = 1000;
  EXPECT_EQ(effect_of(last), resume_condition_satisfied);
  EXPECT_TRUE(deliver(last).duplicate);
  tick(1000);
  expect_error(last, ErrorCode::target_not_signalable);
}

TEST_P(Signals, ComeTooLate) {
  const auto task = running();
  suspend(suspension(task));
  deliver(signal(waitpoint()));
  expect_refused(signal(waitpoint()), ErrorCode::target_not_signalable);
  const auto resumed = claim_one();
  complete(resumed);
  expect_refused(signal(waitpoint()), ErrorCode::target_not_signalable);
}

TEST_P(Signals, HaveLimits) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}), {.max_signals_per_execution = 3});
  auto request = signal(waitpoint(), "a");
  request.payload = std::string(65'537, 'x');
  expect_refused(request, ErrorCode::payload_too_large);
  request.payload = std::string(65'536, 'x');
  deliver(request);
  expect_refused(signal(waitpoint(), ""), ErrorCode::invalid_input);
  auto fewer = signal(waitpoint(), "a");
  fewer.max_signals_per_execution = 1;
  expect_refused(fewer, ErrorCode::signal_limit_exceeded);
  auto more = signal(waitpoint(), "a");
  more.max_signals_per_execution = 1000;
  deliver(more);
  deliver(more);
  expect_refused(more, ErrorCode::signal_limit_exceeded);
}

TEST_P(Signals, HaveTextsOfALimitedLength) {
  suspend_new();
  const std::string long_text(1025, 't');
  for (const auto field :
       {&DeliverSignal::signal_name, &DeliverSignal::signal_category, &DeliverSignal::source_type,
        &DeliverSignal::source_identity, &DeliverSignal::target_scope, &DeliverSignal::payload_encoding,
        &DeliverSignal::correlation_id, &DeliverSignal::idempotency_key}) {
    auto request = signal(waitpoint());
    for (const auto& text : {long_text, std::string("\xff"), std::string("a\0b", 3)}) {
      request.*field = text;
      expect_refused(request, ErrorCode::invalid_input);
    }
  }
  auto request = signal(waitpoint());
  request.idempotency_key = request.source_identity = std::string(1024, 't');
  EXPECT_EQ(effect_of(request), resume_condition_satisfied);
  EXPECT_TRUE(deliver(request).duplicate);
  // The event of a repeated one names its sender, too.
  request.source_identity = "\xff";
  expect_refused(request, ErrorCode::invalid_input);
}

// ---- what is kept ----

TEST_P(Signals, AreGivenToTheResumedWorker) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
  auto request = signal(waitpoint(), "a");
  request.payload = std::string("\0\xff{}", 4);
  request.correlation_id = "c";
  deliver(request);
  deliver(signal(waitpoint(), "ignored"));
  tick(5);
  deliver(signal(waitpoint(), "b"));
  const auto resumed = claim_one();
  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.fence.attempt_id, task().fence.attempt_id);
  EXPECT_EQ(resumed.attempt_index, task().attempt_index);
  EXPECT_EQ(resumed.fence.lease_epoch, 2);
  EXPECT_EQ(shown(resumed.resume_signals), (Log{std::string("a:\0\xff{}", 6), "b:none"}));
  EXPECT_EQ(resumed.resume_signals[0].correlation_id, "c");
  EXPECT_EQ(resumed.resume_signals[0].waitpoint_key, "k");
  EXPECT_EQ(must(ObserveSignals{id(), resumed.attempt_index}), resumed.resume_signals);
  EXPECT_TRUE(must(ObserveSignals{id(), 7}).empty());
  complete(resumed);
}

TEST_P(Signals, AreGivenToNoOtherAttempt) {
  suspend_new(single("k"), retries(1));
  EXPECT_TRUE(task().resume_signals.empty());
  EXPECT_TRUE(must(ObserveSignals{id(), 0}).empty()) << "it is open";
  deliver(signal(waitpoint()));
  const auto resumed = claim_one();
  EXPECT_EQ(shown(resumed.resume_signals), Log{"go:none"});
  fail(resumed);
  advance(kHour);
  const auto second = claim_one();
  EXPECT_EQ(second.attempt_index, 1u);
  EXPECT_TRUE(second.resume_signals.empty());
  EXPECT_TRUE(must(ObserveSignals{id(), 1}).empty());
  complete(second);
}

TEST_P(Signals, AreToldToSubscribers) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
  const auto first = deliver(signal(waitpoint(), "a"));
  deliver(signal(waitpoint(), "c"));
  deliver(signal(waitpoint(), "b"));
  const auto events = must(ReadSignalEvents{});
  Log log;
  for (const auto& event : events) log.push_back(event.effect);
  EXPECT_EQ(log, (Log{"buffered", "signal_ignored_matcher_failed", "satisfied"}));
  EXPECT_EQ(events[0].signal_id, first.signal_id);
  EXPECT_EQ(events[0].execution_id, id());
  // From a position on: none is missed, none comes twice.
  EXPECT_EQ(must(ReadSignalEvents{.after = events[0].event_id}), (std::vector{events[1], events[2]}));
  EXPECT_TRUE(must(ReadSignalEvents{.after = events[2].event_id}).empty());
}

TEST_P(Signals, AreToldToSubscribersWhenTheyAreRepeatedToo) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
  auto request = signal(waitpoint(), "a");
  request.idempotency_key = "K";
  request.source_identity = "alice";
  const auto first = deliver(request);
  deliver(request);
  deliver(signal(waitpoint(), "a"));
  const auto events = must(ReadSignalEvents{});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].effect, "deduped");
  EXPECT_EQ(events[1].signal_id, first.signal_id);
  EXPECT_EQ(events[1].source_identity, "alice");
  EXPECT_EQ(events[2].effect, "appended_to_waitpoint_duplicate");
}

TEST_P(Signals, MayDelayTheResume) {
  suspend_new();
  auto request = signal(waitpoint());
  request.resume_delay_ms = 1000;
  EXPECT_EQ(effect_of(request), resume_condition_satisfied);
  EXPECT_EQ(now_in().public_state, PublicState::delayed);
  EXPECT_EQ(now_in().blocking_reason, BlockingReason::waiting_for_resume_delay);
  EXPECT_EQ(describe(id()).blocking_detail, "resume delay 1000ms after signal go");
  EXPECT_TRUE(claim().empty());
  advance(1000);
  EXPECT_EQ(shown(claim_one().resume_signals), Log{"go:none"});
}

TEST_P(Signals, ThePolicyMayDelayTheResume) {
  auto request = suspension(running());
  request.resume_policy.resume_delay_ms = 500;
  suspend(request);
  deliver(signal(waitpoint()));
  EXPECT_EQ(now_in().public_state, PublicState::delayed);
  advance(500);
  EXPECT_EQ(now_in().public_state, PublicState::waiting);
}

// ---- approvals ----

TEST_P(Signals, AnOperatorNeedsNoToken) {
  suspend_new(single("k", {"approved"}));
  DeliverApprovalSignal request{.execution_id = id(),
                                .lane_id = "default",
                                .waitpoint_id = waitpoint().waitpoint_id,
                                .signal_name = "rejected",
                                .idempotency_suffix = "1"};
  auto elsewhere = request;
  elsewhere.lane_id = "other";
  EXPECT_EQ(expect_refused(elsewhere, ErrorCode::invalid_input).detail,
            "lane_mismatch: args.lane_id=other exec_core.lane_id=default");
  auto unknown = request;
  unknown.waitpoint_id = {};
  EXPECT_EQ(error_info(expect_refused(unknown, ErrorCode::unknown_waitpoint).code).kind,
            ErrorKind::not_found);
  unknown.execution_id.uuid.bytes[4] ^= 1;
  expect_error(unknown, ErrorCode::execution_not_found);
  EXPECT_EQ(must(request).effect, no_op);
  EXPECT_TRUE(must(request).duplicate);
  request.signal_name = "approved";
  EXPECT_EQ(must(request).effect, resume_condition_satisfied);
  EXPECT_TRUE(must(request).duplicate) << "although it has been resumed";
  const auto approval = claim_one().resume_signals.at(0);
  EXPECT_EQ(approval.signal_category, "approval");
  EXPECT_EQ(approval.source_type, "operator");
  EXPECT_EQ(approval.source_identity, "");
  EXPECT_EQ(approval.payload, std::nullopt);
}

TEST_P(Signals, ARejectionMeansWhatTheConditionSays) {
  suspend_new();
  const DeliverApprovalSignal request{.execution_id = id(),
                                      .lane_id = "default",
                                      .waitpoint_id = waitpoint().waitpoint_id,
                                      .signal_name = "rejected"};
  EXPECT_EQ(must(request).effect, resume_condition_satisfied);
}

TEST_P(Signals, CannotTakeTheKeyOfAnApproval) {
  suspend_new(single("k", {"approved"}));
  auto request = signal(waitpoint(), "noise");
  request.idempotency_key = "approval:approved:1";
  EXPECT_EQ(effect_of(request), no_op);
  EXPECT_EQ(must(DeliverApprovalSignal{.execution_id = id(),
                                       .lane_id = "default",
                                       .waitpoint_id = waitpoint().waitpoint_id,
                                       .signal_name = "approved",
                                       .idempotency_suffix = "1"})
                .effect,
            resume_condition_satisfied);
}

}  // namespace
}  // namespace flowfabric
