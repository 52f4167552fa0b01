// Resume conditions as JSON (03 §2).
#include "model/condition_json.h"

#include <gtest/gtest.h>

namespace flowfabric {
namespace {

ResumeCondition single(const std::string& key, SignalMatcher matcher = {}) {
  return {SingleSignal{key, std::move(matcher)}};
}

struct Form {
  const char* name;
  ResumeCondition condition;
  const char* json;
};
void PrintTo(const Form& form, std::ostream* out) {
  *out << form.name;
}

class ConditionForm : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(
    All, ConditionForm,
    testing::Values(
        Form{"Single", single("a", {"x"}), R"({"Single":{"waitpoint_key":"a","matcher":{"ByName":"x"}}})"},
        Form{"Wildcard", single("a"), R"({"Single":{"waitpoint_key":"a","matcher":"Wildcard"}})"},
        Form{"OperatorOnly", {OperatorOnly{}}, R"("OperatorOnly")"},
        Form{"TimeoutOnly", {TimeoutOnly{}}, R"("TimeoutOnly")"},
        Form{
            "AllOf",
            {AllOf{{single("a"), {AllOf{{{OperatorOnly{}}}}}}}},
            R"({"Composite":{"kind":"AllOf","members":[{"Single":{"waitpoint_key":"a","matcher":"Wildcard"}},)"
            R"({"Composite":{"kind":"AllOf","members":["OperatorOnly"]}}]}})"},
        Form{"Count",
             {CountOf{2, CountKind::distinct_sources, {"x"}, {"a", "b"}}},
             R"({"Composite":{"kind":"Count","n":2,"count_kind":"DistinctSources","matcher":{"ByName":"x"},)"
             R"("waitpoints":["a","b"]}})"},
        Form{"CountOfAny",
             {CountOf{1, CountKind::distinct_waitpoints, {}, {"\"é\n"}}},
             R"({"Composite":{"kind":"Count","n":1,"count_kind":"DistinctWaitpoints",)"
             R"("waitpoints":["\"é\n"]}})"}),
    [](const auto& each) { return each.param.name; });

TEST_P(ConditionForm, IsWritten) {
  EXPECT_EQ(to_json(GetParam().condition), GetParam().json);
}

TEST_P(ConditionForm, IsReadBack) {
  const auto read = condition_from_json(GetParam().json);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(*read == GetParam().condition);
}

TEST(ConditionJson, TakesOtherSpellings) {
  const auto read = condition_from_json(
      R"({"composite":{"kind":"count","n":2,"count_kind":"distinct_signals","matcher":null,)"
      R"("waitpoints":["a"],"comment":1}})");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(*read == (ResumeCondition{CountOf{2, CountKind::distinct_signals, {}, {"a"}}}));
  const auto named = condition_from_json(R"({"single":{"waitpoint_key":"a","matcher":{"by_name":"x"}}})");
  ASSERT_TRUE(named) << named.error().to_string();
  EXPECT_TRUE(*named == single("a", {"x"}));
  EXPECT_TRUE(condition_from_json(R"("operator_only")"));
}

TEST(ConditionJson, RefusesWhatItDoesNotKnow) {
  for (const auto* text :
       {"",
        "{",
        "null",
        "1",
        "[]",
        "{}",
        R"("Never")",
        R"({"Single":1})",
        R"({"Single":{}})",
        R"({"Single":{"waitpoint_key":1}})",
        R"({"Single":{"waitpoint_key":"a","matcher":"Never"}})",
        R"({"Single":{"waitpoint_key":"a","matcher":{"ByName":1}}})",
        R"({"Single":{"waitpoint_key":"a","matcher":{"ByName":"x","Or":"y"}}})",
        R"({"Single":{"waitpoint_key":"a"},"Other":{}})",
        R"({"Composite":{"kind":"AnyOf","members":[]}})",
        R"({"Composite":{"kind":"AllOf"}})",
        R"({"Composite":{"kind":"AllOf","members":[1]}})",
        R"({"Composite":{"kind":"Count","n":-1,"count_kind":"DistinctSignals","waitpoints":["a"]}})",
        R"({"Composite":{"kind":"Count","n":4294967296,"count_kind":"DistinctSignals","waitpoints":["a"]}})",
        R"({"Composite":{"kind":"Count","n":1.5,"count_kind":"DistinctSignals","waitpoints":["a"]}})",
        R"({"Composite":{"kind":"Count","n":1,"count_kind":"DistinctMoons","waitpoints":["a"]}})",
        R"({"Composite":{"kind":"Count","n":1,"count_kind":"DistinctSignals","waitpoints":"a"}})",
        R"({"Composite":{"kind":"Count","n":1,"count_kind":"DistinctSignals","waitpoints":[1]}})"}) {
    const auto read = condition_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_input) << text;
    EXPECT_TRUE(read.error().detail.starts_with("resume_condition: ")) << read.error().detail;
  }
}

TEST(ConditionJson, RefusesWhatIsTooDeepToBeWalked) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += R"({"Composite":{"kind":"AllOf","members":[)";
  EXPECT_FALSE(condition_from_json(text));
}

}  // namespace
}  // namespace flowfabric
