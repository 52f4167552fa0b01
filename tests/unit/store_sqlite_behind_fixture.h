// A writing session of the SQLite store, and somebody else who can keep it from writing.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "core/operations.h"
#include "engine/batch.h"
#include "store/sqlite/database.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {

class CommitBehind : public testing::Test {
 protected:
  CommitBehind() : store_(*open_store("sqlite:" + path_, {.now_ms = system_now_ms})) {
    writer_ = store_->open_writer();
  }

  ~CommitBehind() override {
    if (writer_) writer_->await_durable();
  }

  // One operation as a batch of its own, handed over and not waited for.
  template <class Request>
  auto run(const Request& request) {
    std::optional<Result<typename Request::Answer>> answer;
    std::vector<engine::Operation> operations(1);
    operations[0].seed = ++seed_;
    operations[0].run = [&](core::Unit& unit, core::Context& at) {
      answer = core::definition_of<Request>().apply(unit, request, at);
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

  // While it is held, nothing is written into the tables.
  void hold() { other_.run("begin immediate"); }
  void let_go() { other_.run("commit"); }
  std::size_t told() {
    std::lock_guard lock(mutex_);
    return told_.size();
  }
  // Waits until this many batches were answered.
  bool are_told(std::size_t count) {
    for (int i = 0; i < 10'000 && told() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return told() == count;
  }
  // While it cannot be opened, nothing can be made durable but by who is alone.
  void take_redo_log() { std::filesystem::create_directory(path_ + "-redo1"); }
  void give_redo_log() { std::filesystem::remove(path_ + "-redo1"); }
  std::int64_t stored(const std::string& condition = "true") {
    return other_.number("select count(*) from ff_exec_core where " + condition);
  }

  const tests::TemporaryFolder folder_;
  const std::string path_{folder_.file("a.db")};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> writer_;
  Connection other_{path_, Access::read_write};
  std::uint64_t seed_{0};
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::optional<ErrorCode>>> told_;
};

}  // namespace flowfabric::store::sqlite
