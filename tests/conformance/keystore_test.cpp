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
  EXPECT_EQ(must(ListWaitpointKids{}).verifying.size(), 2u);
  EXPECT_EQ(rotate("k3b", '3', 20'000).gc_count, 0u) << "nor is it collected before";
  tick(1);
  expect_error(signal(waitpoint(), "c"), ErrorCode::token_expired);
  auto wrong = signal(waitpoint(), "c");
  wrong.waitpoint_token = forged(wrong.waitpoint_token);
  expect_error(wrong, ErrorCode::invalid_token);
  EXPECT_EQ(must(ListWaitpointKids{}).verifying.size(), 2u);
  EXPECT_EQ(rotate("k4", 'd').gc_count, 1u);
  expect_error(signal(waitpoint(), "c"), ErrorCode::invalid_token);
  suspend_new();
  EXPECT_TRUE(waitpoint().waitpoint_token.starts_with("k4:"));
}

TEST_P(Secrets, AreCollectedHoweverManyThereAre) {
  for (int i = 0; i < 70; ++i) rotate("r" + std::to_string(i), 'a', 1000);
  EXPECT_EQ(must(ListWaitpointKids{}).verifying.size(), 70u);
  tick(1001);
  EXPECT_EQ(rotate("last", 'b').gc_count, 70u);
  EXPECT_EQ(must(ListWaitpointKids{}).verifying.size(), 1u);
}

TEST_P(Secrets, AreListedByName) {
  for (const auto* kid : {"b", "a", "B"}) rotate(kid, 'a');
  std::vector<std::string> kids;
  for (const auto& each : must(ListWaitpointKids{}).verifying) kids.push_back(each.kid);
  EXPECT_EQ(kids, (std::vector<std::string>{"a", "b", "k1"}));
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

// ---- the one that an engine brings along ----

// The test vector of the specification (03 §3.1), from the secret at the start to the token that a worker
// gets.
TEST_P(Secrets, SignAsTheSpecificationSays) {
  const TestStore empty(GetParam());
  auto engine = open(empty.url(), {.waitpoint_secret_hex = std::string(62, '0') + "01"});
  const auto id = ExecutionId::parse("{fp:12}:11111111-1111-4111-8111-111111111111");
  ASSERT_TRUE(engine.call(CreateExecution{.execution_id = id, .execution_kind = "k"}));
  const auto tasks = engine.call(ClaimTasks{.worker_id = kWorker, .lease_ttl_ms = kLeaseTtl});
  auto request = suspension(tasks.value().at(0));
  request.waitpoints = {{.waitpoint_id = WaitpointId::parse("22222222-2222-4222-8222-222222222222")}};
  const auto token = engine.call(request).value().waitpoints.at(0).waitpoint_token;
  EXPECT_EQ(token, "k1:e41c2c352a8be05f4c149b0a33954ab713e578e25a7cfde00eba6aa2c0c7bb69");
  const auto listed = engine.call(ListPendingWaitpoints{*id}).value().waitpoints.at(0);
  EXPECT_EQ(listed.token_fingerprint, "e41c2c352a8be05f");
}

class GivenSecret : public SuspensionTest {
 protected:
  // The notices of an engine that opens the store with this secret.
  Log opened_with(const std::string& hex) {
    auto said = std::make_shared<Log>();
    reopen({.waitpoint_secret_hex = hex,
            .notice = [said](const std::string& words) { said->push_back(words); }});
    return *said;
  }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, GivenSecret, kDurableStores, store_name);

TEST_P(GivenSecret, StaysInTheStore) {
  suspend_new();
  EXPECT_EQ(opened_with(""), Log{}) << "there is one";
  const auto other = opened_with(secret('a'));
  ASSERT_EQ(other.size(), 1u);
  EXPECT_NE(other[0].find("k1"), std::string::npos);
  EXPECT_NE(other[0].find("rotate"), std::string::npos);
  EXPECT_EQ(other[0].find("aaaa"), std::string::npos);
  EXPECT_EQ(deliver(signal(waitpoint())).effect, SignalEffect::resume_condition_satisfied)
      << "the stored one is in force";
  EXPECT_EQ(must(SeedWaitpointSecret{"k1", secret('a')}), (SecretSeeded{"k1", false}));
  must(RotateWaitpointSecret{"k2", secret('b')});
  EXPECT_EQ(opened_with(secret('a')).size(), 1u) << "as long as there is another k1";
}

TEST(FirstSecret, IsTheOneThatIsGivenOrAnother) {
  const auto notices = [](const std::string& hex) {
    auto said = std::make_shared<Log>();
    auto engine = Engine::open("memory:", {.waitpoint_secret_hex = hex,
                                           .notice = [said](const auto& words) { said->push_back(words); }});
    EXPECT_TRUE(engine);
    const auto seeded = engine->call(SeedWaitpointSecret{"k1", hex.size() == 64 ? hex : secret('f')});
    EXPECT_EQ(seeded, (SecretSeeded{"k1", hex.size() == 64}));
    return *said;
  };
  EXPECT_EQ(notices(secret('a')), Log{});
  EXPECT_EQ(notices("abcd"), Log{}) << "of any length";
  const auto made = notices("");
  ASSERT_EQ(made.size(), 1u);
  EXPECT_NE(made[0].find("one was made"), std::string::npos);
}

}  // namespace
}  // namespace flowfabric
