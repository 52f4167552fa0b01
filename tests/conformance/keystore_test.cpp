// The secrets behind tokens (03 §3.4).
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

std::string secret(char digit) {
  return std::string(64, digit);
}

class Secrets : public SuspensionTest {
 protected:
  SecretRotated rotate(const std::string& kid, char digit, std::int64_t grace_ms = 10'000) {
    return must(RotateWaitpointSecret{kid, secret(digit), grace_ms});
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Secrets, kStores, store_name);

TEST_P(Secrets, AreMadeByThemselves) {
  EXPECT_EQ(must(ListWaitpointKids{}), (WaitpointKids{.current_kid = "k1", .verifying = {}}));
  EXPECT_EQ(must(SeedWaitpointSecret{"k1", secret('a')}), (SecretSeeded{"k1", false}));
  expect_error(SeedWaitpointSecret{"k2", secret('a')}, ErrorCode::invalid_input);
  expect_error(SeedWaitpointSecret{"a:b", secret('a')}, ErrorCode::invalid_kid);
  expect_error(SeedWaitpointSecret{"k1", std::string(63, 'a')}, ErrorCode::invalid_input);
}

TEST_P(Secrets, AreRotatedWithGrace) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"}), single("k", {"c"})}));
  const auto rotated = rotate("k2", 'b');
  EXPECT_EQ(rotated, (SecretRotated{.noop = false, .new_kid = "k2", .previous_kid = "k1", .gc_count = 0}));
  EXPECT_EQ(deliver(signal(waitpoint(), "a")).effect, SignalEffect::appended_to_waitpoint);
  rotate("k3", 'c', 20'000);
  EXPECT_EQ(deliver(signal(waitpoint(), "b")).effect, SignalEffect::appended_to_waitpoint);
  EXPECT_EQ(
      must(ListWaitpointKids{}),
      (WaitpointKids{.current_kid = "k3", .verifying = {{"k1", now() + 10'000}, {"k2", now() + 20'000}}}));
  tick(10'000);
  EXPECT_EQ(deliver(signal(waitpoint(), "a")).effect, SignalEffect::appended_to_waitpoint_duplicate)
      << "up to the last moment";
  tick(1);
  expect_error(signal(waitpoint(), "c"), ErrorCode::token_expired);
  auto forged = signal(waitpoint(), "c");
  forged.waitpoint_token.back() = forged.waitpoint_token.back() == 'a' ? 'b' : 'a';
  expect_error(forged, ErrorCode::invalid_token);
  EXPECT_EQ(must(ListWaitpointKids{}).verifying.size(), 1u);
  EXPECT_EQ(rotate("k4", 'd').gc_count, 1u);
  expect_error(signal(waitpoint(), "c"), ErrorCode::invalid_token);
  suspend_new();
  EXPECT_TRUE(waitpoint().waitpoint_token.starts_with("k4:"));
}

TEST_P(Secrets, AreNotReplacedUnderTheirName) {
  rotate("k2", 'b');
  EXPECT_TRUE(rotate("k2", 'b').noop);
  EXPECT_EQ(expect_error(RotateWaitpointSecret{"k2", secret('c')}, ErrorCode::rotation_conflict).detail,
            "k2");
  expect_error(RotateWaitpointSecret{"", secret('c')}, ErrorCode::invalid_kid);
  for (const auto* hex : {"", "abc", "zz11"}) {
    expect_error(RotateWaitpointSecret{"k5", hex}, ErrorCode::invalid_secret_hex);
  }
  expect_error(RotateWaitpointSecret{"k5", secret('c'), std::int64_t{1} << 53}, ErrorCode::invalid_grace_ms);
  expect_error(RotateWaitpointSecret{"k5", secret('c'), -1}, ErrorCode::invalid_grace_ms);
  EXPECT_EQ(must(ListWaitpointKids{}).current_kid, "k2");
}

}  // namespace
}  // namespace flowfabric
