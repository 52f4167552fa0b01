// Batches of the SQLite store that are worked out, and told of, while those before them are not in the tables
// yet.
#include <future>

#include "store/sqlite/shown_mark.h"
#include "store_sqlite_behind_fixture.h"

namespace flowfabric::store::sqlite {
namespace {

using namespace std::chrono_literals;

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
  EXPECT_TRUE(are_told(4)) << "it is durable all the same";
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

TEST_F(CommitBehind, WhatIsLeftIsFoundWhenItIsInTheTables) {
  const auto create = [&](std::int32_t priority) {
    auto request = task("default");
    request.priority = priority;
    EXPECT_TRUE(run(request));
  };
  const auto claim_priorities = [&](std::uint32_t most) {
    const auto tasks = run(ClaimTasks{.worker_id = "w", .lanes = {"default"}, .max_tasks = most});
    std::vector<std::int32_t> priorities;
    for (const auto& each : *tasks) priorities.push_back(each.priority);
    return priorities;
  };
  create(10);
  create(1);
  writer_->await_durable();
  hold();
  EXPECT_EQ(claim_priorities(2), (std::vector<std::int32_t>{10, 1}));
  create(6);
  create(5);
  // Looks through all that the database offers, which is taken, and leaves one that stands before its end.
  EXPECT_EQ(claim_priorities(1), std::vector<std::int32_t>{6});
  let_go();
  writer_->await_durable();
  hold();
  create(0);  // so that there is something that the tables do not show
  EXPECT_EQ(claim_priorities(2), (std::vector<std::int32_t>{5, 0}));
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

TEST_F(CommitBehind, AReadWaitsForWhatWasToldBefore) {
  hold();
  ASSERT_TRUE(run(task("default")));
  ASSERT_TRUE(are_told(1));
  auto reader = store_->open_reader();
  auto counted = std::async(std::launch::async, [&] {
    core::Unit unit(*reader);
    reader->begin(unit);
    return reader->count_lane("default")[PublicState::waiting];
  });
  EXPECT_EQ(counted.wait_for(100ms), std::future_status::timeout) << "the tables do not show it yet";
  let_go();
  EXPECT_EQ(counted.get(), 1);
}

TEST_F(CommitBehind, WhatIsChangedAgainAndAgainIsWrittenOnce) {
  // A lane's routes are asked for as well, but they are there.
  ASSERT_TRUE(run(task("default")));
  ASSERT_EQ(claim().size(), 1u);
  writer_->await_durable();
  other_.run("create table seen (what text)");
  other_.run("create trigger see after update on ff_exec_core begin insert into seen values('update'); end");
  other_.run(
      "create trigger seeing after insert on ff_exec_core begin insert into seen values('insert'); end");
  hold();
  ASSERT_TRUE(run(task("default")));
  // The writer holds the first by now, or takes it with the others.
  std::this_thread::sleep_for(50ms);
  ASSERT_TRUE(run(task("default")));
  const auto both = claim();
  ASSERT_EQ(both.size(), 2u);
  for (const auto& each : both) {
    ASSERT_TRUE(run(CompleteExecution{.execution_id = each.execution_id, .fence = each.fence}));
  }
  let_go();
  writer_->await_durable();
  EXPECT_EQ(stored("public_state='completed'"), 2);
  EXPECT_EQ(other_.number("select count(*) from seen where what='insert'"), 2);
  EXPECT_LE(other_.number("select count(*) from seen where what='update'"), 1) << "of the first";
}

TEST_F(CommitBehind, WhatRestsOnAFailedBatchIsNotStored) {
  ASSERT_TRUE(run(task("good")));
  writer_->await_durable();
  writer_.reset();
  writer_ = store_->open_writer();
  take_redo_log();
  ASSERT_TRUE(run(task("lost")));
  ASSERT_TRUE(are_told(2));
  EXPECT_EQ(told_.back().second, ErrorCode::transport) << "nothing of it was stored";
  give_redo_log();
  ASSERT_TRUE(run(task("good"))) << "and then it goes on";
  writer_->await_durable();
  EXPECT_FALSE(told_.back().second);
  EXPECT_EQ(stored("lane_id='lost'"), 0);
  EXPECT_EQ(stored(), 2);
}

TEST_F(CommitBehind, ABatchThatRestsOnAFailedOneIsNotBegun) {
  take_redo_log();
  ASSERT_TRUE(run(task("lost")));
  // Worked out before the failure, handed over after it.
  auto unit = std::make_unique<core::Unit>(*writer_);
  ASSERT_TRUE(are_told(1));
  try {
    writer_->commit_behind(std::move(unit), true, [](const auto&) { ADD_FAILURE() << "told of"; });
    ADD_FAILURE() << "accepted";
  } catch (const StoreFailure& failure) {
    EXPECT_EQ(failure.retry, Retry::now) << "the committer runs it again";
  }
  give_redo_log();
}

TEST_F(CommitBehind, WhatCannotBePutIntoTheTablesIsTriedAgain) {
  other_.run(
      "create trigger bad before insert on ff_exec_core when new.lane_id='bad' begin select "
      "raise(abort,'no'); end");
  ASSERT_TRUE(run(task("bad")));
  ASSERT_TRUE(are_told(1));
  EXPECT_FALSE(told_[0].second) << "it is durable";
  const auto begin = [](Session& session) -> std::optional<ErrorCode> {
    core::Unit unit(session);
    try {
      session.begin(unit);
    } catch (const StoreFailure& failure) {
      return failure.error.code;
    }
    return std::nullopt;
  };
  auto reader = store_->open_reader();
  EXPECT_TRUE(begin(*reader)) << "nobody is shown less than was told";
  EXPECT_TRUE(begin(*writer_)) << "and nothing new is accepted";
  other_.run("drop trigger bad");
  EXPECT_FALSE([&] {
    for (int i = 0; i < 1000; ++i) {
      if (!begin(*writer_)) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }());
  EXPECT_EQ(stored("lane_id='bad'"), 1);
  EXPECT_FALSE(begin(*reader));
}

TEST_F(CommitBehind, TheTablesFallBehindBySoMuchAndNoMore) {
  ASSERT_TRUE(run(task("default")));
  writer_->await_durable();
  hold();
  auto many = std::async(std::launch::async, [&] {
    for (int i = 0; i < 60; ++i) {
      auto large = task("default");
      large.input = std::string(1'000'000, 'x');
      if (!run(large)) return false;
    }
    return true;
  });
  EXPECT_EQ(many.wait_for(2s), std::future_status::timeout) << "32 MiB are held in memory, not 60";
  let_go();
  EXPECT_TRUE(many.get());
  writer_->await_durable();
  EXPECT_EQ(stored(), 61);
}

TEST(ShownMark, WhoReadsWaitsForWhatWasTold) {
  ShownMark mark;
  mark.await();
  mark.told(2);
  auto reader = std::async(std::launch::async, [&] { mark.await(); });
  mark.shown(1);
  EXPECT_EQ(reader.wait_for(50ms), std::future_status::timeout) << "one is still on its way";
  mark.shown(2);
  EXPECT_EQ(reader.wait_for(10s), std::future_status::ready);
}

}  // namespace
}  // namespace flowfabric::store::sqlite
