// Which worker may take what: capabilities, namespaces, and the arguments of a claim (02 §5.1, §16.6).
#include <functional>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class ClaimRouting : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimRouting, kStores, store_name);

// ---- capabilities ----

TEST_P(ClaimRouting, AWorkerWithMoreThanNeededTakesIt) {
  const auto id = create(needs({"gpu"}));

  EXPECT_EQ(claim_one({.capabilities = {"x", "gpu", "a"}}).execution_id, id);
}

TEST_P(ClaimRouting, EveryNeededCapabilityCounts) {
  const auto id = create(needs({"gpu", "cuda"}));

  EXPECT_TRUE(claim({.capabilities = {"gpu"}}).empty());
  EXPECT_TRUE(claim({.capabilities = {"cuda", "x"}}).empty());
  EXPECT_EQ(claim_one({.capabilities = {"cuda", "gpu"}}).execution_id, id);
}

TEST_P(ClaimRouting, AWorkerWithoutCapabilitiesTakesOnlyWhatNeedsNone) {
  create(needs({"gpu"}));
  const auto plain = create();

  EXPECT_EQ(claim_all(), std::vector{plain});
}

TEST_P(ClaimRouting, WhatNeedsNothingSuitsEveryWorker) {
  const auto plain = create();

  EXPECT_EQ(claim_one({.capabilities = {"gpu"}}).execution_id, plain);
}

TEST_P(ClaimRouting, CapabilitiesAreCaseSensitiveWholeWords) {
  create(needs({"gpu"}));

  EXPECT_TRUE(claim({.capabilities = {"GPU", "gpu2", "gp"}}).empty());
}

TEST_P(ClaimRouting, CapabilitiesMayBeAnyUtf8) {
  const auto id = create(needs({"größe"}));

  EXPECT_EQ(claim_one({.capabilities = {"größe"}}).execution_id, id);
}

TEST_P(ClaimRouting, TheOrderAndRepetitionOfCapabilitiesDoNotMatter) {
  const auto id = create(needs({"b", "a", "b"}));

  EXPECT_EQ(claim_one({.capabilities = {"b", "a", "a"}}).execution_id, id);
}

TEST_P(ClaimRouting, AMissChangesNothing) {
  const auto id = create(needs({"gpu"}));
  tick(10);
  const auto before = story(id);
  EXPECT_TRUE(claim().empty());

  EXPECT_EQ(story(id), before);
}

TEST_P(ClaimRouting, UnservedWorkOfHighPriorityDoesNotStandInTheWay) {
  for (int i = 0; i < 30; ++i) create({.priority = 9, .policy = needs({"gpu"})});
  const auto plain = create();

  EXPECT_EQ(claim_one().execution_id, plain);
}

// ---- namespaces ----

TEST_P(ClaimRouting, AWorkerOfNoNamespaceTakesFromAll) {
  create({.namespace_ = "a"});
  create({.namespace_ = "b"});
  create();

  EXPECT_EQ(claim({.max_tasks = 10}).size(), 3u);
}

TEST_P(ClaimRouting, AWorkerOfANamespaceTakesOnlyFromIt) {
  create({.namespace_ = "a"});
  const auto ours = create({.namespace_ = "b"});
  create();

  EXPECT_EQ(claim_all({.namespace_ = "b", .max_tasks = 10}), std::vector{ours});
}

TEST_P(ClaimRouting, TheEmptyNamespaceIsANamespaceOfItsOwn) {
  create({.namespace_ = "a"});
  const auto unscoped = create();

  EXPECT_EQ(claim_all({.namespace_ = "", .max_tasks = 10}), std::vector{unscoped});
}

TEST_P(ClaimRouting, LostWorkAsksForTheSameAsBefore) {
  const auto id = create({.namespace_ = "a", .policy = needs({"gpu"})});
  claim_one({.capabilities = {"gpu"}});
  advance(kLeaseTtl);

  EXPECT_TRUE(claim({.namespace_ = "a"}).empty());
  EXPECT_TRUE(claim({.namespace_ = "b", .capabilities = {"gpu"}}).empty());
  EXPECT_EQ(claim_one({.namespace_ = "a", .capabilities = {"gpu"}}).execution_id, id);
}

TEST_P(ClaimRouting, PausedWorkAsksForTheSameAsBefore) {
  const auto id = create(needs({"gpu"}));
  delay(claim_one({.capabilities = {"gpu"}}), now() + 10);
  advance(10);

  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(claim_one({.capabilities = {"gpu"}}).execution_id, id);
}

// ---- limits that are still fine ----

TEST_P(ClaimRouting, TheWidestArgumentsAreFine) {
  std::vector<std::string> lanes{"default"};
  while (lanes.size() < 64) lanes.push_back("lane-" + std::to_string(lanes.size()));
  create();

  const auto task = claim_one({.worker_id = std::string(256, 'w'),
                               .worker_instance_id = std::string(256, 'i'),
                               .lanes = lanes,
                               .max_tasks = 256,
                               .lease_ttl_ms = 3'600'000});
  EXPECT_EQ(task.lease_expires_at, kStart + 3'600'000);
}

TEST_P(ClaimRouting, TheShortestLeaseIsASecond) {
  create();

  EXPECT_EQ(claim_one({.lease_ttl_ms = 1000}).lease_expires_at, kStart + 1000);
}

// ---- bad arguments ----

struct BadClaim {
  std::string name;
  std::function<void(ClaimTasks&)> spoil;
  ErrorCode code{ErrorCode::invalid_input};
  std::string detail{};
};

void PrintTo(const BadClaim& bad, std::ostream* out) {
  *out << bad.name;
}

BadClaim bad_capabilities(std::string name, std::vector<std::string> tokens, const std::string& why) {
  return {std::move(name), [tokens](ClaimTasks& r) { r.capabilities = tokens; },
          ErrorCode::invalid_capabilities, "worker:" + why};
}

std::vector<BadClaim> bad_claims() {
  std::vector<std::string> too_many;
  for (int i = 0; i < 257; ++i) too_many.push_back("t" + std::to_string(i));
  return {
      {"WorkerEmpty", [](auto& r) { r.worker_id = ""; }},
      {"WorkerOf257Bytes", [](auto& r) { r.worker_id = std::string(257, 'w'); }},
      {"WorkerWithSpace", [](auto& r) { r.worker_id = "a b"; }},
      {"WorkerWithUnicodeSpace", [](auto& r) { r.worker_id = "a\u00a0b"; }},
      {"WorkerWithNul", [](auto& r) { r.worker_id = "a\0"s; }},
      {"InstanceOf257Bytes", [](auto& r) { r.worker_instance_id = std::string(257, 'w'); }},
      {"InstanceWithNewline", [](auto& r) { r.worker_instance_id = "a\n"; }},
      {"NamespaceOf257Bytes", [](auto& r) { r.namespace_ = std::string(257, 'n'); }},
      {"NamespaceWithControl", [](auto& r) { r.namespace_ = "\x01"; }},
      {"NoLanes", [](auto& r) { r.lanes = {}; }},
      {"SixtyFiveLanes", [](auto& r) { r.lanes = std::vector<std::string>(65, "default"); }},
      {"LaneEmpty",
       [](auto& r) {
         r.lanes = {"default", ""};
       }},
      {"LaneOf65Bytes",
       [](auto& r) {
         r.lanes = {"default", std::string(65, 'x')};
       }},
      {"ZeroTasks", [](auto& r) { r.max_tasks = 0; }},
      {"TooManyTasks", [](auto& r) { r.max_tasks = 257; }},
      {"LeaseTooShort", [](auto& r) { r.lease_ttl_ms = 999; }},
      {"LeaseTooLong", [](auto& r) { r.lease_ttl_ms = 3'600'001; }},
      {"LeaseNegative", [](auto& r) { r.lease_ttl_ms = -1; }},
      {"WaitNegative", [](auto& r) { r.wait_ms = -1; }},
      {"WaitTooLong", [](auto& r) { r.wait_ms = 30'001; }},
      bad_capabilities("CapabilityEmpty", {""}, "empty_token"),
      bad_capabilities("CapabilityWithComma", {"a,b"}, "comma_in_token"),
      bad_capabilities("CapabilityWithSpace", {"a b"}, "control_or_whitespace"),
      bad_capabilities("Capabilities257", too_many, "too_many_tokens"),
      bad_capabilities("CapabilitiesOf4097Bytes", {std::string(4097, 'x')}, "too_many_bytes"),
  };
}

class ClaimInput : public EngineCaseTest<BadClaim> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimInput, on_every_store(bad_claims()), case_name<BadClaim>);

TEST_P(ClaimInput, IsRefusedAndTakesNothing) {
  const auto& bad = given();
  const auto id = create();
  const auto before = story(id);
  ClaimTasks request{.worker_id = kWorker};
  bad.spoil(request);

  expect_error(request, bad.code, bad.detail);
  EXPECT_EQ(story(id), before);
}

}  // namespace
}  // namespace flowfabric
