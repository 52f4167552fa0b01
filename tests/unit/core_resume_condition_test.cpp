// Resume conditions: what they refuse, what they show, and when they are met (03 §4).
#include <gtest/gtest.h>

#include <algorithm>

#include "support/condition_definition.h"

namespace flowfabric::core {
namespace {

ResumeCondition single(const std::string& key, SignalMatcher matcher = {}) {
  return {SingleSignal{key, std::move(matcher)}};
}
ResumeCondition all_of(std::vector<ResumeCondition> members) {
  return {AllOf{std::move(members)}};
}
ResumeCondition count(std::uint32_t n, CountKind kind, std::vector<std::string> keys,
                      SignalMatcher matcher = {}) {
  return {CountOf{n, kind, std::move(matcher), std::move(keys)}};
}
ResumeCondition nested(int depth) {
  return depth == 1 ? all_of({single("a")}) : all_of({nested(depth - 1)});
}

// ---- structure ----

std::string refusal(const ResumeCondition& condition) {
  const auto checked = check(condition);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::invalid_input);
  return checked.error().detail;
}

TEST(ResumeConditionStructure, HasItsLimits) {
  EXPECT_EQ(refusal(nested(4)), "");
  EXPECT_EQ(refusal(nested(5)), "depth 5 exceeds cap 4 at path members[0].members[0].members[0].members[0]");
  EXPECT_EQ(refusal(all_of({})), "allof_empty_members at path <root>");
  EXPECT_EQ(refusal(all_of({single("a"), all_of({})})), "allof_empty_members at path members[1]");
  EXPECT_EQ(refusal(count(0, CountKind::distinct_signals, {"a"})), "count_n_zero at path <root>");
  EXPECT_EQ(refusal(count(1, CountKind::distinct_signals, {})), "count_waitpoints_empty at path <root>");
  EXPECT_EQ(refusal(count(3, CountKind::distinct_waitpoints, {"a", "b"})),
            "count_exceeds_waitpoint_set: n=3 > waitpoints.len()=2 at path <root>");
  EXPECT_EQ(refusal(count(2, CountKind::distinct_waitpoints, {"a", "a"})),
            "count_exceeds_waitpoint_set: n=2 > waitpoints.len()=1 at path <root>");
  EXPECT_EQ(refusal(count(9, CountKind::distinct_signals, {"a"})), "");
  EXPECT_EQ(refusal(count(9, CountKind::distinct_sources, {"a"})), "");
  EXPECT_EQ(refusal(single("a", {""})), "resume_condition: empty signal name (use Wildcard instead)");
  EXPECT_EQ(refusal(all_of({count(1, CountKind::distinct_signals, {"a"}, {""})})),
            "resume_condition: empty signal name (use Wildcard instead)");
  EXPECT_EQ(refusal(all_of(std::vector(255, single("a")))), "");
  EXPECT_NE(refusal(all_of(std::vector(256, single("a")))), "");
  EXPECT_NE(refusal(count(1, CountKind::distinct_signals, std::vector<std::string>(300, "a"))), "");
  EXPECT_EQ(refusal(single(std::string(256, 'k'), {std::string(256, 'n')})), "");
  EXPECT_NE(refusal(single(std::string(257, 'k'))), "");
  EXPECT_NE(refusal(single("a", {std::string(257, 'n')})), "");
}

TEST(ResumeConditionStructure, HasTextsForNames) {
  for (const auto& bytes : {std::string("\xff"), std::string("a\0b", 3), std::string("\xc3")}) {
    EXPECT_NE(refusal(single(bytes)), "");
    EXPECT_NE(refusal(single("a", {bytes})), "");
    EXPECT_NE(refusal(count(1, CountKind::distinct_signals, {"a", bytes})), "");
    EXPECT_NE(refusal(all_of({count(1, CountKind::distinct_signals, {"a"}, {bytes})})), "");
  }
  EXPECT_EQ(refusal(single("\xc3\xa9", {"\xf0\x9f\x98\x80\n"})), "");
}

// Before anybody has refused it.
TEST(ResumeConditionStructure, NamesManyWaitpointsQuickly) {
  std::vector<std::string> keys;
  for (int i = 0; i < 50'000; ++i) keys.push_back(std::to_string(i));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(keys_of(count(1, CountKind::distinct_signals, keys)), keys);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(ResumeConditionStructure, NamesItsWaitpoints) {
  const auto condition =
      all_of({single("b"), count(1, CountKind::distinct_signals, {"a", "b"}), {OperatorOnly{}}});
  EXPECT_EQ(keys_of(condition), (std::vector<std::string>{"b", "a"}));
  EXPECT_FALSE(needs_deadline(condition));
  EXPECT_TRUE(needs_deadline(all_of({single("a"), {TimeoutOnly{}}})));
}

TEST(ResumeConditionStructure, ShowsTheNamesOfEachWaitpoint) {
  const auto condition = all_of({single("a", {"x"}), single("b", {"y"}), single("a", {"x"}),
                                 count(1, CountKind::distinct_signals, {"a", "c"}, {"z"}), single("a")});
  EXPECT_EQ(required_names(condition, "a"), (std::vector<std::string>{"x", "z"}));
  EXPECT_EQ(required_names(condition, "b"), (std::vector<std::string>{"y"}));
  EXPECT_EQ(required_names(single("a"), "a"), std::vector<std::string>{});
  EXPECT_EQ(required_names({OperatorOnly{}}, "a"), std::vector<std::string>{"__operator_only__"});
  EXPECT_EQ(required_names({TimeoutOnly{}}, "a"), std::vector<std::string>{"__timeout_only__"});
}

// ---- signals ----

SignalId signal_id(std::uint8_t number) {
  SignalId id;
  id.uuid.bytes[0] = number;
  return id;
}
ArrivedSignal signal(const std::string& key, const std::string& name, const std::string& source = "s",
                     std::uint8_t number = 1) {
  ArrivedSignal arrived{.signal_id = signal_id(number),
                        .waitpoint_id = {},
                        .waitpoint_key = key,
                        .signal_name = name,
                        .source_type = "test",
                        .source_identity = source};
  arrived.waitpoint_id.uuid.bytes[0] = static_cast<std::uint8_t>(key[0]);
  return arrived;
}

using Effects = std::vector<SignalEffect>;
Effects effects(const ResumeCondition& condition, const std::vector<ArrivedSignal>& signals) {
  Satisfied satisfied;
  Effects all;
  for (const auto& each : signals) all.push_back(deliver(condition, satisfied, each));
  return all;
}

using enum SignalEffect;

TEST(ResumeConditionSignals, OfASingle) {
  EXPECT_EQ(
      effects(single("a", {"x"}), {signal("a", "y"), signal("b", "x"), signal("a", "X"), signal("a", "x")}),
      (Effects{no_op, no_op, no_op, resume_condition_satisfied}));
  EXPECT_EQ(effects(single("a"), {signal("a", "anything")}), Effects{resume_condition_satisfied});
}

TEST(ResumeConditionSignals, OfAllOf) {
  const auto both = all_of({single("a", {"x"}), single("a", {"y"})});
  EXPECT_EQ(effects(both, {signal("a", "x"), signal("a", "x"), signal("a", "z"), signal("b", "x"),
                           signal("a", "y")}),
            (Effects{appended_to_waitpoint, appended_to_waitpoint_duplicate, signal_ignored_matcher_failed,
                     signal_ignored_not_in_condition, resume_condition_satisfied}));
}

TEST(ResumeConditionSignals, OfCounts) {
  EXPECT_EQ(effects(count(2, CountKind::distinct_sources, {"a"}),
                    {signal("a", "x", "s", 1), signal("a", "x", "s", 2), signal("a", "x", "t", 3)}),
            (Effects{appended_to_waitpoint, appended_to_waitpoint_duplicate, resume_condition_satisfied}));
  EXPECT_EQ(effects(count(2, CountKind::distinct_signals, {"a"}),
                    {signal("a", "x", "s", 1), signal("a", "x", "s", 1), signal("a", "x", "s", 2)}),
            (Effects{appended_to_waitpoint, appended_to_waitpoint_duplicate, resume_condition_satisfied}));
  EXPECT_EQ(effects(count(2, CountKind::distinct_waitpoints, {"a", "b"}),
                    {signal("a", "x"), signal("a", "x", "t", 2), signal("b", "x")}),
            (Effects{appended_to_waitpoint, appended_to_waitpoint_duplicate, resume_condition_satisfied}));
  EXPECT_EQ(effects(count(1, CountKind::distinct_signals, {"a"}, {"x"}), {signal("a", "y")}),
            Effects{signal_ignored_matcher_failed});
}

// "a:b" of type "c" is not "b" of type "c:a".
TEST(ResumeConditionSignals, SourcesAreTwoTexts) {
  auto first = signal("a", "x", "y:z", 1);
  first.source_type = "t";
  auto second = signal("a", "x", "z", 2);
  second.source_type = "t:y";
  EXPECT_EQ(effects(count(2, CountKind::distinct_sources, {"a"}), {first, second}),
            (Effects{appended_to_waitpoint, resume_condition_satisfied}));
}

TEST(ResumeConditionSignals, CountsDoNotFillEachOther) {
  const auto condition = all_of({count(2, CountKind::distinct_signals, {"a"}, {"x"}),
                                 count(1, CountKind::distinct_signals, {"a"}, {"y"})});
  EXPECT_EQ(
      effects(condition, {signal("a", "x", "s", 1), signal("a", "y", "s", 2), signal("a", "x", "s", 3)}),
      (Effects{appended_to_waitpoint, appended_to_waitpoint, resume_condition_satisfied}));
}

TEST(ResumeConditionSignals, NoneMeetsWhatIsNotForThem) {
  EXPECT_EQ(effects({OperatorOnly{}}, {signal("a", kOperatorOnlyName)}), Effects{no_op});
  EXPECT_EQ(effects({TimeoutOnly{}}, {signal("a", kTimeoutOnlyName)}), Effects{no_op});
  EXPECT_EQ(effects(all_of({single("a"), {OperatorOnly{}}}), {signal("a", "x")}),
            Effects{appended_to_waitpoint});
}

// ---- every small condition with every short history, against the definition ----

std::vector<ResumeCondition> leaves() {
  std::vector<ResumeCondition> all{{OperatorOnly{}}, {TimeoutOnly{}}};
  const std::vector<SignalMatcher> matchers{{}, {"x"}};
  for (const auto& matcher : matchers) {
    for (const auto* key : {"a", "b"}) all.push_back(single(key, matcher));
    for (const auto kind :
         {CountKind::distinct_waitpoints, CountKind::distinct_signals, CountKind::distinct_sources}) {
      all.push_back(count(1, kind, {"a"}, matcher));
      all.push_back(count(2, kind, {"a", "b"}, matcher));
    }
  }
  return all;
}

std::vector<ArrivedSignal> alphabet() {
  std::vector<ArrivedSignal> all;
  for (const auto* key : {"a", "b"}) {
    for (const auto* name : {"x", "y"}) {
      for (const auto* source : {"s", "t"}) {
        for (std::uint8_t number = 1; number <= 2; ++number) all.push_back(signal(key, name, source, number));
      }
    }
  }
  return all;
}

// True the first time the definition holds, and only then.
void expect_as_defined(const ResumeCondition& condition, const std::vector<ArrivedSignal>& signals) {
  Satisfied satisfied;
  std::vector<ArrivedSignal> history;
  bool held = false;
  for (const auto& arrived : signals) {
    const auto before = satisfied;
    const auto effect = deliver(condition, satisfied, arrived);
    history.push_back(arrived);
    const bool holds_now = tests::holds(condition, history);
    ASSERT_EQ(effect == resume_condition_satisfied, holds_now && !held);
    ASSERT_TRUE(std::ranges::includes(satisfied, before)) << "nothing is taken back";
    ASSERT_EQ(is_satisfier(effect) || held, satisfied != before || held) << "a satisfier adds something";
    held = holds_now;
    if (held) return;  // it is resumed
  }
}

TEST(ResumeConditionDefinition, HoldsForEveryLeafAndHistoriesOfThree) {
  const auto signals = alphabet();
  for (const auto& leaf : leaves()) {
    ASSERT_TRUE(check(leaf));
    for (const auto& a : signals) {
      for (const auto& b : signals) {
        for (const auto& c : signals) ASSERT_NO_FATAL_FAILURE(expect_as_defined(leaf, {a, b, c}));
      }
    }
  }
}

TEST(ResumeConditionDefinition, HoldsForEveryPairAndHistoriesOfTwo) {
  const auto signals = alphabet();
  const auto all = leaves();
  for (const auto& left : all) {
    for (const auto& right : all) {
      const auto condition = all_of({left, all_of({right})});
      ASSERT_TRUE(check(condition));
      for (const auto& a : signals) {
        for (const auto& b : signals) ASSERT_NO_FATAL_FAILURE(expect_as_defined(condition, {a, b}));
      }
    }
  }
}

}  // namespace
}  // namespace flowfabric::core
