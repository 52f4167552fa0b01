#include "flowfabric/policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/policy_json.h"

namespace flowfabric {
namespace {

using namespace std::string_literals;
using Tokens = std::vector<std::string>;

constexpr std::string_view kDefaultJson =
    R"({"priority":0,"max_reclaim_count":100,"max_replay_count":10,"budget_ids":[],"max_signals_per_execution":10000})";
constexpr std::string_view kUuid = "550e8400-e29b-41d4-a716-446655440000";

ExecutionPolicy decode(std::string_view json) {
  auto policy = policy_from_json(json);
  EXPECT_TRUE(policy) << json << ": " << (policy ? "" : policy.error().to_string());
  return policy.value_or(ExecutionPolicy{});
}

void expect_refused(std::string_view json, ErrorCode code, std::string_view detail,
                    std::string_view advice_part = "") {
  const auto policy = policy_from_json(json);
  ASSERT_FALSE(policy) << json;
  EXPECT_EQ(error_name(policy.error().code), error_name(code)) << json;
  EXPECT_EQ(policy.error().detail, detail) << json;
  EXPECT_FALSE(policy.error().advice.empty()) << json;
  EXPECT_NE(policy.error().advice.find(advice_part), std::string::npos) << policy.error().advice;
}

void expect_malformed(std::string_view json, std::string_view advice_part = "") {
  expect_refused(json, ErrorCode::invalid_policy_json, "malformed", advice_part);
}

ExecutionPolicy full_policy() {
  ExecutionPolicy policy;
  policy.priority = -7;
  policy.delay_until = 1'767'225'600'000;
  policy.retry_policy = RetryPolicy{5, ExponentialBackoff{10, 20, 1.5, true}, {"timeout", "infra_crash"}};
  policy.timeout_policy = TimeoutPolicy{1, 2, 3};
  policy.max_reclaim_count = 4;
  policy.suspension_policy = SuspensionPolicy{60'000, "escalate"};
  policy.fallback_policy = FallbackPolicy{{{"acme", "big \"one\"", 9}, {"acme", "größe", {}}}};
  policy.max_replay_count = 0;
  policy.budget_ids = {*BudgetId::parse(kUuid), BudgetId{}};
  policy.quota_policy_id = *QuotaPolicyId::parse(kUuid);
  policy.routing_requirements = RoutingRequirements{{"cuda", "gpu"}, "eu", "vm"};
  policy.dedup_window_ms = 0;
  policy.stream_policy = StreamPolicy{"durable", 7, 8};
  policy.max_signals_per_execution = 0;
  return policy;
}

TEST(Policy, DefaultsAsText) {
  EXPECT_EQ(to_json(ExecutionPolicy{}), kDefaultJson);
  ExecutionPolicy explicit_cap;
  explicit_cap.max_reclaim_count = 100;
  EXPECT_EQ(to_json(explicit_cap), kDefaultJson);
}

TEST(Policy, DefaultTextDecodesTheSameWithAndWithoutTheShortcut) {
  ExecutionPolicy expected;
  expected.max_reclaim_count = 100;
  EXPECT_EQ(decode(kDefaultJson), expected);
  EXPECT_EQ(decode(std::string(kDefaultJson) + " "), expected);
}

TEST(Policy, AbsentNullAndUnknownKeysMeanDefaults) {
  EXPECT_EQ(decode("{}"), ExecutionPolicy{});
  EXPECT_EQ(decode(R"({"no_such_key":[1,{"a":null}],"retry":5})"), ExecutionPolicy{});
  EXPECT_EQ(decode(R"({"priority":null,"delay_until":null,"retry_policy":null,"timeout_policy":null,
                       "max_reclaim_count":null,"suspension_policy":null,"fallback_policy":null,
                       "max_replay_count":null,"budget_ids":null,"quota_policy_id":null,
                       "routing_requirements":null,"dedup_window_ms":null,"stream_policy":null,
                       "max_signals_per_execution":null})"),
            ExecutionPolicy{});
}

TEST(Policy, EmptyObjectsGetTheirOwnDefaults) {
  const auto policy = decode(R"({"retry_policy":{},"timeout_policy":{},"suspension_policy":{},
                                 "fallback_policy":{},"routing_requirements":{},"stream_policy":{}})");
  EXPECT_EQ(policy.retry_policy, (RetryPolicy{3, ExponentialBackoff{1000, 60'000, 2.0, false}, {}}));
  EXPECT_EQ(policy.timeout_policy, (TimeoutPolicy{{}, {}, {}}));
  EXPECT_EQ(policy.suspension_policy, (SuspensionPolicy{{}, "fail"}));
  EXPECT_EQ(policy.fallback_policy, FallbackPolicy{});
  EXPECT_EQ(policy.routing_requirements, RoutingRequirements{});
  EXPECT_EQ(policy.stream_policy, (StreamPolicy{"buffered", 10'000, {}}));
}

TEST(Policy, FullTextInTheSpecifiedOrder) {
  EXPECT_EQ(
      to_json(full_policy()),
      R"({"priority":-7,"delay_until":1767225600000,)"
      R"("retry_policy":{"max_retries":5,"backoff":{"type":"exponential","initial_delay_ms":10,)"
      R"("max_delay_ms":20,"multiplier":1.5,"jitter":true},"retryable_categories":["timeout","infra_crash"]},)"
      R"("timeout_policy":{"attempt_timeout_ms":1,"execution_deadline_ms":2,"max_reclaim_count":3},)"
      R"("max_reclaim_count":4,)"
      R"("suspension_policy":{"default_timeout_ms":60000,"timeout_behavior":"escalate"},)"
      R"("fallback_policy":{"tiers":[{"provider":"acme","model":"big \"one\"","timeout_ms":9},)"
      R"({"provider":"acme","model":"größe"}]},)"
      R"("max_replay_count":0,)"
      R"("budget_ids":["550e8400-e29b-41d4-a716-446655440000","00000000-0000-0000-0000-000000000000"],)"
      R"("quota_policy_id":"550e8400-e29b-41d4-a716-446655440000",)"
      R"("routing_requirements":{"required_capabilities":["cuda","gpu"],"preferred_locality":"eu",)"
      R"("isolation_level":"vm"},)"
      R"("dedup_window_ms":0,)"
      R"("stream_policy":{"durability_mode":"durable","retention_maxlen":7,"retention_ttl_ms":8},)"
      R"("max_signals_per_execution":0})");
}

TEST(Policy, RoundTrips) {
  EXPECT_EQ(decode(to_json(full_policy())), full_policy());

  ExecutionPolicy fixed;
  fixed.max_reclaim_count = 0;
  fixed.retry_policy = RetryPolicy{0, FixedBackoff{250}, {}};
  EXPECT_EQ(to_json(fixed),
            R"({"priority":0,"retry_policy":{"max_retries":0,"backoff":{"type":"fixed","delay_ms":250},)"
            R"("retryable_categories":[]},"max_reclaim_count":0,"max_replay_count":10,"budget_ids":[],)"
            R"("max_signals_per_execution":10000})");
  EXPECT_EQ(decode(to_json(fixed)), fixed);
}

TEST(Policy, LargestNumbersRoundTrip) {
  ExecutionPolicy policy;
  policy.priority = std::numeric_limits<std::int32_t>::min();
  policy.delay_until = std::numeric_limits<std::int64_t>::max();
  policy.max_reclaim_count = std::numeric_limits<std::uint32_t>::max();
  policy.dedup_window_ms = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(decode(to_json(policy)), policy);
}

TEST(Policy, MultipliersRoundTrip) {
  for (const double multiplier : {2.0, 1.1, 0.1, 3.3, 1.7, 2.718281828459045, 1e300, 1e-7, 123456789.0}) {
    ExecutionPolicy policy;
    policy.max_reclaim_count = 1;
    policy.retry_policy = RetryPolicy{1, ExponentialBackoff{1, 1, multiplier, false}, {}};
    EXPECT_EQ(decode(to_json(policy)), policy) << to_json(policy);
  }
  ExecutionPolicy policy;
  policy.retry_policy.emplace();
  EXPECT_NE(to_json(policy).find(R"("multiplier":2.0,)"), std::string::npos);
}

TEST(Policy, ReclaimCap) {
  ExecutionPolicy policy;
  EXPECT_EQ(policy.reclaim_cap(), 100U);
  policy.timeout_policy = TimeoutPolicy{};
  EXPECT_EQ(policy.reclaim_cap(), 100U);
  policy.timeout_policy->max_reclaim_count = 7;
  EXPECT_EQ(policy.reclaim_cap(), 7U);
  EXPECT_EQ(decode(to_json(policy)).reclaim_cap(), 7U);
  policy.max_reclaim_count = 0;
  EXPECT_EQ(policy.reclaim_cap(), 0U);
  EXPECT_EQ(decode(to_json(policy)).reclaim_cap(), 0U);
}

TEST(Policy, UnsetNestedCapIsNotWritten) {
  ExecutionPolicy policy;
  policy.timeout_policy = TimeoutPolicy{5, {}, {}};
  EXPECT_EQ(to_json(policy),
            R"({"priority":0,"timeout_policy":{"attempt_timeout_ms":5},"max_reclaim_count":100,)"
            R"("max_replay_count":10,"budget_ids":[],"max_signals_per_execution":10000})");
}

TEST(Policy, BackoffFallsBack) {
  const auto backoff = [](std::string_view json) {
    return decode(fmt::format(R"({{"retry_policy":{{"backoff":{}}}}})", json)).retry_policy.value().backoff;
  };
  EXPECT_EQ(backoff("null"), Backoff(ExponentialBackoff{}));
  EXPECT_EQ(backoff(R"({"type":"exponential"})"), Backoff(ExponentialBackoff{1000, 60'000, 2.0, false}));
  EXPECT_EQ(backoff(R"({"type":"exponential","max_delay_ms":5})"),
            Backoff(ExponentialBackoff{1000, 5, 2.0, false}));
  EXPECT_EQ(backoff(R"({"type":"exponential","multiplier":3})"),
            Backoff(ExponentialBackoff{1000, 60'000, 3.0, false}));
  EXPECT_EQ(backoff(R"({"type":"fixed"})"), Backoff(FixedBackoff{1000}));
  EXPECT_EQ(backoff(R"({"type":"fixed","delay_ms":0})"), Backoff(FixedBackoff{0}));
  EXPECT_EQ(backoff("{}"), Backoff(FixedBackoff{1000}));
  EXPECT_EQ(backoff(R"({"type":"linear","delay_ms":5})"), Backoff(FixedBackoff{1000}));
}

TEST(Policy, IntegralDoublesAreIntegers) {
  const auto policy = decode(R"({"priority":5.0,"dedup_window_ms":1e3,"delay_until":-1.0})");
  EXPECT_EQ(policy.priority, 5);
  EXPECT_EQ(policy.dedup_window_ms, 1000U);
  EXPECT_EQ(policy.delay_until, -1);
}

TEST(Policy, NotAnObject) {
  for (const std::string_view json : {"", " ", "{", "[]", "null", "5", "\"text\"", "{}{}", "{\"priority\":}",
                                      "{'priority':1}", "{\"priority\":1,}", "{\"priority\":01}"}) {
    expect_malformed(json);
  }
  expect_malformed("[]", "The policy must be an object.");
}

TEST(Policy, WrongTypesNameTheirKey) {
  expect_malformed(R"({"priority":"high"})", "`priority` must be an integer from -2147483648 to 2147483647.");
  expect_malformed(R"({"delay_until":"now"})", "`delay_until` must be an integer");
  expect_malformed(R"({"retry_policy":[]})", "`retry_policy` must be an object.");
  expect_malformed(R"({"retry_policy":{"max_retries":true}})",
                   "`retry_policy.max_retries` must be an integer from 0 to 4294967295.");
  expect_malformed(R"({"retry_policy":{"backoff":"fixed"}})", "`retry_policy.backoff` must be an object.");
  expect_malformed(R"({"retry_policy":{"backoff":{"type":5}}})", "`retry_policy.backoff.type`");
  expect_malformed(R"({"retry_policy":{"backoff":{"type":"exponential","jitter":1}}})",
                   "`retry_policy.backoff.jitter` must be true or false.");
  expect_malformed(R"({"retry_policy":{"backoff":{"type":"exponential","multiplier":"2"}}})",
                   "`retry_policy.backoff.multiplier` must be a number.");
  expect_malformed(R"({"retry_policy":{"retryable_categories":"timeout"}})",
                   "`retry_policy.retryable_categories` must be an array.");
  expect_malformed(R"({"retry_policy":{"retryable_categories":["a",5]}})",
                   "`retry_policy.retryable_categories[1]` must be a string.");
  expect_malformed(R"({"timeout_policy":5})", "`timeout_policy` must be an object.");
  expect_malformed(R"({"suspension_policy":{"timeout_behavior":5}})",
                   "`suspension_policy.timeout_behavior` must be a string.");
  expect_malformed(R"({"fallback_policy":{"tiers":{}}})", "`fallback_policy.tiers` must be an array.");
  expect_malformed(R"({"budget_ids":{}})", "`budget_ids` must be an array.");
  expect_malformed(R"({"quota_policy_id":5})", "`quota_policy_id` must be a UUID.");
  expect_malformed(R"({"routing_requirements":{"isolation_level":[]}})",
                   "`routing_requirements.isolation_level` must be a string.");
  expect_malformed(R"({"stream_policy":"durable"})", "`stream_policy` must be an object.");
}

TEST(Policy, TheFirstFaultIsReported) {
  expect_malformed(R"({"stream_policy":5,"priority":"x","max_replay_count":-1})", "`priority`");
}

TEST(Policy, NumbersOutOfRange) {
  for (const std::string_view member :
       {R"("priority":2147483648)",
        R"("priority":-2147483649)",
        R"("priority":1.5)",
        R"("priority":1e10)",
        R"("delay_until":9223372036854775808)",
        R"("delay_until":-9223372036854775809)",
        R"("max_reclaim_count":-1)",
        R"("max_reclaim_count":4294967296)",
        R"("max_replay_count":-1)",
        R"("max_replay_count":-1.0)",
        R"("max_signals_per_execution":4294967296.0)",
        R"("dedup_window_ms":-1)",
        R"("dedup_window_ms":18446744073709551616)",
        R"("dedup_window_ms":1e400)",
        R"("dedup_window_ms":9007199254740994.0)",
        R"("timeout_policy":{"attempt_timeout_ms":-1})",
        R"("timeout_policy":{"execution_deadline_ms":-1})",
        R"("timeout_policy":{"max_reclaim_count":-1})",
        R"("suspension_policy":{"default_timeout_ms":-1})",
        R"("stream_policy":{"retention_maxlen":-1})",
        R"("stream_policy":{"retention_ttl_ms":0.5})",
        R"("retry_policy":{"backoff":{"type":"fixed","delay_ms":-1}})",
        R"("fallback_policy":{"tiers":[{"provider":"p","model":"m","timeout_ms":-1}]})"}) {
    expect_malformed(fmt::format("{{{}}}", member));
  }
}

TEST(Policy, LimitsOfEachTypeAreInclusive) {
  EXPECT_EQ(decode(R"({"priority":2147483647})").priority, 2147483647);
  EXPECT_EQ(decode(R"({"delay_until":-9223372036854775808})").delay_until,
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(decode(R"({"max_replay_count":4294967295})").max_replay_count, 4294967295U);
  EXPECT_EQ(decode(R"({"dedup_window_ms":18446744073709551615})").dedup_window_ms,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Policy, MultiplierIsFiniteAndPositive) {
  for (const std::string_view multiplier : {"0", "-1", "-0.5", "1e400"}) {
    expect_malformed(fmt::format(
        R"({{"retry_policy":{{"backoff":{{"type":"exponential","multiplier":{}}}}}}})", multiplier));
  }
  ExecutionPolicy policy;
  for (const double multiplier : {std::nan(""), std::numeric_limits<double>::infinity(), 0.0, -2.0}) {
    policy.retry_policy = RetryPolicy{1, ExponentialBackoff{1, 1, multiplier, false}, {}};
    const auto checked = validate(policy);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().detail, "malformed");
  }
  policy.retry_policy = RetryPolicy{1, ExponentialBackoff{1, 1, 0.5, false}, {}};
  EXPECT_TRUE(validate(policy));
}

TEST(Policy, WordsWithAFixedVocabulary) {
  for (const std::string word :
       {"fail", "cancel", "expire", "auto_resume_with_timeout_signal", "auto_resume", "escalate"}) {
    const auto policy = decode(R"({"suspension_policy":{"timeout_behavior":")" + word + R"("}})");
    EXPECT_EQ(policy.suspension_policy.value().timeout_behavior, word);
  }
  for (const std::string word : {"", "Fail", "retry"}) {
    expect_malformed(R"({"suspension_policy":{"timeout_behavior":")" + word + R"("}})",
                     "`suspension_policy.timeout_behavior` must be one of: fail, cancel, expire");
  }
  for (const std::string word : {"buffered", "durable"}) {
    const auto policy = decode(R"({"stream_policy":{"durability_mode":")" + word + R"("}})");
    EXPECT_EQ(policy.stream_policy.value().durability_mode, word);
  }
  for (const std::string word : {"", "durable_full"}) {
    expect_malformed(R"({"stream_policy":{"durability_mode":")" + word + R"("}})",
                     "`stream_policy.durability_mode` must be one of: buffered, durable.");
  }
}

TEST(Policy, FallbackTiersNeedProviderAndModel) {
  expect_malformed(R"({"fallback_policy":{"tiers":[{"model":"m"}]}})",
                   "`fallback_policy.tiers[0].provider` must be a string.");
  expect_malformed(
      R"({"fallback_policy":{"tiers":[{"provider":"p","model":"m"},{"provider":"p","model":null}]}})",
      "`fallback_policy.tiers[1].model` must be a string.");
  expect_malformed(R"({"fallback_policy":{"tiers":["p"]}})", "`fallback_policy.tiers[0]` must be an object.");
}

TEST(Policy, IdsMustBeUuids) {
  expect_malformed(R"({"budget_ids":["550e8400-e29b-41d4-a716-446655440000","b-1"]})",
                   "`budget_ids[1]` must be a UUID.");
  expect_malformed(R"({"quota_policy_id":""})", "`quota_policy_id` must be a UUID.");
  EXPECT_EQ(decode(R"({"budget_ids":["550E8400E29B41D4A716446655440000"]})").budget_ids,
            std::vector{*BudgetId::parse(kUuid)});
}

TEST(Policy, RoutingRequirementsMustBeAnObject) {
  for (const std::string_view value : {"[]", "\"gpu\"", "5", "true"}) {
    expect_refused(fmt::format(R"({{"routing_requirements":{}}})", value), ErrorCode::invalid_policy_json,
                   "routing_requirements:not_object");
  }
}

void expect_capabilities_refused(std::string_view value, std::string_view detail) {
  expect_refused(fmt::format(R"({{"routing_requirements":{{"required_capabilities":{}}}}})", value),
                 ErrorCode::invalid_capabilities, detail);
}

TEST(Policy, CapabilityFaults) {
  expect_capabilities_refused("\"gpu\"", "required:not_array");
  expect_capabilities_refused("{}", "required:not_array");
  expect_capabilities_refused("[\"gpu\",5]", "required:non_string_token");
  expect_capabilities_refused("[null]", "required:non_string_token");
  expect_capabilities_refused("[\"\"]", "required:empty_token");
  expect_capabilities_refused("[\"a,b\"]", "required:comma_in_token");
  expect_capabilities_refused("[\"a b\"]", "required:control_or_whitespace");
  expect_capabilities_refused("[\"a\\u0000\"]", "required:control_or_whitespace");
  expect_capabilities_refused("[\"" + std::string(4097, 'x') + "\"]", "required:too_many_bytes");
}

std::string array_of(std::size_t count) {
  std::string json = "[";
  for (std::size_t i = 0; i < count; ++i) json += fmt::format("{}\"t{}\"", i == 0 ? "" : ",", i);
  return json + "]";
}

TEST(Policy, CapabilityLimitsAreInclusive) {
  const auto count_kept = [](const std::string& array) {
    return decode(fmt::format(R"({{"routing_requirements":{{"required_capabilities":{}}}}})", array))
        .routing_requirements.value()
        .required_capabilities.size();
  };
  EXPECT_EQ(count_kept(array_of(256)), 256U);
  EXPECT_EQ(count_kept("[\"" + std::string(4096, 'x') + "\"]"), 1U);
  expect_capabilities_refused(array_of(257), "required:too_many_tokens");
}

TEST(Policy, CapabilitiesComeBackSortedAndOnce) {
  const auto policy = decode(R"({"routing_requirements":{"required_capabilities":["gpu","cuda","gpu"]}})");
  EXPECT_EQ(policy.routing_requirements.value().required_capabilities, (Tokens{"cuda", "gpu"}));

  ExecutionPolicy unsorted;
  unsorted.routing_requirements = RoutingRequirements{{"gpu", "cuda", "gpu"}, "", ""};
  EXPECT_NE(to_json(unsorted).find(R"("routing_requirements":{"required_capabilities":["cuda","gpu"]})"),
            std::string::npos);
}

TEST(Policy, TextMustBeUtf8WithoutNul) {
  expect_malformed(
      R"({"retry_policy":{"retryable_categories":["a\u0000"]}})",
      "`retry_policy.retryable_categories` must be valid UTF-8 without NUL bytes, up to 4096 bytes long.");
  expect_malformed(R"({"routing_requirements":{"preferred_locality":"\u0000"}})",
                   "`routing_requirements.preferred_locality`");
  expect_malformed(R"({"routing_requirements":{"isolation_level":"\u0000"}})",
                   "`routing_requirements.isolation_level`");
  expect_malformed(R"({"fallback_policy":{"tiers":[{"provider":"\u0000","model":"m"}]}})",
                   "`fallback_policy.tiers.provider`");
  expect_malformed(R"({"fallback_policy":{"tiers":[{"provider":"p","model":"\u0000"}]}})",
                   "`fallback_policy.tiers.model`");
  for (const std::string& text : {"\xFF"s, "\xC0\x80"s, "\xED\xA0\x80"s, "\\ud800"s, "\\udc00"s, "\\ud800x"s,
                                  "\\ud800\\u0041"s, "\0"s, "\n"s}) {
    expect_malformed(R"({"routing_requirements":{"preferred_locality":")" + text + "\"}}");
  }
  EXPECT_EQ(decode(R"({"routing_requirements":{"preferred_locality":"\ud83c\udf89"}})")
                .routing_requirements.value()
                .preferred_locality,
            "🎉");
}

TEST(Policy, ValidateChecksPoliciesMadeInCode) {
  ExecutionPolicy policy = full_policy();
  EXPECT_TRUE(validate(policy));
  policy.routing_requirements->required_capabilities = {"a,b"};
  EXPECT_EQ(validate(policy).error().detail, "required:comma_in_token");

  policy = full_policy();
  policy.suspension_policy->timeout_behavior = "explode";
  EXPECT_EQ(validate(policy).error().code, ErrorCode::invalid_policy_json);

  policy = full_policy();
  policy.stream_policy->durability_mode = "";
  EXPECT_EQ(validate(policy).error().code, ErrorCode::invalid_policy_json);

  policy = full_policy();
  policy.retry_policy->retryable_categories = {"\xFF"};
  EXPECT_EQ(validate(policy).error().code, ErrorCode::invalid_policy_json);
}

TEST(Policy, NestingIsLimited) {
  const auto nested = [](std::size_t depth) {
    return R"({"ignored":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(decode(nested(31)), ExecutionPolicy{});
  expect_malformed(nested(32));
  expect_malformed(nested(100'000));
}

TEST(TagsJson, RoundTrips) {
  EXPECT_EQ(to_json(Tags{}), "");
  EXPECT_EQ(tags_from_json(""), Tags{});
  EXPECT_EQ(tags_from_json("{}"), Tags{});
  const Tags tags = {{"team", "größe"}, {"a.b", "say \"hi\"\n\\"}, {"empty", ""}};
  EXPECT_EQ(to_json(tags), R"({"a.b":"say \"hi\"\n\\","empty":"","team":"größe"})");
  EXPECT_EQ(tags_from_json(to_json(tags)), tags);
}

TEST(TagsJson, KeysAndValuesThatLookLikeSyntax) {
  const Tags tags = {{"{", "}"}, {"}", "{"}, {"[", "]"}};
  EXPECT_EQ(tags_from_json(to_json(tags)), tags);
}

TEST(TagsJson, RefusesWhatIsNoObjectOfStrings) {
  for (const std::string_view json :
       {"[]", "{", "null", R"({"a":1})", R"({"a":null})", R"({"a":"\ud800"})"}) {
    const auto tags = tags_from_json(json);
    ASSERT_FALSE(tags) << json;
    EXPECT_EQ(tags.error().code, ErrorCode::corruption) << json;
    EXPECT_EQ(tags.error().detail, "tags") << json;
  }
}

}  // namespace
}  // namespace flowfabric
