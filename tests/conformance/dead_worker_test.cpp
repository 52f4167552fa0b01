// The fate of the leases of a worker that is taken out of the registry (08 §7.6).
#include "support/damage.h"
#include "support/limit_support.h"
#include "support/reopen_fixture.h"
#include "support/worker_words.h"

namespace flowfabric {
namespace {

using namespace tests;

constexpr std::size_t kOneStep = 100;  // leases that one commit ends

template <class Base>
class DeadWorkerTests : public Base, protected WorkerWords {
 protected:
  using Base::claim, Base::claim_one, Base::create, Base::must, Base::state;

  void enroll(RegisterWorker request = {}) { must(registration(std::move(request))); }
  bool mark_dead(const std::string& instance = "i1", const std::string& name_space = "") {
    return must(MarkWorkerDead{.worker_instance_id = instance, .namespace_ = name_space}).was_registered;
  }
  ClaimedTask take(const std::string& instance = "i1", std::optional<std::string> name_space = {}) {
    return claim_one({.worker_id = "w",
                      .worker_instance_id = instance,
                      .namespace_ = std::move(name_space),
                      .lease_ttl_ms = kHour});
  }
  ClaimedTask run_new(const std::string& instance = "i1", const std::string& name_space = "") {
    create({.namespace_ = name_space});
    return take(instance, name_space);
  }
  std::vector<ClaimedTask> run_many(std::size_t count) {
    std::vector<ClaimedTask> tasks;
    for (std::size_t i = 0; i < count; ++i) create();
    while (tasks.size() < count) {
      for (auto& task :
           claim({.worker_id = "w", .worker_instance_id = "i1", .max_tasks = 256, .lease_ttl_ms = kHour})) {
        tasks.push_back(std::move(task));
      }
    }
    return tasks;
  }
  std::size_t lost_among(const std::vector<ClaimedTask>& tasks) {
    return static_cast<std::size_t>(std::ranges::count_if(
        tasks, [&](const ClaimedTask& task) { return state(task.execution_id) == expected::lost(); }));
  }
};

class DeadWorkers : public DeadWorkerTests<LimitTest> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, DeadWorkers, kStores, store_name);

TEST_P(DeadWorkers, ItsLeasesAreOfferedAgainAtOnce) {
  enroll();
  const auto task = run_new();
  tick(5);
  EXPECT_TRUE(mark_dead());

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::lost());
  EXPECT_EQ(seen.blocking_detail, "worker is dead, awaiting reclaim");
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 expired worker_dead"}));
  const auto expired = must(ListExpiredLeases{}).leases;
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].expires_at, now());
  expect_refused(completion(task), ErrorCode::lease_expired);
  expect_refused(RenewLease{task.execution_id, task.fence, 0}, ErrorCode::lease_expired);

  const auto again = claim_one({.worker_id = "other"});
  EXPECT_EQ(again.execution_id, task.execution_id);
  EXPECT_EQ(again.attempt_type, AttemptType::reclaim);
  EXPECT_EQ(describe(task.execution_id).lease_reclaim_count, 1u);
  expect_refused(completion(task), ErrorCode::stale_lease);
  complete(again);
}

TEST_P(DeadWorkers, AClaimThatWaitsIsWoken) {
  enroll();
  const auto task = run_new();
  auto waiting = engine().submit(ClaimTasks{.worker_id = "other", .wait_ms = 20'000});
  mark_dead();

  const auto tasks = waiting.get();
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ(tasks->front().execution_id, task.execution_id);
}

TEST_P(DeadWorkers, OneThatOnlyLapsesKeepsItsLeases) {
  enroll({.liveness_ttl_ms = 1000});
  const auto task = run_new();
  const auto before = story(task.execution_id);
  tick(1000);
  EXPECT_FALSE(mark_dead()) << "it is not there any more";
  advance(1);
  EXPECT_FALSE(mark_dead()) << "it was swept";
  advance(1000);

  EXPECT_EQ(story(task.execution_id), before);
  complete(task);
}

TEST_P(DeadWorkers, OneThatHasLapsedUnnoticedIsLostLikeAnyOther) {
  enroll();
  create();
  const auto task = claim_one({.worker_id = "w", .worker_instance_id = "i1", .lease_ttl_ms = 1000});
  tick(1000);
  mark_dead();

  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 expired"}));
}

TEST_P(DeadWorkers, WhatOthersRunIsLeftAlone) {
  enroll();
  enroll({.worker_instance_id = "i2"});
  const auto mine = run_new();
  const auto others = run_new("i2");
  const auto unregistered = run_new("i3");
  const auto waiting = create({.lane_id = "elsewhere"});
  mark_dead();

  EXPECT_EQ(state(mine.execution_id), expected::lost());
  EXPECT_EQ(state(others.execution_id), expected::running());
  EXPECT_EQ(state(unregistered.execution_id), expected::running());
  EXPECT_EQ(state(waiting), expected::waiting(AttemptState::pending_first_attempt));
  complete(others);
}

TEST_P(DeadWorkers, AnInstanceOfTheSameNameInAnotherNamespaceIsAnother) {
  enroll();
  enroll({.namespace_ = "acme"});
  const auto acme = run_new("i1", "acme");
  const auto globex = run_new("i1", "globex");
  const auto none = run_new("i1", "");
  mark_dead();

  EXPECT_EQ(state(none.execution_id), expected::lost());
  EXPECT_EQ(state(globex.execution_id), expected::lost()) << "nobody else is registered there";
  EXPECT_EQ(state(acme.execution_id), expected::running());
  const auto again = run_new("i1", "globex");
  mark_dead("i1", "acme");
  EXPECT_EQ(state(acme.execution_id), expected::lost());
  EXPECT_EQ(state(again.execution_id), expected::running());
}

TEST_P(DeadWorkers, WhatHasEndedOrIsPausedIsLeftAlone) {
  enroll();
  const auto done = run_new();
  complete(done, "result");
  const auto paused = run_new();
  delay(paused, now() + kHour);
  const auto before = std::pair(story(done.execution_id), story(paused.execution_id));
  mark_dead();

  EXPECT_EQ(std::pair(story(done.execution_id), story(paused.execution_id)), before);
}

TEST_P(DeadWorkers, TheirSlotsAreFree) {
  enroll();
  const auto quota = make_quota({.max_concurrent = 1});
  const auto first = create_with(quota);
  ASSERT_EQ(take().execution_id, first);
  const auto second = create_with(quota);
  EXPECT_TRUE(claim().empty());
  cancel(first);
  run_due();
  ASSERT_EQ(take().execution_id, second);
  const auto third = create_with(quota);
  EXPECT_TRUE(claim().empty());
  mark_dead();
  run_due();

  EXPECT_EQ(claim_all(), std::vector{third}) << "the lost one comes after it, and there is one slot";
}

TEST_P(DeadWorkers, TooManyLossesAreTheEnd) {
  enroll();
  const auto id = create(reclaim_cap(0));
  take();
  mark_dead();
  run_due();

  EXPECT_EQ(describe(id).failure_reason, "max_reclaims_exceeded");
}

// ---- many ----

TEST_P(DeadWorkers, OfManyLeasesEachCommitEndsAFew) {
  enroll();
  const auto tasks = run_many(2 * kOneStep + 10);
  const auto others = run_new("i2");
  EXPECT_EQ(must(ListWorkers{}).workers.at(0).leases, tasks.size());
  mark_dead();
  EXPECT_EQ(lost_among(tasks), kOneStep);
  run_due();

  EXPECT_EQ(lost_among(tasks), tasks.size());
  EXPECT_EQ(state(others.execution_id), expected::running());
  EXPECT_EQ(claim({.worker_id = "other", .max_tasks = 256}).size(), tasks.size());
}

TEST_P(DeadWorkers, AsManyAsOneStepEndsAreOneStep) {
  enroll();
  const auto tasks = run_many(kOneStep);
  mark_dead();
  EXPECT_EQ(lost_among(tasks), tasks.size());
  run_due();
  EXPECT_EQ(lost_among(tasks), tasks.size());
}

TEST_P(DeadWorkers, WhatItTakesWhenItHasComeBackIsItsOwn) {
  enroll();
  const auto tasks = run_many(kOneStep + 10);
  mark_dead();
  ASSERT_EQ(lost_among(tasks), kOneStep);
  tick(1);
  enroll();
  create({.lane_id = "new"});
  const auto own = claim_one({.worker_id = "w", .worker_instance_id = "i1", .lanes = {"new"}});
  run_due();

  EXPECT_EQ(lost_among(tasks), tasks.size());
  EXPECT_EQ(state(own.execution_id), expected::running());
  EXPECT_EQ(must(ListWorkers{}).workers.at(0).leases, 1u);
  tick(1);
  mark_dead();
  EXPECT_EQ(state(own.execution_id), expected::lost()) << "it died again";
}

// ---- restarts and damage ----

class DeadWorkerRestart : public DeadWorkerTests<ReopenTest> {
 protected:
  void damage(const std::string& sql) {
    const auto url = store().url();
    close();
    if (url.starts_with("postgres"))
      PostgresConnection(url).query(sql);
    else
      damage_file(store().file(), sql);
    reopen();
  }
  std::string as_sql(const Uuid& id) {
    auto text = id.to_string();
    if (store().url().starts_with("postgres")) return "'" + text + "'";
    std::erase(text, '-');
    return "x'" + text + "'";
  }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, DeadWorkerRestart, kDurableStores, store_name);

TEST_P(DeadWorkerRestart, TheRestIsDoneByWhoeverComesNext) {
  enroll();
  const auto tasks = run_many(kOneStep + 10);
  mark_dead();
  ASSERT_EQ(lost_among(tasks), kOneStep);
  reopen();
  run_due();

  EXPECT_EQ(lost_among(tasks), tasks.size());
}

TEST_P(DeadWorkerRestart, OneThatCannotBeReadHoldsUpNobody) {
  enroll();
  const auto tasks = run_many(3);
  const auto& damaged = tasks[1].execution_id;
  const auto set_type = [&](const std::string& type) {
    damage("update ff_exec_core set attempt_type='" + type + "' where execution_id=" + as_sql(damaged.uuid));
  };
  set_type("nonsense");
  EXPECT_TRUE(mark_dead());
  run_due();
  EXPECT_EQ(state(tasks[0].execution_id), expected::lost());
  EXPECT_EQ(state(tasks[2].execution_id), expected::lost());
  set_type("initial");
  run_due();

  EXPECT_EQ(state(damaged), expected::running()) << "nobody could move it when its turn came";
}

}  // namespace
}  // namespace flowfabric
