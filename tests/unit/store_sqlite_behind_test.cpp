// Batches of the SQLite store that are worked out while those before them are still being written.
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "engine/batch.h"
#include "engine/dispatch.h"
#include "store/sqlite/database.h"
#include "store/sqlite/durable_mark.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {
namespace {

using namespace std::chrono_literals;

class CommitBehind : public testing::Test {
 protected:
  CommitBehind() : store_(*open_store("sqlite:" + path_, {.now_ms = system_now_ms})) {
    writer_ = store_->open_writer();
  }

  ~CommitBehind() override { writer_->await_durable(); }

  // One operation as a batch of its own, handed over and not waited for.
  template <class Request>
  auto run(const Request& request) {
    using Answer =
        decltype(engine::apply(std::declval<core::Unit&>(), request, std::declval<core::Context&>()));
    std::optional<Answer> answer;
    std::vector<engine::Operation> operations(1);
    operations[0].seed = ++seed_;
    operations[0].run = [&](core::Unit& unit, core::Context& at) {
      answer = engine::apply(unit, request, at);
      return *answer ? engine::Outcome::keep : engine::Outcome::undo;
    };
    auto [result, unit] = engine::work_out(*writer_, operations, {});
    EXPECT_FALSE(result.failure) << result.failure->to_string();
    engine::commit(*writer_, std::move(unit), true, result, [this, number = seed_](const auto& failure) {
      std::lock_guard lock(mutex_);
      told_.emplace_back(number, failure ? std::optional(failure->error.code) : std::nullopt);
    });
    EXPECT_FALSE(result.failure) << result.failure->to_string();
    return *std::move(answer);
  }
  CreateExecution task(const std::string& lane) {
    Random random(100 + ++seed_);
    return {.execution_id = ExecutionId{1, mint_uuid(1, random)}, .lane_id = lane, .execution_kind = "k"};
  }
  std::vector<ClaimedTask> claim() {
    return *run(ClaimTasks{.worker_id = "w", .lanes = {"default"}, .max_tasks = 10});
  }

  // While it is held, nothing is written.
  void hold() { other_.run("begin immediate"); }
  void let_go() { other_.run("commit"); }
  std::size_t told() {
    std::lock_guard lock(mutex_);
    return told_.size();
  }
  std::int64_t stored(const std::string& condition = "true") {
    return other_.number("select count(*) from ff_exec_core where " + condition);
  }

  const tests::TemporaryFolder folder_;
  const std::string path_{folder_.file("a.db")};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> writer_;
  Connection other_{path_, Access::read_write, Durability::normal};
  std::uint64_t seed_{0};
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::optional<ErrorCode>>> told_;
};

TEST_F(CommitBehind, ABatchSeesWhatThoseBeforeItHaveChanged) {
  Random random(7);
  const SubmitFlow chain{.flow_id = FlowId{mint_uuid(1, random)},
                         .flow_kind = "chain",
                         .nodes = {{.name = "a", .execution = {.execution_kind = "a"}, .join = {}},
                                   {.name = "b", .execution = {.execution_kind = "b"}, .join = {}}},
                         .edges = {{"a", "b"}}};
  // A lane's routes are asked for as well, but they are there.
  ASSERT_TRUE(run(task("default")));
  ASSERT_EQ(claim().size(), 1u);
  writer_->await_durable();
  told_.clear();
  hold();
  ASSERT_TRUE(run(chain));
  const auto first = claim();
  ASSERT_EQ(first.size(), 1u) << "an offer that the database does not show yet";
  ASSERT_TRUE(run(CompleteExecution{.execution_id = first[0].execution_id, .fence = first[0].fence}));
  const auto second = claim();
  ASSERT_EQ(second.size(), 1u) << "along an edge that the database does not show yet";
  EXPECT_EQ(second[0].execution_kind, "b");
  EXPECT_EQ(told(), 0u) << "nothing is durable yet";
  EXPECT_EQ(stored(), 1);
  let_go();
  writer_->await_durable();
  EXPECT_EQ(told(), 4u);
  for (const auto& [number, failure] : told_) EXPECT_FALSE(failure) << number;
  EXPECT_TRUE(std::ranges::is_sorted(told_)) << "in their order";
  EXPECT_EQ(stored("public_state='completed'"), 1);
  EXPECT_EQ(stored("public_state='active'"), 2);
  EXPECT_TRUE(claim().empty()) << "all are taken";
}

TEST_F(CommitBehind, WhatWasTakenIsNotOfferedAgain) {
  ASSERT_TRUE(run(task("default")));
  ASSERT_TRUE(run(task("default")));
  writer_->await_durable();
  hold();
  const auto both = claim();
  EXPECT_EQ(both.size(), 2u);
  EXPECT_TRUE(claim().empty()) << "although the database still offers them";
  let_go();
}

TEST_F(CommitBehind, AQuestionForAnIndexWaitsUntilItCanBeAnswered) {
  Random random(7);
  const FlowId flow{mint_uuid(1, random)};
  hold();
  ASSERT_TRUE(run(SubmitFlow{.flow_id = flow,
                             .flow_kind = "one",
                             .nodes = {{.name = "a", .execution = {.execution_kind = "a"}, .join = {}}},
                             .edges = {}}));
  auto cancelled = std::async(std::launch::async, [&] { return run(CancelFlow{.flow_id = flow}); });
  EXPECT_EQ(cancelled.wait_for(100ms), std::future_status::timeout) << "its members are not there yet";
  let_go();
  ASSERT_TRUE(cancelled.get());
  writer_->await_durable();
  EXPECT_EQ(other_.number("select count(*) from ff_cancel_backlog_member"), 1);
}

TEST_F(CommitBehind, WhatRestsOnAFailedBatchIsNotStored) {
  other_.run(
      "create trigger bad before insert on ff_exec_core when new.lane_id='bad' begin select "
      "raise(abort,'no'); "
      "end");
  hold();
  ASSERT_TRUE(run(task("good")));
  ASSERT_TRUE(run(task("bad")));
  ASSERT_TRUE(run(task("good")));
  let_go();
  writer_->await_durable();
  ASSERT_EQ(told(), 3u);
  EXPECT_TRUE(told_.back().second) << "it was worked out on top of what was not stored";
  const auto before = stored();
  EXPECT_LE(before, 1) << "the first at most";
  EXPECT_EQ(stored("lane_id='bad'"), 0);

  ASSERT_TRUE(run(task("good"))) << "and then it goes on";
  writer_->await_durable();
  EXPECT_FALSE(told_.back().second);
  EXPECT_EQ(stored(), before + 1);
}

TEST_F(CommitBehind, ABatchThatRestsOnAFailedOneIsNotBegun) {
  other_.run("create trigger bad before insert on ff_exec_core begin select raise(abort,'no'); end");
  hold();
  ASSERT_TRUE(run(task("bad")));
  // Worked out before the failure, handed over after it.
  auto unit = std::make_unique<core::Unit>(*writer_);
  writer_->begin(*unit);
  let_go();
  writer_->await_durable();
  try {
    writer_->commit_behind(std::move(unit), true, [](const auto&) { ADD_FAILURE() << "told of"; });
    ADD_FAILURE() << "accepted";
  } catch (const StoreFailure& failure) {
    EXPECT_EQ(failure.retry, Retry::now) << "the committer runs it again";
  }
}

TEST(DurableMark, WhoHasSeenACommitWaitsUntilItIsSettled) {
  DurableMark mark;
  mark.await();
  mark.announce(2);
  auto reader = std::async(std::launch::async, [&] { mark.await(); });
  mark.settle(1);
  EXPECT_EQ(reader.wait_for(50ms), std::future_status::timeout) << "one is still on its way";
  mark.settle(1);
  EXPECT_EQ(reader.wait_for(10s), std::future_status::ready);
}

}  // namespace
}  // namespace flowfabric::store::sqlite
