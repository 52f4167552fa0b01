// The engine as its users see it: the ways to call it, many threads, waiting, stopping, and its clock.
#include "flowfabric/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include "core/keys.h"
#include "store/store.h"

namespace flowfabric {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

Engine open_engine(EngineOptions options = {}) {
  auto engine = Engine::open("memory:", std::move(options));
  if (!engine) throw std::runtime_error(engine.error().to_string());
  return *std::move(engine);
}

CreateExecution task(std::string input = "") {
  return {.execution_kind = "kind", .input = std::move(input)};
}

template <class F>
std::chrono::milliseconds time_of(F&& f) {
  const auto start = steady_clock::now();
  f();
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start);
}

TEST(Engine, AnswersCallsFuturesAndCallbacks) {
  auto engine = open_engine();
  const auto called = engine.call(task());
  ASSERT_TRUE(called) << called.error().to_string();

  auto future = engine.submit(task());
  const auto from_future = future.get();
  ASSERT_TRUE(from_future) << from_future.error().to_string();

  std::promise<std::pair<Result<Creation>, std::thread::id>> promise;
  std::atomic<int> calls{0};
  engine.post(task(), [&](Result<Creation> answer) {
    ++calls;
    promise.set_value({std::move(answer), std::this_thread::get_id()});
  });
  const auto [posted, thread] = promise.get_future().get();
  ASSERT_TRUE(posted) << posted.error().to_string();
  EXPECT_NE(thread, std::this_thread::get_id());
  engine.stop();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(engine.call(CountLane{}), (std::map<PublicState, std::int64_t>{{PublicState::waiting, 3}}));
}

TEST(Engine, MembersOfAFlowShareACommitterWithIt) {
  auto engine = open_engine();
  SubmitFlow flow{.flow_kind = "pipeline", .nodes = {}, .edges = {}};
  for (int i = 0; i < 20; ++i) {
    flow.nodes.push_back({.name = "n" + std::to_string(i), .execution = {.execution_kind = "k"}});
  }
  const auto submitted = engine.call(std::move(flow));
  ASSERT_TRUE(submitted) << submitted.error().to_string();
  for (const auto& [name, id] : submitted->executions) {
    EXPECT_EQ(core::affinity_of(id), core::affinity_of(submitted->flow_id)) << name;
  }
  std::set<std::size_t> others;
  for (int i = 0; i < 20; ++i) others.insert(core::affinity_of(engine.call(task())->execution_id) % 2);
  EXPECT_EQ(others.size(), 2u) << "the rest is spread";
}

TEST(Engine, AnswersReadsOnTheCallingThread) {
  auto engine = open_engine();
  const auto id = engine.call(task())->execution_id;
  std::optional<std::thread::id> thread;
  engine.post(DescribeExecution{id}, [&](const Result<ExecutionSnapshot>& answer) {
    EXPECT_TRUE(answer);
    thread = std::this_thread::get_id();
  });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(Engine, ACallbackMayPostTheNextOperation) {
  auto engine = open_engine();
  std::promise<Result<std::vector<ClaimedTask>>> claimed;
  engine.post(task(), [&](const Result<Creation>&) {
    engine.post(ClaimTasks{.worker_id = "w"},
                [&](Result<std::vector<ClaimedTask>> tasks) { claimed.set_value(std::move(tasks)); });
  });
  const auto tasks = claimed.get_future().get();
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->size(), 1u);
}

TEST(Engine, ServesManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 200;
  auto engine = open_engine();
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const auto input = std::to_string(t) + "/" + std::to_string(i);
        ASSERT_TRUE(engine.call(task(input)));
        const auto tasks = engine.call(ClaimTasks{.worker_id = "w" + std::to_string(t), .wait_ms = 10'000});
        ASSERT_TRUE(tasks && tasks->size() == 1);
        const auto& claimed = tasks->front();
        ASSERT_TRUE(engine.call(CompleteExecution{
            .execution_id = claimed.execution_id, .fence = claimed.fence, .result = claimed.input}));
        const auto result = engine.call(ReadResult{claimed.execution_id});
        ASSERT_TRUE(result);
        EXPECT_EQ(*result, claimed.input);
        ++completed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(completed, kThreads * kEach);
  EXPECT_EQ(engine.call(CountLane{}),
            (std::map<PublicState, std::int64_t>{{PublicState::completed, kThreads * kEach}}));
}

TEST(Engine, RefusesOptionsThatCannotWork) {
  const auto refused = [](EngineOptions options) {
    const auto engine = Engine::open("memory:", std::move(options));
    return !engine && engine.error().code == ErrorCode::invalid_input;
  };
  EXPECT_TRUE(refused({.operation_deadline = 0ms}));
  EXPECT_TRUE(refused({.max_queued_operations = 0}));
  EXPECT_TRUE(refused({.max_batch = 0}));
  EXPECT_TRUE(refused({.flow_partitions = 0}));
  EXPECT_TRUE(refused({.budget_partitions = 0}));
  EXPECT_TRUE(refused({.quota_partitions = 0}));
  EXPECT_TRUE(refused({.clock_interval = -1ms}));
}

// ---- stopping ----

// Where records come from afar, time passes while an operation is run again: what it mints differs then.
TEST(Engine, ComesToAnEndAlthoughTimeMovesOn) {
  std::atomic<std::int64_t> now_ms{1'700'000'000'000};
  EngineOptions options;
  options.now_ms = [&] { return ++now_ms; };
  auto engine = Engine::open("memory:?load=deferred", options);
  ASSERT_TRUE(engine) << engine.error().to_string();
  ASSERT_TRUE(engine->call(task()));
  const auto claimed = engine->call(ClaimTasks{.worker_id = "worker"});
  ASSERT_TRUE(claimed && claimed->size() == 1);
  const auto& [id, fence] = std::pair{claimed->front().execution_id, claimed->front().fence};

  const auto made = engine->call(CreateWaitpoint{.execution_id = id, .fence = fence});
  EXPECT_TRUE(made) << made.error().to_string();
  SuspendExecution suspend{.execution_id = id, .fence = fence};
  suspend.resume_condition = {SingleSignal{"k"}};
  const auto suspended = engine->call(suspend);
  ASSERT_TRUE(suspended) << suspended.error().to_string();
  const auto& waitpoint = suspended->waitpoints.front();
  const auto delivered = engine->call(DeliverSignal{.execution_id = id,
                                                    .waitpoint_id = waitpoint.waitpoint_id,
                                                    .waitpoint_token = waitpoint.waitpoint_token,
                                                    .signal_name = "go"});
  ASSERT_TRUE(delivered) << delivered.error().to_string();
  const auto resumed = engine->call(ClaimTasks{.worker_id = "worker"});
  ASSERT_TRUE(resumed && resumed->size() == 1);
  EXPECT_EQ(resumed->front().resume_signals.size(), 1u);
  const auto bulk =
      engine->call(StartBulkOperation{.action = BulkAction::cancel, .filter = {.lane_id = "x"}});
  EXPECT_TRUE(bulk) << bulk.error().to_string();
}

TEST(EngineStop, AnswersEverythingInFlightAndRefusesTheRest) {
  constexpr int kThreads = 6;
  auto engine = open_engine();
  std::atomic<int> sent{0};
  std::atomic<int> stored{0};
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  std::latch busy(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0;; ++i) {
        ++sent;
        auto answer = engine.submit(task());
        if (i == 20) busy.count_down();
        const auto created = answer.get();
        if (created) {
          ++stored;
          continue;
        }
        ++(created.error().code == ErrorCode::unavailable ? refused : wrong);
        return;
      }
    });
  }
  busy.wait();
  engine.stop();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stored + refused, sent);
  EXPECT_EQ(refused, kThreads);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(engine.call(CountLane{})->at(PublicState::waiting), stored);
}

template <class Request>
ErrorCode refusal_of(Engine& engine, Request request) {
  const auto answer = engine.call(std::move(request));
  return answer ? ErrorCode{} : answer.error().code;
}

TEST(EngineStop, RefusesEveryKindOfChangeAfterwards) {
  auto engine = open_engine();
  const auto id = engine.call(task())->execution_id;
  const auto held = engine.call(ClaimTasks{.worker_id = "w"})->at(0);
  engine.stop();
  engine.stop();
  const auto gone = ErrorCode::unavailable;
  EXPECT_EQ(refusal_of(engine, task()), gone);
  EXPECT_EQ(refusal_of(engine, ClaimTasks{.worker_id = "w", .wait_ms = 30'000}), gone);
  EXPECT_EQ(refusal_of(engine, RenewLease{id, held.fence, 0, 1000}), gone);
  EXPECT_EQ(refusal_of(engine, UpdateProgress{id, held.fence, 5, "five"}), gone);
  EXPECT_EQ(refusal_of(engine, CompleteExecution{.execution_id = id, .fence = held.fence}), gone);
  EXPECT_EQ(refusal_of(engine, FailExecution{.execution_id = id, .fence = held.fence}), gone);
  EXPECT_EQ(refusal_of(engine, DelayExecution{.execution_id = id, .fence = held.fence}), gone);
  EXPECT_EQ(refusal_of(engine, CancelExecution{.execution_id = id}), gone);
}

TEST(EngineStop, LetsWaitingClaimsGo) {
  auto engine = open_engine();
  auto claim = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
  // Answered after the claim was run: it waits by now.
  ASSERT_TRUE(engine.call(CreateExecution{.lane_id = "other", .execution_kind = "k"}));
  EXPECT_LT(time_of([&] { engine.stop(); }), 5s);
  const auto tasks = claim.get();
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  EXPECT_TRUE(tasks->empty());
}

TEST(EngineStop, IsImpliedByTheEnd) {
  std::future<Result<Creation>> creation;
  std::future<Result<std::vector<ClaimedTask>>> claim;
  {
    auto engine = open_engine();
    claim = engine.submit(ClaimTasks{.worker_id = "w", .lanes = {"none"}, .wait_ms = 30'000});
    creation = engine.submit(task());
  }
  ASSERT_EQ(creation.wait_for(0s), std::future_status::ready);
  EXPECT_TRUE(creation.get());
  ASSERT_EQ(claim.wait_for(0s), std::future_status::ready);
  EXPECT_TRUE(claim.get());
}

// "Every member may be called from any thread."
TEST(EngineStop, MayBeCalledByManyThreadsAtOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto stop_from_many_threads = [] {
    alarm(20);  // ends the process if it hangs
    for (int round = 0; round < 200; ++round) {
      auto engine = open_engine();
      std::latch together(4);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          together.arrive_and_wait();
          engine.stop();
        });
      }
      for (auto& thread : threads) thread.join();
    }
    std::exit(0);
  };
  EXPECT_EXIT(stop_from_many_threads(), testing::ExitedWithCode(0), "");
}

// ---- waiting and the clock ----

TEST(EngineWait, AClaimComesBackEmptyWhenItsTimeIsUp) {
  auto engine = open_engine();
  const auto waited = time_of([&] {
    const auto tasks = engine.call(ClaimTasks{.worker_id = "w", .wait_ms = 200});
    ASSERT_TRUE(tasks);
    EXPECT_TRUE(tasks->empty());
  });
  EXPECT_GE(waited, 200ms);
  EXPECT_LT(waited, 1500ms);
}

TEST(EngineWait, WorkWakesAClaimAtOnce) {
  auto engine = open_engine();
  auto claim = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
  ASSERT_TRUE(engine.call(task()));
  ASSERT_EQ(claim.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(claim.get()->size(), 1u);
}

TEST(EngineWait, BeyondTheBoundClaimsDoNotWait) {
  auto engine = open_engine({.max_waiting_claims = 2});
  auto first = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
  auto second = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
  const auto third = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000}).get();
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->empty());
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(second.wait_for(0s), std::future_status::timeout);
}

// The deadline is for operations that were not run; a claim that waits was.
TEST(EngineWait, AClaimMayWaitLongerThanTheDeadline) {
  auto engine = open_engine({.operation_deadline = 100ms});
  auto claim = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
  EXPECT_EQ(claim.wait_for(300ms), std::future_status::timeout) << "it waits on past the deadline";
  ASSERT_TRUE(engine.call(task()));
  const auto tasks = claim.get();
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  EXPECT_EQ(tasks->size(), 1u);
}

TEST(EngineClock, ExpiresALeaseWithoutAnyCall) {
  auto engine = open_engine();
  const auto id = engine.call(task())->execution_id;
  const auto held = engine.call(ClaimTasks{.worker_id = "w", .lease_ttl_ms = 1000})->at(0);
  auto taken_over = engine.submit(ClaimTasks{.worker_id = "other", .wait_ms = 10'000});
  const auto tasks = taken_over.get();
  ASSERT_TRUE(tasks && tasks->size() == 1);
  EXPECT_EQ(tasks->front().execution_id, id);
  EXPECT_EQ(tasks->front().claim, ClaimKind::reclaimed);
  const auto events = *engine.call(ReadLeaseEvents{});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].type, LeaseEventType::expired);
  EXPECT_GE(events[1].occurred_at, held.lease_expires_at);
  EXPECT_LT(events[1].occurred_at, held.lease_expires_at + 1000) << "late";
}

TEST(EngineClock, OffersDelayedWorkWhenItsTimeComes) {
  auto engine = open_engine();
  auto delayed = task();
  delayed.delay_until = store::system_now_ms() + 100;
  ASSERT_TRUE(engine.call(delayed));
  const auto waited =
      time_of([&] { EXPECT_EQ(engine.call(ClaimTasks{.worker_id = "w", .wait_ms = 10'000})->size(), 1u); });
  EXPECT_LT(waited, 3s);
}

TEST(EngineClock, CanBeTurnedOffAndRunByHand) {
  std::atomic<std::int64_t> now{1'000'000};
  auto engine = open_engine({.clock_interval = 0ms, .now_ms = [&] { return now.load(); }});
  auto delayed = task();
  delayed.delay_until = 1'000'500;
  ASSERT_TRUE(engine.call(delayed));
  EXPECT_EQ(engine.run_due(), 0u);
  now = 1'000'500;
  EXPECT_TRUE(engine.call(ClaimTasks{.worker_id = "w"})->empty()) << "nothing moves by itself";
  EXPECT_EQ(engine.run_due(), 1u);
  EXPECT_EQ(engine.run_due(), 0u);
  EXPECT_EQ(engine.call(ClaimTasks{.worker_id = "w"})->size(), 1u);
}

}  // namespace
}  // namespace flowfabric
