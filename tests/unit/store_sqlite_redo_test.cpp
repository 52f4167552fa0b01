// The redo log of the SQLite store: answered operations are there after a crash, whatever the tables had got
// of it.
#include <cstring>
#include <fstream>

#include "flowfabric/engine.h"
#include "store/sqlite/redo/redo_log.h"
#include "store_sqlite_behind_fixture.h"

namespace flowfabric::store::sqlite {
namespace {

class RedoLogReplay : public CommitBehind {
 protected:
  static constexpr int kTasks = 40;

  // Told of, and not in the tables.
  void create_behind_a_lock() {
    create_behind_a_lock_of(kTasks);
    ASSERT_EQ(stored(), 0);
  }
  void create_behind_a_lock_of(int tasks) {
    hold();
    for (int i = 0; i < tasks; ++i) {
      auto request = task("lane");
      request.input = std::string(static_cast<std::size_t>(i) * 100, 'x');
      request.tags = {{"number", std::to_string(i)}};
      ids_.push_back(*request.execution_id);
      ASSERT_TRUE(run(request));
    }
    ASSERT_TRUE(are_told(static_cast<std::size_t>(tasks)));
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

  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // Opening is refused, and the redo log is left alone.
  static void expect_refused(const std::string& database, ErrorCode code, const std::string& words) {
    const auto before = bytes_of(database + "-redo1");
    const auto refused = Engine::open("sqlite:" + database, {});
    ASSERT_FALSE(refused) << words;
    EXPECT_EQ(refused.error().code, code) << refused.error().to_string();
    EXPECT_NE(refused.error().to_string().find(words), std::string::npos) << refused.error().to_string();
    EXPECT_EQ(bytes_of(database + "-redo1"), before) << "it is touched";
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
  auto bytes = bytes_of(copy + "-redo1");
  RedoEntryHeader entry{};
  std::memcpy(&entry, bytes.data() + sizeof(RedoHeader), sizeof entry);
  bytes.erase(sizeof(RedoHeader), sizeof entry + entry.size);
  put_bytes(copy + "-redo1", bytes);
  expect_refused(copy, ErrorCode::corruption, "does not go on where the database ends");
}

// Every acknowledged byte counts, except for the last entry, which cannot be told from a torn one.
TEST_F(RedoLogReplay, ADamagedByteBeforeItsEndIsRefused) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  const auto whole = bytes_of(copy + "-redo1");
  RedoEntryHeader first{};
  std::memcpy(&first, whole.data() + sizeof(RedoHeader), sizeof first);
  for (const auto at : {std::size_t{0}, std::size_t{7}, sizeof(RedoHeader), sizeof(RedoHeader) + 9,
                        sizeof(RedoHeader) + sizeof first + 3,
                        sizeof(RedoHeader) + sizeof first + first.size + 1, whole.size() / 2}) {
    SCOPED_TRACE(at);
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    put_bytes(copy + "-redo1", bytes);
    expect_refused(copy, ErrorCode::corruption, copy + "-redo1");
  }
  put_bytes(copy + "-redo1", whole);
  auto engine = Engine::open("sqlite:" + copy, {});
  ASSERT_TRUE(engine) << engine.error().to_string();
  EXPECT_EQ(waiting(*engine), kTasks) << "and nothing of it is lost by the refusals";
}

TEST_F(RedoLogReplay, AFormOfAnotherVersionIsRefused) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  auto bytes = bytes_of(copy + "-redo1");
  bytes[7] = '9';
  put_bytes(copy + "-redo1", bytes);
  expect_refused(copy, ErrorCode::corruption, "start and stop that version once");
}

TEST_F(RedoLogReplay, ADatabaseOfANewerVersionIsNotTouched) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  Connection(copy, Access::read_write).run("pragma user_version=999");
  expect_refused(copy, ErrorCode::invalid_input, "newer FlowFabric");
}

TEST_F(RedoLogReplay, AFileWithNothingInItIsAnEmptyLog) {
  for (const auto& nothing : {std::string(), std::string(16, '\0'), std::string(9000, '\0')}) {
    const auto fresh = folder_.file("fresh.db");
    put_bytes(fresh + "-redo1", nothing);
    const auto engine = Engine::open("sqlite:" + fresh, {});
    EXPECT_TRUE(engine) << engine.error().to_string();
    EXPECT_FALSE(std::filesystem::exists(fresh + "-redo1"));
  }
}

// Rights bind everybody but root, so this is something else that cannot be read.
TEST_F(RedoLogReplay, OneThatCannotBeReadIsNotAbsent) {
  const auto fresh = folder_.file("fresh.db");
  std::filesystem::create_directory(fresh + "-redo2");
  const auto refused = Engine::open("sqlite:" + fresh, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("fresh.db-redo2"), std::string::npos)
      << refused.error().to_string();
}

// An older copy of the database beside a newer redo log.
TEST_F(RedoLogReplay, ADatabaseRestoredBesideANewerLogIsRefused) {
  ASSERT_TRUE(run(task("lane")));
  writer_->await_durable();
  const auto copy = folder_.file("copy.db");
  for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, copy + suffix);
  // Written into the tables directly: no entry of the log tells of it.
  auto alone = task("lane");
  core::Unit unit(*writer_);
  writer_->begin(unit);
  core::Context at{1, Random(1), {}, 0, 0};
  unit.begin_operation();
  ASSERT_TRUE(core::definition_of<CreateExecution>().apply(unit, alone, at));
  unit.keep();
  writer_->commit(unit);
  told_.clear();
  create_behind_a_lock_of(1);
  std::filesystem::copy_file(path_ + "-redo1", copy + "-redo1");
  let_go();
  expect_refused(copy, ErrorCode::corruption, "does not go on where the database ends");
}

// As when the power fails before the folder has forgotten it.
TEST_F(RedoLogReplay, AFileThatComesBackAfterItWasReplayedIsNotRunAgain) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  const auto old_log = bytes_of(copy + "-redo1");
  for (int round = 0; round < 3; ++round) {
    auto engine = Engine::open("sqlite:" + copy, {});
    ASSERT_TRUE(engine) << engine.error().to_string();
    EXPECT_EQ(waiting(*engine), kTasks);
    put_bytes(copy + "-redo1", old_log);
  }
}

// A copy of the database that was opened by itself is another one from then on.
TEST_F(RedoLogReplay, ALogOfTheOriginalIsNotOneOfItsCopy) {
  create_behind_a_lock();
  const auto copy = copy_files();
  let_go();
  for (const char* suffix : {"", "-wal", "-redo1"}) {
    std::filesystem::copy_file(copy + suffix, folder_.file("twin.db") + suffix);
  }
  ASSERT_TRUE(Engine::open("sqlite:" + folder_.file("twin.db"), {}));
  writer_.reset();
  store_.reset();
  store_ = *open_store("sqlite:" + copy, {.now_ms = system_now_ms});
  writer_ = store_->open_writer();
  ASSERT_TRUE(run(task("lane")));
  ASSERT_TRUE(are_told(kTasks + 1));
  std::filesystem::copy_file(copy + "-redo1", folder_.file("twin.db-redo1"));
  expect_refused(folder_.file("twin.db"), ErrorCode::corruption, "belongs to another database");
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
  log.remove();
  EXPECT_FALSE(std::filesystem::exists(first) || std::filesystem::exists(second));
}

}  // namespace
}  // namespace flowfabric::store::sqlite
