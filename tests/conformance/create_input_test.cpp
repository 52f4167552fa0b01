// Requests that create refuses, with the exact code, and without a trace.
#include <cmath>
#include <functional>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

struct BadInput {
  std::string name;
  std::function<void(CreateExecution&)> spoil;
  ErrorCode code{ErrorCode::invalid_input};
  std::string detail{};  // where the specification words it
};

std::vector<std::string> tokens(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("t" + std::to_string(i));
  return all;
}

BadInput bad_capabilities(std::string name, std::vector<std::string> required, const std::string& why) {
  return {std::move(name), [required](CreateExecution& r) { r.policy = needs(required); },
          ErrorCode::invalid_capabilities, "required:" + why};
}

BadInput bad_policy(std::string name, std::function<void(ExecutionPolicy&)> spoil) {
  return {std::move(name), [spoil](CreateExecution& r) { spoil(r.policy); }, ErrorCode::invalid_policy_json,
          "malformed"};
}

std::vector<BadInput> bad_inputs() {
  const auto control = [](const char* text) { return std::string(text); };
  return {
      {"LaneEmpty", [](auto& r) { r.lane_id = ""; }},
      {"LaneOf65Bytes", [](auto& r) { r.lane_id = std::string(65, 'x'); }},
      {"LaneWithNewline", [](auto& r) { r.lane_id = "a\nb"; }},
      {"LaneWithDelete", [](auto& r) { r.lane_id = "a\x7f"; }},
      {"LaneBeyondAscii", [](auto& r) { r.lane_id = "größe"; }},
      {"LaneWithNul", [](auto& r) { r.lane_id = "a\0b"s; }},
      {"NamespaceOf257Bytes", [](auto& r) { r.namespace_ = std::string(257, 'x'); }},
      {"NamespaceWithTab", [](auto& r) { r.namespace_ = "a\tb"; }},
      {"NamespaceWithNul", [](auto& r) { r.namespace_ = "a\0b"s; }},
      {"NamespaceWithDelete", [](auto& r) { r.namespace_ = "a\x7f"; }},
      {"NamespaceNotUtf8", [](auto& r) { r.namespace_ = "\xff"; }},
      {"KindWithNul", [](auto& r) { r.execution_kind = "a\0b"s; }},
      {"KindNotUtf8", [](auto& r) { r.execution_kind = "\xc3"; }},
      {"CreatorWithNul", [](auto& r) { r.creator_identity = "a\0b"s; }},
      {"EncodingWithNul", [](auto& r) { r.payload_encoding = "a\0b"s; }},
      {"KeyWithNul", [](auto& r) { r.idempotency_key = "a\0b"s; }},
      {"TagKeyEmpty",
       [](auto& r) {
         r.tags = {{"", "x"}};
       },
       ErrorCode::invalid_tag_key},
      {"TagKeyOf257Bytes",
       [](auto& r) {
         r.tags = {{std::string(257, 'k'), "x"}};
       },
       ErrorCode::invalid_tag_key},
      {"TagKeyWithNul",
       [](auto& r) {
         r.tags = {{"a\0b"s, "x"}};
       }},
      {"TagValueWithNul",
       [](auto& r) {
         r.tags = {{"a.b", "x\0y"s}};
       }},
      {"SecondTagBad",
       [](auto& r) {
         r.tags = {{"a.b", "fine"}, {"c.d", "\0"s}};
       }},
      {"DelayNegative", [](auto& r) { r.delay_until = -1; }},
      {"DeadlineNegative", [](auto& r) { r.execution_deadline_at = -1; }},
      bad_capabilities("CapabilityEmpty", {"gpu", ""}, "empty_token"),
      bad_capabilities("CapabilityWithComma", {"a,b"}, "comma_in_token"),
      bad_capabilities("CapabilityWithSpace", {"a b"}, "control_or_whitespace"),
      bad_capabilities("CapabilityWithTab", {control("a\tb")}, "control_or_whitespace"),
      bad_capabilities("CapabilityWithDelete", {control("a\x7f")}, "control_or_whitespace"),
      bad_capabilities("CapabilityWithNul", {"a\0b"s}, "control_or_whitespace"),
      bad_capabilities("Capabilities257", tokens(257), "too_many_tokens"),
      bad_capabilities("CapabilitiesOf4097Bytes", {std::string(4097, 'x')}, "too_many_bytes"),
      bad_policy(
          "BackoffMultiplierNotANumber",
          [](auto& p) { p.retry_policy = RetryPolicy{.backoff = ExponentialBackoff{.multiplier = NAN}}; }),
      bad_policy("BackoffMultiplierInfinite",
                 [](auto& p) {
                   p.retry_policy = RetryPolicy{.backoff = ExponentialBackoff{.multiplier = INFINITY}};
                 }),
      bad_policy("TimeoutBehaviorUnknown",
                 [](auto& p) { p.suspension_policy = SuspensionPolicy{.timeout_behavior = "explode"}; }),
      bad_policy("DurabilityUnknown",
                 [](auto& p) { p.stream_policy = StreamPolicy{.durability_mode = "maybe"}; }),
  };
}

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << input.name;
}

class CreateInput : public EngineCaseTest<BadInput> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, CreateInput, on_every_store(bad_inputs()), case_name<BadInput>);

TEST_P(CreateInput, IsRefusedWithItsCodeAndWithoutATrace) {
  const auto& bad = given();
  const ExecutionId id{7, {}};
  CreateExecution request{.execution_id = id, .execution_kind = "test", .idempotency_key = "key"};
  bad.spoil(request);

  expect_error(request, bad.code, bad.detail);

  expect_error(DescribeExecution{id}, ErrorCode::execution_not_found);
  EXPECT_EQ(count(), StateCounts{});
  EXPECT_TRUE(claim().empty());
  const auto good = must(CreateExecution{.execution_kind = "test", .idempotency_key = "key"});
  EXPECT_FALSE(good.duplicate) << "the refused create had its key remembered";
}

class CreateLimit : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, CreateLimit, kStores, store_name);

TEST_P(CreateLimit, ABadLaneSaysHowLongItIsOrWhichByteIsBad) {
  const auto too_long =
      expect_error(CreateExecution{.lane_id = std::string(65, 'x')}, ErrorCode::invalid_input);
  const auto bad_byte = expect_error(CreateExecution{.lane_id = "abc\n"}, ErrorCode::invalid_input);

  EXPECT_NE(too_long.detail.find("65"), std::string::npos) << too_long.detail;
  EXPECT_NE(bad_byte.detail.find("3"), std::string::npos) << bad_byte.detail;
}

TEST_P(CreateLimit, ANamespaceMayHave256Bytes) {
  const std::string longest(256, 'n');

  EXPECT_EQ(describe(create({.namespace_ = longest})).namespace_, longest);
}

TEST_P(CreateLimit, ATagKeyMayHave256Bytes) {
  const Tags tags{{std::string(256, 'k'), std::string(1024, 'v')}};

  EXPECT_EQ(describe(create({.tags = tags})).tags, tags);
}

TEST_P(CreateLimit, CapabilitiesMayBe256Tokens) {
  create(needs(tokens(256)));

  EXPECT_EQ(claim({.capabilities = tokens(256)}).size(), 1u);
}

TEST_P(CreateLimit, CapabilitiesMayTake4096Bytes) {
  const std::vector<std::string> widest{std::string(2000, 'a'), std::string(2095, 'b')};  // and one comma
  create(needs(widest));

  EXPECT_EQ(claim({.capabilities = widest}).size(), 1u);
}

TEST_P(CreateLimit, RepeatedCapabilitiesCountOnce) {
  create(needs(std::vector<std::string>(300, "gpu")));

  EXPECT_EQ(claim({.capabilities = {"gpu"}}).size(), 1u);
}

}  // namespace
}  // namespace flowfabric
