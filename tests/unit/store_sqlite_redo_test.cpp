// The redo log of the SQLite store: what was told of is there after a crash, whatever the tables had got of
// it.
#include <cstring>
#include <fstream>

#include "flowfabric/engine.h"
#include "store/sqlite/redo_log.h"
#include "store_sqlite_behind_fixture.h"

namespace flowfabric::store::sqlite {
namespace {

class RedoLogReplay : public CommitBehind {
 protected:
  static constexpr int kTasks = 40;

  // Told of, and not in the tables.
  void create_behind_a_lock() {
    hold();
    for (int i = 0; i < kTasks; ++i) {
      auto request = task("lane");
      request.input = std::string(static_cast<std::size_t>(i) * 100, 'x');
      request.tags = {{"number", std::to_string(i)}};
      ids_.push_back(*request.execution_id);
      ASSERT_TRUE(run(request));
    }
    ASSERT_TRUE(are_told(kTasks));
    ASSERT_EQ(stored(), 0);
  }

  // As a crash would leave them.
  std::string copy_files() {
    const auto copy = folder_.file("copy.db");
    for (const char* suffix : {"", "-wal", "-redo1", "-redo2"}) {
      if (std::filesystem::exists(path_ + suffix)) std::filesystem::copy_file(path_ + suffix, copy + suffix);
    }
    EXPECT_TRUE(std::filesystem::exists(copy + "-redo1"));
    return copy;
  }

  static std::int64_t waiting(Engine& engine) {
    EXPECT_EQ(engine.call(CheckStore{})->found, 0u);
    return engine.call(CountLane{"lane"}).value()[PublicState::waiting];
  }

  std::vector<ExecutionId> ids_;
};

TEST_F(RedoLogReplay, WhatWasToldIsThereAfterACrash) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  for (int round = 0; round < 2; ++round) {
    auto engine = Engine::open("sqlite:" + copy, {});
    ASSERT_TRUE(engine) << engine.error().to_string();
    for (const auto& id : ids_) EXPECT_TRUE(engine->call(DescribeExecution{id}));
    EXPECT_EQ(waiting(*engine), kTasks) << "counted once";
    EXPECT_FALSE(std::filesystem::exists(copy + "-redo1")) << "nothing is left over";
  }
}

TEST_F(RedoLogReplay, WhatTheTablesHaveIsNotRunAgain) {
  create_behind_a_lock();
  let_go();
  writer_->await_durable();
  auto engine = Engine::open("sqlite:" + copy_files(), {});
  ASSERT_TRUE(engine) << engine.error().to_string();
  EXPECT_EQ(waiting(*engine), kTasks);
}

TEST_F(RedoLogReplay, AnEntryThatIsNotWholeIsTheEnd) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  {
    std::fstream file(copy + "-redo1", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('!');
  }
  auto engine = Engine::open("sqlite:" + copy, {});
  ASSERT_TRUE(engine) << engine.error().to_string();
  EXPECT_EQ(waiting(*engine), kTasks - 1);
}

TEST_F(RedoLogReplay, ALogOfAnotherDatabaseIsRefused) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  const auto fresh = folder_.file("fresh.db");
  std::filesystem::copy_file(copy + "-redo1", fresh + "-redo1");
  const auto refused = Engine::open("sqlite:" + fresh, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corruption);
  EXPECT_NE(refused.error().to_string().find("fresh.db-redo1"), std::string::npos)
      << refused.error().to_string();
  EXPECT_TRUE(std::filesystem::exists(fresh + "-redo1")) << "it is not touched";
}

TEST_F(RedoLogReplay, ALogWithAPartMissingIsRefused) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  std::ifstream whole(copy + "-redo1", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  RedoEntryHeader entry{};
  std::memcpy(&entry, bytes.data() + sizeof(RedoHeader), sizeof entry);
  bytes.erase(sizeof(RedoHeader), sizeof entry + entry.size);
  std::ofstream(copy + "-redo1", std::ios::binary) << bytes;
  const auto refused = Engine::open("sqlite:" + copy, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corruption) << refused.error().to_string();
}

TEST_F(RedoLogReplay, MayBeReadByWhoMayReadTheDatabase) {
  const auto rights = [](const std::string& path) { return std::filesystem::status(path).permissions(); };
  using std::filesystem::perms;
  std::filesystem::permissions(path_, perms::owner_read | perms::owner_write);
  create_behind_a_lock();
  let_go();
  EXPECT_EQ(rights(path_ + "-redo1"), perms::owner_read | perms::owner_write);
}

TEST_F(RedoLogReplay, IsGoneWhenTheStoreIsClosed) {
  create_behind_a_lock();
  let_go();
  writer_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_ + "-redo1"));
  EXPECT_EQ(stored(), kTasks);
}

// ---- the files ----

TEST(RedoLog, ItsFilesTakeTurnsWhenTheirEntriesAreSafe) {
  const tests::TemporaryFolder folder;
  const auto path = folder.file("a.db");
  const auto [first, second] = redo_paths(path);
  std::ofstream(path) << "a database";
  RedoLog log(path, 7, Durability::full);
  const std::string sql = "insert";
  const auto add = [&](std::uint64_t number) {
    log.add(number, [&](RedoEntry& entry) {
      entry.statement(sql);
      entry.blob(std::string(4 << 20, 'x'));
    });
    log.sync();
  };
  std::uint64_t number = 0;
  while (!std::filesystem::exists(second)) {
    ASSERT_LT(number, 20u) << "32 MiB are a turn";
    add(++number);
  }
  const auto last_of_first = log.wants_safe();
  EXPECT_EQ(last_of_first, number - 1);
  for (int i = 0; i < 12; ++i) add(++number);
  EXPECT_GT(std::filesystem::file_size(second), 40u << 20) << "the first may not be used again yet";
  log.is_safe(last_of_first);
  const auto size = std::filesystem::file_size(first);
  add(++number);
  EXPECT_EQ(std::filesystem::file_size(first), size) << "it is, in place";
  EXPECT_EQ(log.wants_safe(), number - 1);
  log.start_over();
  EXPECT_EQ(log.wants_safe(), 0u);
  log.remove();
  EXPECT_FALSE(std::filesystem::exists(first) || std::filesystem::exists(second));
}

}  // namespace
}  // namespace flowfabric::store::sqlite
