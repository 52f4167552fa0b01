// A SQLite store in trouble: a full disk, a log that grows, readers that stay, damaged rows.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "flowfabric/engine.h"
#include "model/random.h"
#include "store/sqlite/database.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {
namespace {

using namespace std::chrono_literals;

EngineOptions without_clock() {
  EngineOptions options;
  options.clock_interval = 0ms;
  return options;
}

CreateExecution big_task(std::size_t bytes) {
  return {.execution_kind = "big", .input = std::string(bytes, 'b')};
}

// The outcomes of creates that were sent until the disk was full.
struct Fate {
  std::vector<ExecutionId> stored;
  std::vector<ExecutionId> refused;
  std::optional<Error> refusal;
};

// The ids are ours, so that it can be told later what became of the refused ones.
Fate create_until_refused(Engine& engine, int most) {
  static std::uint64_t next = 0;
  Fate fate;
  for (int i = 0; i < most && fate.refused.size() < 3; ++i) {
    Random random(++next);
    auto request = big_task(40'000);
    request.execution_id = ExecutionId{1, mint_uuid(system_now_ms(), random)};
    const auto id = *request.execution_id;
    const auto created = engine.call(std::move(request));
    if (created) {
      fate.stored.push_back(id);
    } else {
      fate.refused.push_back(id);
      fate.refusal = created.error();
    }
  }
  return fate;
}

bool is_there(Engine& engine, const ExecutionId& id) {
  return engine.call(DescribeExecution{id}).has_value();
}

// Runs the story of a disk that fills up and is made larger again; returns what went wrong.
std::string survive_a_full_disk(const std::string& path, const std::function<void()>& lift) {
  std::string wrong;
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) wrong += what + "\n";
  };
  Fate before;
  Fate after;
  {
    auto engine = Engine::open("sqlite:" + path, without_clock());
    if (!engine) return engine.error().to_string();
    before = create_until_refused(*engine, 1000);
    require(before.stored.size() > 5, "hardly anything was stored before the disk was full");
    require(before.refused.size() == 3, "the disk did not fill up");
    if (!before.refusal) return wrong;
    const auto said = before.refusal->to_string();
    const bool clear =
        before.refusal->code == ErrorCode::transport || before.refusal->code == ErrorCode::unavailable;
    require(clear, "the refusal has the wrong code: " + said);
    require(said.find(path) != std::string::npos, "the refusal does not name the file: " + said);
    for (const auto& id : before.stored) require(is_there(*engine, id), "lost while the disk was full");
    lift();
    after = create_until_refused(*engine, 50);
    require(after.refused.empty(), "still refused: " + (after.refusal ? after.refusal->to_string() : ""));
    const auto tasks = engine->call(ClaimTasks{.worker_id = "w", .max_tasks = 10});
    require(tasks && tasks->size() == 10, "no claims after the disk was full");
  }
  auto again = Engine::open("sqlite:" + path, without_clock());
  if (!again) return wrong + again.error().to_string();
  for (const auto& id : before.stored) require(is_there(*again, id), "an acknowledged create is lost");
  for (const auto& id : after.stored) require(is_there(*again, id), "a later create is lost");
  // `unavailable` means that the outcome is unknown; any other code means that nothing was stored.
  if (before.refusal->code != ErrorCode::unavailable) {
    for (const auto& id : before.refused) require(!is_there(*again, id), "a refused create is there");
  }
  return wrong;
}

TEST(SqliteTrouble, AFullDiskRefusesAndIsForgottenWhenThereIsRoomAgain) {
  const tests::TemporaryFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=3m") != 0) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(
      survive_a_full_disk(folder.file("a.db"),
                          [&] { mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m"); }),
      "");
  umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(SqliteTrouble, AFullDiskIsCalledByItsName) {
  const tests::TemporaryFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=3m") != 0) GTEST_SKIP() << "may not mount";
  {
    auto engine = Engine::open("sqlite:" + folder.file("a.db"), without_clock());
    ASSERT_TRUE(engine) << engine.error().to_string();
    const auto fate = create_until_refused(*engine, 1000);
    ASSERT_TRUE(fate.refusal);
    EXPECT_EQ(fate.refusal->code, ErrorCode::transport);
    EXPECT_NE(fate.refusal->advice.find("disk is full"), std::string::npos) << fate.refusal->to_string();
  }
  umount2(folder.path().c_str(), MNT_DETACH);
}

// Many at once, so that acknowledged operations may not be in the tables yet when the disk is full.
TEST(SqliteTrouble, AFullDiskUnderLoadLosesNothing) {
  const tests::TemporaryFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=12m") != 0) GTEST_SKIP() << "may not mount";
  const auto url = "sqlite:" + folder.file("a.db");
  std::vector<ExecutionId> stored;
  std::vector<ExecutionId> refused;  // and certainly not stored
  bool is_full = false;
  {
    auto engine = Engine::open(url, without_clock());
    ASSERT_TRUE(engine) << engine.error().to_string();
    Random random(1);
    for (int round = 0; round < 100 && !is_full; ++round) {
      std::vector<std::pair<ExecutionId, std::future<Result<Creation>>>> answers;
      for (int i = 0; i < 20; ++i) {
        auto request = big_task(20'000);
        request.execution_id = ExecutionId{1, mint_uuid(system_now_ms(), random)};
        const auto id = *request.execution_id;
        answers.emplace_back(id, engine->submit(std::move(request)));
      }
      for (auto& [id, answer] : answers) {
        const auto created = answer.get();
        is_full |= !created;
        if (created)
          stored.push_back(id);
        else if (created.error().code != ErrorCode::unavailable)
          refused.push_back(id);
      }
    }
    EXPECT_TRUE(is_full);
    EXPECT_GT(stored.size(), 100u);
    ASSERT_EQ(mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT, "size=128m"), 0);
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (!engine->call(big_task(100)) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(10ms);
    }
    for (const auto& id : stored) EXPECT_TRUE(is_there(*engine, id)) << "lost";
  }
  {
    auto again = Engine::open(url, without_clock());
    ASSERT_TRUE(again) << again.error().to_string();
    for (const auto& id : stored) EXPECT_TRUE(is_there(*again, id)) << "lost";
    for (const auto& id : refused) EXPECT_FALSE(is_there(*again, id)) << "refused, and there";
    EXPECT_EQ(again->call(CheckStore{})->found, 0u);
  }
  umount2(folder.path().c_str(), MNT_DETACH);
}

// The limit binds a whole process, so it is a process of its own that runs into it.
TEST(SqliteTrouble, AFileThatMayNotGrowRefusesAndGoesOnLater) {
  const tests::TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto process = fork();
  if (process == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const auto wrong =
        survive_a_full_disk(folder.file("a.db"), [&] { setrlimit(RLIMIT_FSIZE, &limit); }) + "done";
    const auto written = write(ends[1], wrong.data(), wrong.size());
    _exit(written < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string said(1 << 16, '\0');
  const auto length = read(ends[0], said.data(), said.size());
  said.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  close(ends[0]);
  int status = 0;
  waitpid(process, &status, 0);
  EXPECT_EQ(said, "done");
  EXPECT_EQ(status, 0);
}

// ---- the log ----

std::uintmax_t log_bytes(const std::string& path) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(path + "-wal", missing);
  return missing ? 0 : size;
}

// Writes this many payloads of 100 KB, ten at a time; returns the longest time for ten of them.
std::chrono::milliseconds write_payloads(Engine& engine, int count) {
  auto longest = 0ms;
  for (int i = 0; i < count; i += 10) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::future<Result<Creation>>> answers;
    for (int j = 0; j < 10; ++j) answers.push_back(engine.submit(big_task(100'000)));
    for (auto& answer : answers) {
      const auto created = answer.get();
      EXPECT_TRUE(created) << created.error().to_string();
      if (!created) return longest;
    }
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - start));
  }
  return longest;
}

TEST(SqliteLog, StaysBounded) {
  const tests::TemporaryFolder folder;
  auto engine = Engine::open("sqlite:" + folder.file("a.db"), without_clock());
  ASSERT_TRUE(engine) << engine.error().to_string();
  write_payloads(*engine, 2000);
  ASSERT_TRUE(engine->call(CountLane{}));  // it is in the tables then
  EXPECT_GT(std::filesystem::file_size(folder.file("a.db")), 50u << 20) << "the log was never moved";
  EXPECT_LT(log_bytes(folder.file("a.db")), 256u << 20);
}

TEST(SqliteLog, AReaderThatStaysHoldsUpNobody) {
  const tests::TemporaryFolder folder;
  auto engine = Engine::open("sqlite:" + folder.file("a.db") + "?synchronous=normal", without_clock());
  ASSERT_TRUE(engine) << engine.error().to_string();
  write_payloads(*engine, 10);
  ASSERT_TRUE(engine->call(CountLane{}));  // it is in the tables then
  Connection reader(folder.file("a.db"), Access::read_only);
  reader.run("begin");
  ASSERT_EQ(reader.number("select count(*) from ff_exec_core"), 10);
  EXPECT_LT(write_payloads(*engine, 1000), 5000ms);
  EXPECT_EQ(reader.number("select count(*) from ff_exec_core"), 10) << "the reader keeps its view";
  reader.run("commit");
  write_payloads(*engine, 600);
  EXPECT_LT(log_bytes(folder.file("a.db")), 256u << 20);
}

// Beyond the size at which the log is made to start over, too.
TEST(SqliteLog, AReaderThatStaysForLongHoldsUpNobody) {
  const tests::TemporaryFolder folder;
  auto engine = Engine::open("sqlite:" + folder.file("a.db") + "?synchronous=normal", without_clock());
  ASSERT_TRUE(engine) << engine.error().to_string();
  write_payloads(*engine, 10);
  ASSERT_TRUE(engine->call(CountLane{}));  // it is in the tables then
  Connection reader(folder.file("a.db"), Access::read_only);
  reader.run("begin");
  ASSERT_EQ(reader.number("select count(*) from ff_exec_core"), 10);
  while (log_bytes(folder.file("a.db")) < (140u << 20)) {
    ASSERT_LT(write_payloads(*engine, 10), 5000ms)
        << "at a log of " << (log_bytes(folder.file("a.db")) >> 20) << " MB";
  }
}

// ---- damaged rows ----

class SqliteDamage : public testing::Test {
 protected:
  // Two executions; the first is damaged while the store is closed.
  void damage(const std::string& assignment, const std::string& table = "ff_exec_core") {
    {
      auto engine = Engine::open(url_, without_clock());
      ASSERT_TRUE(engine) << engine.error().to_string();
      damaged_ = engine->call(CreateExecution{.execution_kind = "k"})->execution_id;
      sound_ = engine->call(CreateExecution{.lane_id = "other", .execution_kind = "k"})->execution_id;
    }
    Connection connection(folder_.file("a.db"), Access::read_write);
    auto update = connection.prepare("update " + table + " set " + assignment + " where execution_id=?1");
    sqlite3_bind_blob(update.get(), 1, damaged_.uuid.bytes.data(), 16, SQLITE_STATIC);
    update.run();
    ASSERT_EQ(sqlite3_changes(connection.get()), 1);
  }

  tests::TemporaryFolder folder_;
  std::string url_{"sqlite:" + folder_.file("a.db")};
  ExecutionId damaged_;
  ExecutionId sound_;
};

TEST_F(SqliteDamage, IsCalledCorruptionAndNamesTheColumn) {
  const std::vector<std::pair<std::string, std::string>> damages{{"public_state", "ff_exec_core"},
                                                                 {"lifecycle_phase", "ff_exec_core"},
                                                                 {"tags", "ff_exec_core"},
                                                                 {"policy", "ff_exec_spec"}};
  for (const auto& [column, table] : damages) {
    damage(column + "='{nonsense'", table);
    auto engine = Engine::open(url_, without_clock());
    ASSERT_TRUE(engine) << engine.error().to_string();
    const auto described = engine->call(DescribeExecution{damaged_});
    ASSERT_FALSE(described) << column;
    EXPECT_EQ(described.error().code, ErrorCode::corruption) << column;
    EXPECT_NE(described.error().to_string().find(column), std::string::npos) << described.error().to_string();
    EXPECT_TRUE(engine->call(DescribeExecution{sound_})) << column;
  }
}

TEST_F(SqliteDamage, AnIdOfTheWrongLengthIsCorruption) {
  damage("attempt_id=x'0102'");
  auto engine = Engine::open(url_, without_clock());
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->call(DescribeExecution{damaged_}).error().code, ErrorCode::corruption);
}

TEST_F(SqliteDamage, OperationsOnADamagedRowAreRefused) {
  damage("public_state='nonsense'");
  auto engine = Engine::open(url_, without_clock());
  ASSERT_TRUE(engine);
  const auto cancelled = engine->call(CancelExecution{.execution_id = damaged_});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::corruption);
}

TEST_F(SqliteDamage, DoesNotReachItsNeighbours) {
  damage("public_state='nonsense'");
  auto engine = Engine::open(url_, without_clock());
  ASSERT_TRUE(engine);
  ASSERT_FALSE(engine->call(CancelExecution{.execution_id = damaged_}));
  const auto cancelled = engine->call(CancelExecution{.execution_id = sound_});
  EXPECT_TRUE(cancelled) << cancelled.error().to_string();
}

TEST_F(SqliteDamage, ClaimsOnOtherLanesGoOn) {
  damage("public_state='nonsense'");
  auto engine = Engine::open(url_, without_clock());
  ASSERT_TRUE(engine);
  const auto hit = engine->call(ClaimTasks{.worker_id = "w"});
  ASSERT_FALSE(hit);
  EXPECT_EQ(hit.error().code, ErrorCode::corruption);
  const auto tasks = engine->call(ClaimTasks{.worker_id = "w", .lanes = {"other"}});
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  EXPECT_EQ(tasks->size(), 1u);
}

}  // namespace
}  // namespace flowfabric::store::sqlite
