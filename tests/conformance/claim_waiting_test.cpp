// Claims that wait for work. These run in real time, with short waits.
#include <chrono>
#include <future>
#include <set>

#include "support/engine_fixture.h"
#include "support/parked.h"

namespace flowfabric {
namespace {

using namespace tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Tasks = Result<std::vector<ClaimedTask>>;

class ClaimWaiting : public EngineTest {
 protected:
  static constexpr std::int64_t kLong = 8'000;

  // Returns once the claim is parked.
  std::future<Tasks> start_waiting(ClaimTasks request = {}) {
    if (request.worker_id.empty()) request.worker_id = kWorker;
    if (request.wait_ms == 0) request.wait_ms = kLong;
    const auto parked = engine().stats().waiting_claims;
    auto answer = engine().submit(request);
    await_parked(engine(), parked + 1);
    return answer;
  }

  static bool is_answered(std::future<Tasks>& answer) {
    return answer.wait_for(milliseconds(0)) == std::future_status::ready;
  }
  // Long before the wait would have ended by itself.
  static std::vector<ClaimedTask> woken(std::future<Tasks>& answer) {
    if (answer.wait_for(milliseconds(kLong / 2)) != std::future_status::ready) {
      throw std::runtime_error("the claim was not woken");
    }
    auto tasks = answer.get();
    if (!tasks) throw std::runtime_error(tasks.error().to_string());
    return *tasks;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimWaiting, kStores, store_name);

TEST_P(ClaimWaiting, FindsWhatIsThereWithoutWaiting) {
  const auto id = create();

  EXPECT_EQ(claim_one({.wait_ms = kLong}).execution_id, id);
}

TEST_P(ClaimWaiting, IsWokenByACreateFromAnotherThread) {
  auto answer = start_waiting();
  EXPECT_FALSE(is_answered(answer));
  auto id = std::async(std::launch::async, [&] { return create(); });

  const auto tasks = woken(answer);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].execution_id, id.get());
}

TEST_P(ClaimWaiting, IsAnsweredEmptyAfterItsWait) {
  const auto started = steady_clock::now();

  EXPECT_TRUE(claim({.wait_ms = 60}).empty());
  const auto waited = steady_clock::now() - started;
  EXPECT_GE(waited, milliseconds(60));
  EXPECT_LT(waited, milliseconds(5000));
}

TEST_P(ClaimWaiting, AWaitOfZeroIsAnsweredAtOnce) {
  const auto started = steady_clock::now();

  EXPECT_TRUE(claim({.wait_ms = 0}).empty());
  EXPECT_LT(steady_clock::now() - started, milliseconds(5000));
}

TEST_P(ClaimWaiting, AShortWaitIsNotHeldUpByALongOne) {
  auto long_one = start_waiting();
  const auto started = steady_clock::now();

  EXPECT_TRUE(claim({.wait_ms = 30}).empty());
  EXPECT_LT(steady_clock::now() - started, milliseconds(5000));
  EXPECT_FALSE(is_answered(long_one));
  create();
  EXPECT_EQ(woken(long_one).size(), 1u);
}

TEST_P(ClaimWaiting, SleepsThroughOtherLanes) {
  auto answer = start_waiting({.lanes = {"mine"}});
  create({.lane_id = "default"});
  EXPECT_FALSE(is_answered(answer));
  const auto id = create({.lane_id = "mine"});

  EXPECT_EQ(woken(answer).at(0).execution_id, id);
}

TEST_P(ClaimWaiting, SleepsThroughWhatItCannotDo) {
  auto answer = start_waiting({.namespace_ = "a", .capabilities = {"cpu"}});
  create(CreateExecution{.namespace_ = "a", .policy = needs({"gpu"})});
  create(CreateExecution{.namespace_ = "b"});
  EXPECT_FALSE(is_answered(answer));
  const auto id = create({.namespace_ = "a", .policy = needs({"cpu"})});

  EXPECT_EQ(woken(answer).at(0).execution_id, id);
}

TEST_P(ClaimWaiting, TwoThatWaitGetOneTaskEach) {
  auto first = start_waiting();
  auto second = start_waiting();
  const auto one = create();
  const auto other = create();

  const std::set<ExecutionId> given{woken(first).at(0).execution_id, woken(second).at(0).execution_id};
  EXPECT_EQ(given, (std::set{one, other}));
}

TEST_P(ClaimWaiting, OneTaskWakesOnlyOne) {
  auto first = start_waiting();
  auto second = start_waiting();
  create();
  EXPECT_EQ(woken(first).size(), 1u);

  EXPECT_FALSE(is_answered(second));
  create();
  EXPECT_EQ(woken(second).size(), 1u);
}

// The first claim is woken for the first task, and before it runs a better one arrives, which it takes: the
// first task is still there, and so is somebody to do it.
TEST_P(ClaimWaiting, NoneSleepsWhileWorkIsOffered) {
  auto first = start_waiting();
  auto second = start_waiting();
  std::promise<Result<Creation>> better;
  // Answers come before those who wait are woken, so that the better task stands in the queue before the
  // claim.
  engine().post(CreateExecution{.execution_kind = "test", .priority = 1}, [&](Result<Creation> good) {
    remember(good.value().execution_id);
    engine().post(CreateExecution{.execution_kind = "test", .priority = 2},
                  [&](Result<Creation> answer) { better.set_value(std::move(answer)); });
  });
  remember(better.get_future().get().value().execution_id);

  const std::set<std::int32_t> given{woken(first).at(0).priority, woken(second).at(0).priority};
  EXPECT_EQ(given, (std::set{1, 2}));
}

TEST_P(ClaimWaiting, IsWokenWhenADelayEnds) {
  const auto id = create({.delay_until = kStart + 100});
  auto answer = start_waiting();
  advance(100);

  EXPECT_EQ(woken(answer).at(0).execution_id, id);
}

TEST_P(ClaimWaiting, IsWokenWhenALeaseIsLost) {
  const auto task = running();
  auto answer = start_waiting();
  advance(kLeaseTtl);

  const auto tasks = woken(answer);
  EXPECT_EQ(tasks.at(0).execution_id, task.execution_id);
  EXPECT_EQ(tasks.at(0).claim, ClaimKind::reclaimed);
}

TEST_P(ClaimWaiting, IsWokenWhenACallFindsALeaseExpired) {
  const auto task = running();
  auto answer = start_waiting();
  tick(kLeaseTtl);
  expect_error(completion(task), ErrorCode::lease_expired);

  EXPECT_EQ(woken(answer).at(0).claim, ClaimKind::reclaimed);
}

TEST_P(ClaimWaiting, IsWokenByARetry) {
  const auto task = running(retries(1));
  fail(task);
  auto answer = start_waiting();
  advance(1000);

  EXPECT_EQ(woken(answer).at(0).attempt_type, AttemptType::retry);
}

TEST_P(ClaimWaiting, GoesOnWaitingWhenAnotherWasFaster) {
  auto answer = start_waiting();
  // Whichever of the two gets the first task, the other is still there for the second.
  auto created = engine().submit(CreateExecution{.execution_kind = "test"});
  auto rival = engine().submit(ClaimTasks{.worker_id = "rival", .wait_ms = kLong});
  remember(created.get().value().execution_id);
  create();

  EXPECT_NE(woken(answer).at(0).execution_id, woken(rival).at(0).execution_id);
}

TEST_P(ClaimWaiting, IsAnsweredEmptyWhenTheEngineStops) {
  auto answer = start_waiting();
  engine().stop();

  EXPECT_TRUE(woken(answer).empty());
}

}  // namespace
}  // namespace flowfabric
