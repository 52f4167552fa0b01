// The committer: bounded queues, deadlines, failed commits, stopping; every operation is answered exactly
// once.
#include <gtest/gtest.h>

#include "core/execution/create.h"
#include "core/lifecycle/claim.h"
#include "core/operations.h"
#include "engine/committer.h"
#include "unit/engine_gated_session.h"

namespace flowfabric::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Codes = std::vector<std::optional<ErrorCode>>;

const Codes kDone{std::nullopt};
Codes refused(ErrorCode code) {
  return {code};
}

class CommitterTest : public testing::Test {
 protected:
  void start(EngineOptions options = {}) {
    auto store = store::open_store(url_, {});
    store_ = *std::move(store);
    waiting_ = std::make_unique<WaitingClaims>(options.max_waiting_claims, [](SteadyTime) {});
    committer_ =
        std::make_unique<Committer>(std::make_unique<GatedSession>(gate_, store_->open_writer()), options,
                                    *waiting_, [this](const BatchEffects&) { ++committed_; });
  }
  void TearDown() override {
    gate_->open();
    committer_.reset();
  }

  void submit(int number, std::size_t bytes = 1) { committer_->submit(numbered(answers_, number, bytes)); }
  // Its batch stands at the gate; whatever comes next has to queue.
  void submit_and_hold(int number) {
    submit(number);
    gate_->wait_for_arrivals(1);
  }
  Codes fate(int number) { return answers_.wait_for(number).answers; }
  std::int64_t count() {
    auto reader = store_->open_reader();
    core::Unit unit(*reader);
    reader->begin(unit);
    const auto counts = reader->count_lane("lane");
    reader->rollback();
    return counts.contains(PublicState::waiting) ? counts.at(PublicState::waiting) : 0;
  }

  std::string url_{"memory:"};
  std::shared_ptr<Gate> gate_{std::make_shared<Gate>()};
  Answers answers_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<WaitingClaims> waiting_;
  std::atomic<int> committed_{0};
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, TheQueueIsBoundedByCount) {
  start({.max_queued_operations = 3});
  submit_and_hold(0);
  for (int i = 1; i <= 3; ++i) submit(i);
  submit(4);
  EXPECT_EQ(answers_.all()[4].answers, refused(ErrorCode::resource_exhausted)) << "at once, not later";
  EXPECT_EQ(answers_.all()[4].last_detail, "queued operations: 3");
  gate_->open();
  for (int i = 0; i <= 3; ++i) EXPECT_EQ(fate(i), kDone) << i;
  submit(5);
  EXPECT_EQ(fate(5), kDone) << "there is room again";
  EXPECT_EQ(count(), 5);
}

TEST_F(CommitterTest, TheQueueIsBoundedByBytes) {
  start({.max_queued_bytes = 1000});
  submit_and_hold(0);
  submit(1, 600);
  submit(2, 401);
  EXPECT_EQ(answers_.all()[2].answers, refused(ErrorCode::resource_exhausted));
  EXPECT_EQ(answers_.all()[2].last_detail, "queued bytes: 1000");
  submit(3, 400);
  EXPECT_TRUE(answers_.all()[3].answers.empty()) << "exactly full is not too much";
  gate_->open();
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(fate(3), kDone);
  submit(4, 1000);
  EXPECT_EQ(fate(4), kDone) << "what was taken from the queue counts no more";
}

TEST_F(CommitterTest, WhatComesDuringACommitSharesTheNextOne) {
  start();
  submit_and_hold(0);
  for (int i = 1; i <= 50; ++i) submit(i);
  gate_->open();
  ASSERT_TRUE(answers_.wait_for_count(51));
  EXPECT_EQ(committed_, 2);
  EXPECT_EQ(committer_->stats().largest_batch, 50u);
  EXPECT_EQ(committer_->stats().operations, 51u);
}

TEST_F(CommitterTest, ABatchHasABound) {
  start({.max_batch = 8});
  submit_and_hold(0);
  for (int i = 1; i <= 20; ++i) submit(i);
  gate_->open();
  ASSERT_TRUE(answers_.wait_for_count(21));
  EXPECT_EQ(committer_->stats().largest_batch, 8u);
  EXPECT_EQ(committer_->stats().batches, 4u);
}

TEST_F(CommitterTest, WhatQueuedPastItsDeadlineIsRefusedAndNotRun) {
  start({.max_queued_bytes = 100});
  submit_and_hold(0);
  auto late = numbered(answers_, 1, 90);
  late.deadline = steady_clock::now() + 10s;
  committer_->submit(std::move(late));
  submit(2, 10);
  committer_->refuse_overdue(steady_clock::now() + 20s);
  EXPECT_EQ(answers_.all()[1].answers, refused(ErrorCode::timeout));
  submit(3, 90);
  EXPECT_TRUE(answers_.all()[3].answers.empty()) << "its bytes were given back";
  gate_->open();
  EXPECT_EQ(fate(2), kDone);
  EXPECT_EQ(fate(3), kDone);
  EXPECT_EQ(answers_.all()[1].runs, 0);
  EXPECT_EQ(answers_.all()[1].answers.size(), 1u);
}

// The clock looks only now and then; an operation that is overdue at its turn must be refused all the same.
TEST_F(CommitterTest, WhatIsOverdueWhenItsTurnComesIsNotRun) {
  start();
  submit_and_hold(0);
  auto late = numbered(answers_, 1);
  late.deadline = steady_clock::now() - 1ms;
  committer_->submit(std::move(late));
  gate_->open();
  EXPECT_EQ(fate(1), refused(ErrorCode::timeout));
  EXPECT_EQ(answers_.all()[1].runs, 0);
}

class FailedCommit : public CommitterTest, public testing::WithParamInterface<ErrorCode> {};

TEST_P(FailedCommit, IsTheAnswerOfItsWholeBatchAndOfNoOther) {
  start();
  submit_and_hold(0);
  for (int i = 1; i <= 5; ++i) submit(i);
  gate_->fail_commit([] {});  // the first goes well
  gate_->fail_commit([] { throw store::StoreFailure{{GetParam(), "disk on fire", "Run."}}; });
  gate_->open();
  EXPECT_EQ(fate(0), kDone);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(fate(i), refused(GetParam())) << i;
    EXPECT_EQ(answers_.all()[i].last_detail, "disk on fire");
  }
  submit(6);
  EXPECT_EQ(fate(6), kDone);
  EXPECT_EQ(count(), 2);
}

INSTANTIATE_TEST_SUITE_P(Codes, FailedCommit, testing::Values(ErrorCode::transport, ErrorCode::unavailable),
                         [](const auto& tested) { return std::string(error_name(tested.param)); });

TEST_F(CommitterTest, ATransactionThatCannotBeginFailsItsBatchOnly) {
  start();
  gate_->fail_begin([] { throw store::StoreFailure{{ErrorCode::unavailable, "locked", "Wait."}}; });
  gate_->open();
  submit(0);
  EXPECT_EQ(fate(0), refused(ErrorCode::unavailable));
  EXPECT_EQ(answers_.all()[0].runs, 0);
  submit(1);
  EXPECT_EQ(fate(1), kDone);
}

TEST_F(CommitterTest, AnExceptionOfALibraryFailsItsBatchOnly) {
  start();
  gate_->fail_commit([] { throw std::bad_alloc(); });
  gate_->open();
  submit(0);
  EXPECT_EQ(fate(0), refused(ErrorCode::unavailable));
  submit(1);
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(count(), 1);
}

TEST_F(CommitterTest, StoppingRunsWhatIsQueued) {
  start();
  submit_and_hold(0);
  for (int i = 1; i <= 5; ++i) submit(i);
  gate_->open();
  committer_->stop(steady_clock::now() + 20s);
  for (int i = 0; i <= 5; ++i) EXPECT_EQ(answers_.all()[i].answers, kDone) << i;
  submit(6);
  EXPECT_EQ(answers_.all()[6].answers, refused(ErrorCode::unavailable));
}

TEST_F(CommitterTest, StoppingRefusesWhatIsStillQueuedAfterItsGrace) {
  start();
  submit_and_hold(0);
  for (int i = 1; i <= 5; ++i) submit(i);
  std::thread stopper([&] { committer_->stop(steady_clock::now()); });
  ASSERT_TRUE(answers_.wait_for_count(5));
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(fate(i), refused(ErrorCode::unavailable));
    EXPECT_EQ(answers_.all()[i].runs, 0);
  }
  gate_->open();
  stopper.join();
  EXPECT_EQ(fate(0), kDone) << "what was being committed is answered as it ends";
}

// Many threads, a queue that overflows, commits that fail, and an end in the middle of it.
TEST_F(CommitterTest, EveryOperationIsAnsweredExactlyOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 2000;
  start({.max_queued_operations = 200, .max_batch = 64});
  for (int i = 0; i < 10; ++i) {
    gate_->fail_commit([] {});
    gate_->fail_commit([] { throw store::StoreFailure{{ErrorCode::transport, "", ""}}; });
  }
  gate_->open();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kEach; ++i) {
        if (t == 0 && i == kEach / 2) committer_->stop(steady_clock::now() + 50ms);
        submit(t * kEach + i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(answers_.wait_for_count(kThreads * kEach));
  std::map<std::optional<ErrorCode>, std::int64_t> seen;
  const auto all = answers_.all();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kEach));
  for (const auto& [number, fate] : all) {
    ASSERT_EQ(fate.answers.size(), 1u) << number;
    ++seen[fate.answers.front()];
  }
  EXPECT_EQ(seen[std::nullopt], count()) << "what was answered with success, and only that, is stored";
  EXPECT_GT(seen[ErrorCode::transport], 0);
  EXPECT_GT(seen[ErrorCode::unavailable], 0);
}

// ---- waiting claims ----

// On stores that load on the spot, and on those that will not be asked for each record.
class WaitingClaimsTest : public CommitterTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { url_ = GetParam(); }

  // A claim that waits for an hour.
  void claim(
      int number, std::function<void(core::Unit&)> first = [](core::Unit&) {}) {
    auto operation = numbered(answers_, number);
    operation.want = [](core::Unit& unit) {
      core::definition_of<ClaimTasks>().want(unit, ClaimTasks{.worker_id = "w"}, {});
    };
    operation.run = [this, number, first](core::Unit& unit, core::Context& at) {
      answers_.ran(number);
      first(unit);
      const auto tasks = core::apply(unit, ClaimTasks{.worker_id = "w"}, at);
      found_[number] = tasks ? tasks->size() : 0;
      return tasks ? Outcome::keep : Outcome::undo;
    };
    operation.claim = std::make_shared<const ClaimTasks>(ClaimTasks{.worker_id = "w"});
    operation.wait_until = steady_clock::now() + 1h;
    operation.deadline = operation.wait_until + 30s;
    operation.came_back_empty = [this, number] { return found_[number] == 0; };
    committer_->submit(std::move(operation));
  }
  void create(int number) {
    auto operation = numbered(answers_, number);
    operation.run = [this, number](core::Unit& unit, core::Context& at) {
      answers_.ran(number);
      CreateExecution request{.execution_kind = "k"};
      request.execution_id = ExecutionId{1, at.mint<LeaseId>().uuid};
      return core::apply(unit, request, at) ? Outcome::keep : Outcome::undo;
    };
    operation.seed = static_cast<std::uint64_t>(number);
    committer_->submit(std::move(operation));
  }
  void wait_until_parked(int number) {
    submit(number + 1000);  // behind it in the queue: when this is answered, the claim was run
    fate(number + 1000);
  }

  std::map<int, std::size_t> found_;  // by claim; touched by the committer only, read after its answer
};

TEST_P(WaitingClaimsTest, AClaimWaitsAndIsWokenByWork) {
  start();
  gate_->open();
  claim(1);
  wait_until_parked(1);
  EXPECT_TRUE(answers_.all()[1].answers.empty());
  create(2);
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(found_[1], 1u);
}

TEST_P(WaitingClaimsTest, AClaimTakesWorkInTheCommitThatOffersIt) {
  start();
  gate_->open();
  claim(1);
  wait_until_parked(1);
  const int before = committed_;
  create(2);
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(found_[1], 1u);
  EXPECT_EQ(committed_, before + 1);
}

TEST_P(WaitingClaimsTest, AClaimTakesWhatItsOwnBatchOffers) {
  start();
  submit_and_hold(1);
  claim(2);
  create(3);  // has not said what it needs
  gate_->open();
  EXPECT_EQ(fate(2), kDone);
  EXPECT_EQ(found_[2], 1u);
  EXPECT_EQ(committed_, 2);
}

TEST_P(WaitingClaimsTest, AClaimThatNeedsMoreThanItsBatchHasIsWokenByIt) {
  start();
  gate_->open();
  claim(1, [](core::Unit& unit) {
    for (const auto* each : {"one", "after", "the", "other"}) unit.find<Worker>({"", each});
  });
  wait_until_parked(1);
  create(2);
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(found_[1], 1u);
}

TEST_P(WaitingClaimsTest, AClaimGoesOnWaitingWhenWhatItJoinedHasFailed) {
  start();
  gate_->open();
  claim(1);
  wait_until_parked(1);
  gate_->fail_commit([] { throw store::StoreFailure{{ErrorCode::transport, "", ""}}; });
  create(2);
  EXPECT_EQ(fate(2), refused(ErrorCode::transport));
  wait_until_parked(3);
  EXPECT_TRUE(answers_.all()[1].answers.empty());
  create(4);
  EXPECT_EQ(fate(1), kDone);
  EXPECT_EQ(found_[1], 1u);
}

TEST_P(WaitingClaimsTest, BeyondTheBoundAClaimIsAnsweredEmptyAtOnce) {
  start({.max_waiting_claims = 2});
  gate_->open();
  claim(1);
  claim(2);
  claim(3);
  EXPECT_EQ(fate(3), kDone);
  EXPECT_EQ(found_[3], 0u);
  EXPECT_TRUE(answers_.all()[1].answers.empty());
  EXPECT_TRUE(answers_.all()[2].answers.empty());
  EXPECT_EQ(waiting_->take_all().size(), 2u);
}

TEST_P(WaitingClaimsTest, OneTaskWakesOneClaim) {
  start();
  gate_->open();
  claim(1);
  claim(2);
  wait_until_parked(2);
  create(3);
  EXPECT_EQ(fate(1), kDone) << "the one that has waited longest";
  EXPECT_TRUE(answers_.all()[2].answers.empty());
  EXPECT_EQ(answers_.all()[2].runs, 1);
}

INSTANTIATE_TEST_SUITE_P(Stores, WaitingClaimsTest, testing::Values("memory:", "memory:?load=deferred"),
                         [](const auto& store) {
                           return std::string(store.param) == "memory:" ? "instant" : "deferred";
                         });

}  // namespace
}  // namespace flowfabric::engine
