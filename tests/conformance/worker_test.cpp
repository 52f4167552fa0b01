// The worker registry (02 §12): registering, heartbeats, lapsing, being marked dead.
#include "support/operator_printing.h"
#include "support/reopen_fixture.h"
#include "support/worker_words.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class Workers : public EngineTest, protected WorkerWords {
 protected:
  WorkerRegistration enroll(RegisterWorker request = {}) { return must(registration(std::move(request))); }
  std::int64_t beat(const std::string& instance = "i1", const std::string& name_space = "") {
    return must(HeartbeatWorker{instance, name_space}).expires_at;
  }
  bool mark_dead(const std::string& instance = "i1", const std::string& reason = "") {
    return must(MarkWorkerDead{.worker_instance_id = instance, .reason = reason}).was_registered;
  }
  std::vector<WorkerView> workers() { return must(ListWorkers{}).workers; }
  Log events() { return event_log(must(ReadWorkerEvents{})); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Workers, kStores, store_name);

// ---- registering ----

TEST_P(Workers, ANewOneIsListedAsItRegistered) {
  EXPECT_EQ(enroll({.worker_id = "pool",
                    .worker_instance_id = "pool-7",
                    .namespace_ = "acme",
                    .lanes = {"b", "a", "b"},
                    .capabilities = {"gpu", "cuda", "gpu"},
                    .liveness_ttl_ms = 5000}),
            (WorkerRegistration{false, kStart + 5000}));

  EXPECT_EQ(workers(), std::vector{(WorkerView{.worker_id = "pool",
                                               .worker_instance_id = "pool-7",
                                               .namespace_ = "acme",
                                               .lanes = {"a", "b"},
                                               .capabilities = {"cuda", "gpu"},
                                               .last_heartbeat_at = kStart,
                                               .liveness_ttl_ms = 5000,
                                               .registered_at = kStart,
                                               .leases = 0})});
  EXPECT_EQ(events(), Log{"acme/pool-7 registered"});
}

TEST_P(Workers, AreListedWithHowManyTheyRun) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1"});
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1", .namespace_ = "acme"});
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i2"});
  create({.namespace_ = "acme"});
  tick(1);
  create();
  create();
  const auto task = claim_one({.worker_id = "w", .worker_instance_id = "i1"});
  claim_one({.worker_id = "w", .worker_instance_id = "i1"});
  using Leases = std::vector<std::uint64_t>;
  const auto leases = [&] {
    Leases all;
    for (const auto& worker : workers()) all.push_back(worker.leases);
    return all;
  };
  EXPECT_EQ(leases(), (Leases{1, 0, 1})) << "each is counted once";
  must(MarkWorkerDead{.worker_instance_id = "i2"});
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1", .namespace_ = "globex"});
  EXPECT_EQ(leases(), (Leases{1, 1, 0}));
  complete(task);
  EXPECT_EQ(leases(), (Leases{1, 0, 0}));
}

TEST_P(Workers, OneWithoutANamespaceWorksForAllOfThem) {
  enroll();
  create({.namespace_ = "acme"});
  create();
  claim({.worker_id = "w", .worker_instance_id = "i1", .max_tasks = 2});

  EXPECT_EQ(workers().at(0).leases, 2u);
}

TEST_P(Workers, LostLeasesAreNotCounted) {
  enroll({.liveness_ttl_ms = 3'600'000});
  for (int i = 0; i < 4; ++i) create();
  const auto take = [&](std::int64_t ttl_ms) {
    return claim_one({.worker_id = "w", .worker_instance_id = "i1", .lease_ttl_ms = ttl_ms});
  };
  take(kHour);
  const auto revoked = take(kHour);
  take(1000);
  EXPECT_EQ(workers().at(0).leases, 3u);
  must(RevokeLease{.execution_id = revoked.execution_id});
  EXPECT_EQ(workers().at(0).leases, 2u);
  tick(1000);
  EXPECT_EQ(workers().at(0).leases, 1u) << "it has lapsed, before any clock noticed";
  run_due();
  EXPECT_EQ(workers().at(0).leases, 1u);
}

TEST_P(Workers, RegisteringAgainOverwritesAllButItsFirstTime) {
  enroll({.lanes = {"a"}, .capabilities = {"gpu"}, .liveness_ttl_ms = 5000});
  tick(4999);
  EXPECT_EQ(enroll({.lanes = {"c", "b"}, .liveness_ttl_ms = 9000}),
            (WorkerRegistration{true, kStart + 4999 + 9000}));

  EXPECT_EQ(workers(), std::vector{(WorkerView{.worker_id = "w",
                                               .worker_instance_id = "i1",
                                               .namespace_ = "",
                                               .lanes = {"b", "c"},
                                               .capabilities = {},
                                               .last_heartbeat_at = kStart + 4999,
                                               .liveness_ttl_ms = 9000,
                                               .registered_at = kStart,
                                               .leases = 0})});
  EXPECT_EQ(events(), (Log{"/i1 registered", "/i1 registered"}));
}

TEST_P(Workers, ALiveInstanceBelongsToItsWorker) {
  enroll({.liveness_ttl_ms = 5000});
  tick(4999);
  const auto before = workers();

  expect_error(registration({.worker_id = "thief"}), ErrorCode::invalid_input, "instance_id reassigned");
  EXPECT_EQ(workers(), before);
  EXPECT_EQ(events(), Log{"/i1 registered"});
}

TEST_P(Workers, AnInstanceIsUniqueWithinItsNamespaceOnly) {
  enroll({.namespace_ = "a"});
  enroll({.worker_id = "other", .namespace_ = "b"});

  EXPECT_EQ(workers().size(), 2u);
  expect_error(HeartbeatWorker{.worker_instance_id = "i1"}, ErrorCode::worker_not_found);
  tick(10);
  EXPECT_EQ(beat("i1", "b"), kStart + 10 + 60'000);
  EXPECT_EQ(workers().at(0).last_heartbeat_at, kStart);
  EXPECT_EQ(workers().at(1).last_heartbeat_at, kStart + 10);
}

TEST_P(Workers, RegisteringChangesNoLaneAndNoExecution) {
  const auto id = create();
  const auto before = story(id);
  enroll({.lanes = {"default", "unknown"}});

  EXPECT_EQ(story(id), before);
  EXPECT_EQ(must(ListLanes{}).lanes.size(), 1u);
}

// ---- heartbeats ----

TEST_P(Workers, AHeartbeatCountsTheTtlAnew) {
  enroll({.liveness_ttl_ms = 5000});
  for (int i = 1; i <= 3; ++i) {
    advance(4999);
    EXPECT_EQ(beat(), now() + 5000);
    EXPECT_EQ(workers().at(0).last_heartbeat_at, now());
  }

  EXPECT_EQ(workers().at(0).registered_at, kStart);
  EXPECT_EQ(events(), (Log{"/i1 registered", "/i1 heartbeat", "/i1 heartbeat", "/i1 heartbeat"}));
}

TEST_P(Workers, AnUnknownOneHasNoHeartbeat) {
  expect_error(HeartbeatWorker{.worker_instance_id = "i1"}, ErrorCode::worker_not_found);
  enroll();
  expect_error(HeartbeatWorker{.worker_instance_id = "i2"}, ErrorCode::worker_not_found);
  expect_error(HeartbeatWorker{"i1", "elsewhere"}, ErrorCode::worker_not_found);
  mark_dead();
  expect_error(HeartbeatWorker{.worker_instance_id = "i1"}, ErrorCode::worker_not_found);

  EXPECT_EQ(events(), (Log{"/i1 registered", "/i1 marked_dead"}));
}

// ---- lapsing ----

TEST_P(Workers, ItLivesUntilItsTtlIsOver) {
  enroll({.liveness_ttl_ms = 5000});
  tick(4999);
  EXPECT_EQ(workers().size(), 1u);
  tick(1);
  EXPECT_EQ(workers(), std::vector<WorkerView>{}) << "before any clock noticed";
}

TEST_P(Workers, AHeartbeatDoesNotReviveTheLapsed) {
  enroll({.liveness_ttl_ms = 5000});
  tick(5000);

  expect_error(HeartbeatWorker{.worker_instance_id = "i1"}, ErrorCode::worker_not_found);
  EXPECT_TRUE(workers().empty());
  EXPECT_EQ(events(), Log{"/i1 registered"});
}

TEST_P(Workers, ALapsedInstanceMayBeRegisteredByAnybody) {
  for (const auto* next : {"w", "other"}) {
    enroll({.liveness_ttl_ms = 5000});
    tick(5000);
    EXPECT_EQ(enroll({.worker_id = next}), (WorkerRegistration{false, now() + 60'000}));
    ASSERT_EQ(workers().size(), 1u);
    EXPECT_EQ(workers()[0].worker_id, next);
    EXPECT_EQ(workers()[0].registered_at, now());
    run_due();
    EXPECT_EQ(workers().size(), 1u);
    mark_dead();
  }
}

TEST_P(Workers, TheSweepComesAfterTheTtl) {
  enroll({.liveness_ttl_ms = 5000});
  advance(5000);
  EXPECT_EQ(events(), Log{"/i1 registered"}) << "not before it is over";
  advance(1);

  EXPECT_EQ(events(), (Log{"/i1 registered", "/i1 ttl_swept"}));
  EXPECT_TRUE(workers().empty());
  advance(kHour);
  EXPECT_EQ(events().size(), 2u) << "swept once";
  EXPECT_EQ(enroll(), (WorkerRegistration{false, now() + 60'000}));
}

TEST_P(Workers, TheSweepTakesOnlyTheLapsed) {
  enroll({.worker_instance_id = "short", .liveness_ttl_ms = 1000});
  enroll({.worker_instance_id = "long", .liveness_ttl_ms = 9000});
  enroll({.worker_instance_id = "beating", .liveness_ttl_ms = 2000});
  tick(1500);
  beat("beating");
  advance(1500);

  EXPECT_EQ(instances_of(workers()), (Log{"/beating", "/long"}));
  EXPECT_EQ(events().back(), "/short ttl_swept");
}

TEST_P(Workers, AShorterTtlIsSweptInTime) {
  enroll({.liveness_ttl_ms = 3'600'000});
  enroll({.liveness_ttl_ms = 1000});
  advance(1001);

  EXPECT_EQ(events().back(), "/i1 ttl_swept");
}

// ---- being marked dead ----

TEST_P(Workers, TheDeadAreGone) {
  enroll();
  tick(5);
  EXPECT_TRUE(mark_dead("i1", "shutdown"));
  EXPECT_TRUE(workers().empty());
  EXPECT_FALSE(mark_dead("i1", "again"));
  EXPECT_FALSE(mark_dead("unknown"));

  const auto seen = must(ReadWorkerEvents{});
  ASSERT_EQ(event_log(seen), (Log{"/i1 registered", "/i1 marked_dead shutdown"}));
  EXPECT_EQ(seen[1].worker_id, "w");
  EXPECT_EQ(seen[1].occurred_at, kStart + 5);
  advance(kHour);
  EXPECT_EQ(events().size(), 2u) << "nothing is left to sweep";
  EXPECT_FALSE(enroll({.worker_id = "other"}).refreshed);
}

TEST_P(Workers, TheLapsedAreNotThereToBeMarked) {
  enroll({.liveness_ttl_ms = 1000});
  tick(1000);

  EXPECT_FALSE(mark_dead());
  EXPECT_TRUE(workers().empty());
}

// ---- bad input ----

struct BadWorker {
  std::string name;
  RegisterWorker request;
  ErrorCode code{ErrorCode::invalid_input};
};
void PrintTo(const BadWorker& bad, std::ostream* out) {
  *out << bad.name;
}
std::vector<BadWorker> bad_workers() {
  const auto& with = WorkerWords::registration;
  std::vector<std::string> many_lanes;
  for (int i = 0; i < 65; ++i) many_lanes.push_back("lane-" + std::to_string(i));
  std::vector<BadWorker> bad{
      {"NoLanes", with({.lanes = {}})},
      {"Lanes65", with({.lanes = many_lanes})},
      {"LaneEmpty", with({.lanes = {"a", ""}})},
      {"LaneOf65Bytes", with({.lanes = {std::string(65, 'x')}})},
      {"LaneWithNewline", with({.lanes = {"a\n"}})},
      {"NamespaceOf257Bytes", with({.namespace_ = std::string(257, 'x')})},
      {"NamespaceWithNul", with({.namespace_ = "a\0b"s})},
      {"CapabilityEmpty", with({.capabilities = {""}}), ErrorCode::invalid_capabilities},
      {"CapabilityWithComma", with({.capabilities = {"a,b"}}), ErrorCode::invalid_capabilities},
      {"CapabilityWithSpace", with({.capabilities = {"a b"}}), ErrorCode::invalid_capabilities},
      {"CapabilitiesOf4097Bytes", with({.capabilities = {std::string(4097, 'x')}}),
       ErrorCode::invalid_capabilities},
      {"TtlOf999", with({.liveness_ttl_ms = 999})},
      {"TtlOf3600001", with({.liveness_ttl_ms = 3'600'001})},
      {"TtlNegative", with({.liveness_ttl_ms = -1})},
  };
  for (const auto& [name, text] : std::map<std::string, std::string>{{"Empty", ""},
                                                                     {"WithSpace", "a b"},
                                                                     {"WithTab", "a\tb"},
                                                                     {"WithNul", "a\0b"s},
                                                                     {"NotUtf8", "\xff"},
                                                                     {"Of257Bytes", std::string(257, 'w')}}) {
    auto worker = with({});
    worker.worker_id = text;
    bad.push_back({"Worker" + name, worker});
    auto instance = with({});
    instance.worker_instance_id = text;
    bad.push_back({"Instance" + name, instance});
  }
  return bad;
}

class WorkerInput : public EngineCaseTest<BadWorker> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, WorkerInput, on_every_store(bad_workers()), case_name<BadWorker>);

TEST_P(WorkerInput, IsRefusedWithoutATrace) {
  expect_error(given().request, given().code);

  EXPECT_EQ(must(ListWorkers{}), WorkerPage{});
  EXPECT_TRUE(must(ReadWorkerEvents{}).empty());
}

TEST_P(Workers, LimitsAreInclusive) {
  std::vector<std::string> lanes;
  for (int i = 0; i < 64; ++i) lanes.push_back("lane-" + std::to_string(i));
  EXPECT_EQ(enroll({.lanes = lanes, .liveness_ttl_ms = 1000}).expires_at, kStart + 1000);
  EXPECT_EQ(enroll({.worker_instance_id = std::string(256, 'i'), .liveness_ttl_ms = 3'600'000}).expires_at,
            kStart + 3'600'000);
}

TEST_P(Workers, AReasonIsShortAndPrintable) {
  enroll();
  const auto before = workers();
  for (const auto& reason : {std::string(257, 'r'), "a\nb"s, "a\0b"s, "\x7f"s, "\xff"s}) {
    const auto error =
        expect_error(MarkWorkerDead{.worker_instance_id = "i1", .reason = reason}, ErrorCode::invalid_input);
    EXPECT_TRUE(error.detail.starts_with("reason")) << error.detail;
  }
  EXPECT_EQ(workers(), before);
  EXPECT_EQ(events().size(), 1u);
  const std::string longest(256, 'r');
  EXPECT_TRUE(mark_dead("i1", longest));
  EXPECT_EQ(events().back(), "/i1 marked_dead " + longest);
}

TEST_P(Workers, NulBytesAreRefusedEverywhere) {
  enroll();
  expect_error(HeartbeatWorker{"i1\0"s, ""}, ErrorCode::invalid_input);
  expect_error(HeartbeatWorker{"i1", "\0"s}, ErrorCode::invalid_input);
  expect_error(MarkWorkerDead{.worker_instance_id = "i1\0"s}, ErrorCode::invalid_input);
  expect_error(MarkWorkerDead{.worker_instance_id = "i1", .namespace_ = "\0"s}, ErrorCode::invalid_input);

  EXPECT_EQ(events().size(), 1u);
}

// ---- restarts ----

class WorkerRestart : public ReopenTest, protected WorkerWords {};
INSTANTIATE_TEST_SUITE_P(DurableStores, WorkerRestart, kDurableStores, store_name);

TEST_P(WorkerRestart, TheRegistryIsKept) {
  must(registration({.liveness_ttl_ms = 5000}));
  const auto before = must(ListWorkers{});
  reopen();

  EXPECT_EQ(must(ListWorkers{}), before);
  advance(5001);
  EXPECT_EQ(event_log(must(ReadWorkerEvents{})), (Log{"/i1 registered", "/i1 ttl_swept"}));
}

}  // namespace
}  // namespace flowfabric
