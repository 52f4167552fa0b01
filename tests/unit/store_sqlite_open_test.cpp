// Opening a SQLite store: everything that is refused, with words that name the file and the remedy, and that
// nothing is touched by a refusal.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "flowfabric/engine.h"
#include "store/store.h"
#include "support/temporary_folder.h"

namespace flowfabric::store {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

AssertionResult mentions(const Error& error, const std::string& words) {
  if (error.to_string().find(words) != std::string::npos) return AssertionSuccess();
  return AssertionFailure() << "'" << error.to_string() << "' does not mention '" << words << "'";
}

Error refusal_of(const std::string& url, const StoreOptions& options = {}) {
  const auto opened = open_store(url, options);
  if (!opened) return opened.error();
  ADD_FAILURE() << url << " was opened";
  return {};
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(connection);
  sqlite3_close(connection);
}

class SqliteOpen : public testing::Test {
 protected:
  std::string path_to(const std::string& name) const { return folder_.file(name); }
  std::string url_of(const std::string& name) const { return "sqlite:" + path_to(name); }
  void make(const std::string& name) const {
    const auto done = migrate_store(url_of(name), {});
    ASSERT_TRUE(done) << done.error().to_string();
  }

  tests::TemporaryFolder folder_;
};

TEST_F(SqliteOpen, ASecondEngineOfTheSameProcessIsRefused) {
  const auto first = Engine::open(url_of("a.db"));
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = Engine::open(url_of("a.db"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(mentions(second.error(), path_to("a.db")));
  EXPECT_TRUE(mentions(second.error(), std::to_string(getpid())));
  const auto migrated = migrate(url_of("a.db"));
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, ErrorCode::unavailable);
}

// A process that holds a store until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& url) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    process_ = fork();
    if (process_ == 0) {
      const auto store = open_store(url, {});
      const char opened = store ? 'y' : 'n';
      if (write(ends[1], &opened, 1) == 1) pause();
      _exit(0);
    }
    close(ends[1]);
    holds_ = read(ends[0], &answer_, 1) == 1 && answer_ == 'y';
    close(ends[0]);
  }
  ~Holder() { end(); }

  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  pid_t process() const { return process_; }
  bool holds() const { return holds_; }

 private:
  pid_t process_{};
  char answer_{};
  bool holds_{false};
};

TEST_F(SqliteOpen, AnotherProcessIsNamedAndItsDeathFreesTheFile) {
  Holder holder(url_of("a.db"));
  ASSERT_TRUE(holder.holds());
  const auto error = refusal_of(url_of("a.db"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_TRUE(mentions(error, path_to("a.db")));
  EXPECT_TRUE(mentions(error, "process " + std::to_string(holder.process())));
  holder.end();
  EXPECT_TRUE(open_store(url_of("a.db"), {}));
}

// The lock is on the database itself, too.
TEST_F(SqliteOpen, WithoutTheFileBesideItIsStillHeld) {
  Holder holder(url_of("a.db"));
  ASSERT_TRUE(holder.holds());
  std::filesystem::remove(path_to("a.db.lock"));
  EXPECT_EQ(refusal_of(url_of("a.db")).code, ErrorCode::unavailable);
  std::filesystem::create_hard_link(path_to("a.db"), path_to("b.db"));
  EXPECT_EQ(refusal_of(url_of("b.db")).code, ErrorCode::unavailable) << "by another name";
}

// A second attempt in this process must not take SQLite's locks away, which belong to the process: somebody
// else could then remove the log that the first one writes.
TEST_F(SqliteOpen, ARefusalLeavesTheLocksOfTheHolderAlone) {
  auto engine = Engine::open(url_of("a.db"));
  ASSERT_TRUE(engine) << engine.error().to_string();
  std::filesystem::remove(path_to("a.db.lock"));
  ASSERT_FALSE(Engine::open(url_of("a.db")));
  std::filesystem::create_hard_link(path_to("a.db"), path_to("b.db"));
  ASSERT_FALSE(Engine::open(url_of("b.db")));
  ASSERT_TRUE(plan_migration(url_of("a.db")));
  // An exclusive opening is refused as long as another process has the database open.
  const auto shell =
      "sqlite3 " + path_to("a.db") + " 'pragma journal_mode=delete' 2>&1 | grep -q -e wal -e locked";
  EXPECT_EQ(std::system(shell.c_str()), 0);
  EXPECT_TRUE(engine->call(CreateExecution{.execution_kind = "k"}));
}

TEST_F(SqliteOpen, ALinkLeadsToTheDatabase) {
  std::filesystem::create_directory(path_to("real"));
  std::filesystem::create_symlink("real/a.db", path_to("link.db"));
  ExecutionId id;
  for (const auto* name : {"link.db", "real/a.db"}) {
    auto engine = Engine::open(url_of(name));
    ASSERT_TRUE(engine) << engine.error().to_string();
    if (name == std::string("link.db")) {
      id = engine->call(CreateExecution{.execution_kind = "k"})->execution_id;
      EXPECT_FALSE(Engine::open(url_of("real/a.db"))) << "it is the same database";
    }
    EXPECT_TRUE(engine->call(DescribeExecution{id}));
  }
  EXPECT_TRUE(std::filesystem::exists(path_to("real/a.db")));
  EXPECT_FALSE(std::filesystem::exists(path_to("link.db.lock"))) << "its neighbours are beside it";
}

TEST_F(SqliteOpen, LinksThatLeadNowhereAreRefused) {
  std::filesystem::create_symlink("b.db", path_to("a.db"));
  std::filesystem::create_symlink("a.db", path_to("b.db"));
  EXPECT_EQ(refusal_of(url_of("a.db")).code, ErrorCode::transport);
}

// After a clean end, one file holds everything.
TEST_F(SqliteOpen, AfterTheEndTheFileAloneHoldsEverything) {
  ExecutionId id;
  {
    auto engine = Engine::open(url_of("a.db"));
    ASSERT_TRUE(engine) << engine.error().to_string();
    id = engine->call(CreateExecution{.execution_kind = "k"})->execution_id;
  }
  std::filesystem::copy_file(path_to("a.db"), path_to("copy.db"));
  auto engine = Engine::open(url_of("copy.db"));
  ASSERT_TRUE(engine) << engine.error().to_string();
  EXPECT_TRUE(engine->call(DescribeExecution{id}));
}

TEST_F(SqliteOpen, AClosedStoreMayBeOpenedAgain) {
  make("a.db");
  EXPECT_TRUE(open_store(url_of("a.db"), {}));
  EXPECT_TRUE(open_store(url_of("a.db"), {}));
}

TEST_F(SqliteOpen, AMissingFolderIsNamed) {
  const auto error = refusal_of(url_of("no/such/folder/a.db"));
  EXPECT_EQ(error.code, ErrorCode::transport);
  EXPECT_TRUE(mentions(error, path_to("no/such/folder/a.db")));
  EXPECT_TRUE(mentions(error, "folder exists"));
}

TEST_F(SqliteOpen, AFolderIsNoDatabase) {
  std::filesystem::create_directory(path_to("a.db"));
  const auto error = refusal_of(url_of("a.db"));
  EXPECT_EQ(error.code, ErrorCode::transport);
  EXPECT_TRUE(mentions(error, path_to("a.db")));
}

// Permission bits do not bind root, a read-only file system does.
TEST_F(SqliteOpen, AReadOnlyFileSystemIsNamed) {
  const auto point = path_to("mounted");
  std::filesystem::create_directory(point);
  if (mount("tmpfs", point.c_str(), "tmpfs", 0, "size=8m") != 0) GTEST_SKIP() << "may not mount";
  make("mounted/a.db");
  EXPECT_EQ(mount("tmpfs", point.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const auto existing = refusal_of(url_of("mounted/a.db"));
  EXPECT_EQ(existing.code, ErrorCode::transport);
  EXPECT_TRUE(mentions(existing, path_to("mounted/a.db")));
  const auto fresh = refusal_of(url_of("mounted/b.db"));
  EXPECT_EQ(fresh.code, ErrorCode::transport);
  EXPECT_TRUE(mentions(fresh, path_to("mounted/b.db")));
  umount2(point.c_str(), MNT_DETACH);
}

TEST_F(SqliteOpen, AFileThatIsNoDatabaseIsRefusedAndLeftAlone) {
  for (const auto& garbage : {std::string(8192, 'g'), std::string("a short text")}) {
    std::ofstream(path_to("a.db"), std::ios::binary) << garbage;
    const auto error = refusal_of(url_of("a.db"));
    EXPECT_EQ(error.code, ErrorCode::corruption);
    EXPECT_TRUE(mentions(error, path_to("a.db")));
    EXPECT_EQ(content_of(path_to("a.db")), garbage);
  }
}

// If the disk failed while the database was made, the first page may have its length and nothing else.
TEST_F(SqliteOpen, AFirstPageThatNeverCameIsAsGoodAsNone) {
  const std::string zeros(4096, '\0');
  for (const std::size_t bytes : {std::size_t{1}, zeros.size()}) {
    const auto name = "unmade" + std::to_string(bytes) + ".db";
    std::ofstream(path_to(name)) << zeros.substr(0, bytes);
    make(name);
  }
  // A journal that holds nothing yet changes nothing.
  std::ofstream(path_to("begun.db")) << zeros;
  std::ofstream(path_to("begun.db-journal"));
  make("begun.db");
  // More than one page, or a log beside it, means that there was more.
  std::ofstream(path_to("long.db")) << zeros << zeros;
  EXPECT_TRUE(mentions(refusal_of(url_of("long.db")), "not a database"));
  for (const auto* suffix : {"-wal", "-redo1", "-redo2"}) {
    const auto name = std::string("logged") + suffix;
    std::ofstream(path_to(name)) << zeros;
    std::ofstream(path_to(name + suffix)) << "x";
    EXPECT_TRUE(mentions(refusal_of(url_of(name)), "not a database")) << suffix;
    EXPECT_EQ(content_of(path_to(name)), zeros);
  }
}

TEST_F(SqliteOpen, ADatabaseOfAnotherProgramIsRefused) {
  run_sql(path_to("a.db"), "create table letters(body text); insert into letters values('dear')");
  const auto error = refusal_of(url_of("a.db"));
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_TRUE(mentions(error, path_to("a.db")));
  EXPECT_TRUE(mentions(error, "another program"));
}

TEST_F(SqliteOpen, AnotherApplicationIdIsRefusedEvenWithoutTables) {
  run_sql(path_to("a.db"), "pragma application_id=1234; vacuum");
  EXPECT_EQ(refusal_of(url_of("a.db")).code, ErrorCode::invalid_input);
}

TEST_F(SqliteOpen, ARefusedDatabaseOfAnotherProgramIsLeftAlone) {
  run_sql(path_to("a.db"), "create table letters(body text); insert into letters values('dear')");
  const auto before = content_of(path_to("a.db"));
  refusal_of(url_of("a.db"));
  EXPECT_TRUE(content_of(path_to("a.db")) == before) << "the file of another program was changed";
}

TEST_F(SqliteOpen, ANewerSchemaIsRefused) {
  make("a.db");
  run_sql(path_to("a.db"), "pragma user_version=999");
  const auto error = refusal_of(url_of("a.db"));
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_TRUE(mentions(error, path_to("a.db")));
  EXPECT_TRUE(mentions(error, "999"));
  EXPECT_TRUE(mentions(error, "newer FlowFabric"));
}

TEST_F(SqliteOpen, OtherPartitionCountsAreRefused) {
  make("a.db");
  for (const auto& counts :
       {PartitionCounts{128, 32, 32}, PartitionCounts{256, 33, 32}, PartitionCounts{256, 32, 31}}) {
    const auto error = refusal_of(url_of("a.db"), {.partitions = counts, .now_ms = {}});
    EXPECT_EQ(error.code, ErrorCode::invalid_input);
    EXPECT_TRUE(mentions(error, path_to("a.db")));
    EXPECT_TRUE(mentions(error, "256/32/32"));
    EXPECT_TRUE(mentions(error, std::to_string(counts.flow) + "/" + std::to_string(counts.budget) + "/" +
                                    std::to_string(counts.quota)));
  }
  EXPECT_TRUE(open_store(url_of("a.db"), {}));
}

TEST_F(SqliteOpen, TheFirstPartitionCountsStay) {
  const StoreOptions few{.partitions = {8, 4, 2}, .now_ms = {}};
  EXPECT_TRUE(open_store(url_of("a.db"), few));
  EXPECT_TRUE(open_store(url_of("a.db"), few));
  EXPECT_EQ(refusal_of(url_of("a.db")).code, ErrorCode::invalid_input);
}

TEST_F(SqliteOpen, MigratingTwiceDoesNothingTheSecondTime) {
  const auto first = migrate_store(url_of("a.db"), {});
  const auto second = migrate_store(url_of("a.db"), {});
  EXPECT_EQ(first, path_to("a.db") +
                       ": applied 1 foundations, 2 executions, 3 flows, 4 suspension, 5 limits, 6 streams, 7 "
                       "waitpoint ids, 8 pauses, 9 keys by id, 10 redo log, 11 past redo logs, "
                       "12 leases by worker, 13 upkeep, 14 unused routes and groups");
  EXPECT_EQ(second, path_to("a.db") + ": schema is up to date");
}

TEST(StoreUrl, UnknownOptionsAreRefusedByName) {
  for (const std::string option :
       {"synchronous=off", "synchronous", "cache=shared", "=", "synchronous=full&x=1"}) {
    const auto error = refusal_of("sqlite:/tmp/never-made.db?" + option);
    EXPECT_EQ(error.code, ErrorCode::invalid_input) << option;
    EXPECT_FALSE(std::filesystem::exists("/tmp/never-made.db"));
  }
  const auto error = refusal_of("sqlite:/tmp/never-made.db?synchronous=off");
  EXPECT_TRUE(mentions(error, "synchronous=off"));
  EXPECT_EQ(refusal_of("memory:?load=eager").code, ErrorCode::invalid_input);
}

TEST(StoreUrl, WithoutASchemeOrPathItIsRefused) {
  EXPECT_TRUE(mentions(refusal_of("jobs.db"), "sqlite:PATH"));
  EXPECT_TRUE(mentions(refusal_of(""), "sqlite:PATH"));
  EXPECT_TRUE(mentions(refusal_of("mongodb:somewhere"), "mongodb:"));
  EXPECT_TRUE(mentions(refusal_of("sqlite:"), "sqlite:PATH"));
  EXPECT_TRUE(mentions(refusal_of("sqlite:?synchronous=full"), "sqlite:PATH"));
}

}  // namespace
}  // namespace flowfabric::store
