// The keystore of a store that has none yet, which an engine never leaves so (03 §3.2, §3.4).
#include <gtest/gtest.h>

#include "core/suspension/keystore.h"
#include "store/store.h"

namespace flowfabric::core {
namespace {

class EmptyKeystore : public testing::Test {
 protected:
  template <class F>
  auto in_unit(F f) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    auto result = f(unit);
    unit.keep();
    session_->commit(unit);
    return result;
  }
  Result<SecretRotated> rotate(const std::string& kid, const std::string& hex) {
    return in_unit([&](Unit& unit) {
      return apply(unit, RotateWaitpointSecret{.new_kid = kid, .new_secret_hex = hex, .grace_ms = 1000}, at_);
    });
  }
  SecretAtOpen install(const std::string& secret, SecretFrom whom = SecretFrom::caller) {
    return in_unit([&](Unit& unit) { return install_secret(unit, secret, whom, at_); });
  }

  std::unique_ptr<store::Store> store_ = *store::open_store("memory:", {});
  std::unique_ptr<store::Session> session_ = store_->open_writer();
  Context at_{.now_ms = 1000};
};

const std::string kHex = "00ff";

TEST_F(EmptyKeystore, SignsAndOpensNothing) {
  const auto signed_one = in_unit([](Unit& unit) { return sign(unit, {}, {}); });
  ASSERT_FALSE(signed_one);
  EXPECT_EQ(signed_one.error().code, ErrorCode::hmac_secret_not_initialized);
  const auto verified =
      in_unit([&](Unit& unit) { return verify(unit, {}, "k1:" + std::string(64, 'a'), at_); });
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, ErrorCode::hmac_secret_not_initialized);
}

TEST_F(EmptyKeystore, IsFilledByARotation) {
  EXPECT_EQ(rotate("k7", kHex),
            (SecretRotated{.noop = false, .new_kid = "k7", .previous_kid = std::nullopt}));
  EXPECT_EQ(rotate("k7", kHex), (SecretRotated{.noop = true, .new_kid = "k7", .previous_kid = std::nullopt}));
  const auto token = in_unit([](Unit& unit) { return sign(unit, {}, {}); });
  ASSERT_TRUE(token);
  EXPECT_TRUE(token->starts_with("k7:"));
}

TEST_F(EmptyKeystore, IsFilledByASeed) {
  const SeedWaitpointSecret seed{.kid = "k1", .secret_hex = std::string(64, 'a')};
  const auto seeded = [&] { return in_unit([&](Unit& unit) { return apply(unit, seed, at_); }); };
  EXPECT_EQ(seeded(), (SecretSeeded{"k1", std::nullopt}));
  EXPECT_EQ(seeded(), (SecretSeeded{"k1", true}));
}

TEST_F(EmptyKeystore, IsFilledWhenAnEngineOpensIt) {
  EXPECT_EQ(install("one"), SecretAtOpen::installed);
  EXPECT_EQ(install("one"), SecretAtOpen::in_force);
  EXPECT_EQ(install("two"), SecretAtOpen::another_is_stored);
  in_unit([](Unit& unit) {
    unit.find<HmacKey>({kFirstKid});
    unit.edit<HmacKey>({kFirstKid}).secret = {};
    return true;
  });
  EXPECT_EQ(install("made", SecretFrom::engine), SecretAtOpen::in_force) << "it could open no old token";
  EXPECT_EQ(install("three"), SecretAtOpen::put_back);
  EXPECT_EQ(install("three"), SecretAtOpen::in_force);
}

TEST_F(EmptyKeystore, IsNotFilledTwice) {
  ASSERT_TRUE(rotate("k7", kHex));
  EXPECT_EQ(install("one"), SecretAtOpen::in_force) << "rotated since";
  EXPECT_EQ(in_unit([](Unit& unit) { return unit.find<Keystore>({})->active_kid; }), "k7");
}

}  // namespace
}  // namespace flowfabric::core
