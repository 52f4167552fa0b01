// The log that is written in large pieces holds what SQLite has announced, and nothing gets lost in between.
#include <gtest/gtest.h>

#include <future>

#include "store/sqlite/database.h"
#include "store/sqlite/log_writer.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {
namespace {

class GatheredLog : public testing::Test {
 protected:
  Connection open() { return Connection(path_, Access::read_write); }
  // Not through our way of writing the log.
  std::int64_t seen_by_others(const std::string& sql) {
    Connection other(path_, Access::read_only);
    return other.number(sql);
  }

  const tests::TemporaryFolder folder_;
  const std::string path_{folder_.file("a.db")};
};

constexpr const char* kSum = "select sum(length(b)) from t";

TEST_F(GatheredLog, WhoeverReadsSeesEveryCommit) {
  auto connection = open();
  connection.run("create table t (a integer primary key, b blob)");
  std::int64_t sum = 0;
  for (int i = 1; i <= 60; ++i) {
    const int size = i * i * 300 % 400'000 + 1;  // some are far more than is written at once
    connection.run("insert into t (b) values (zeroblob(" + std::to_string(size) + "))");
    sum += size;
    ASSERT_EQ(seen_by_others(kSum), sum) << i;
    if (i % 20 != 0) continue;
    ASSERT_TRUE(connection.checkpoint(Connection::Checkpoint::restart)) << "and the log starts over";
  }
}

TEST_F(GatheredLog, ATransactionLargerThanMemoryReadsWhatItHasWritten) {
  auto connection = open();
  connection.run("create table t (a integer primary key, b blob)");
  connection.run("create index by_b on t (b)");
  connection.run("pragma cache_size=10");
  connection.run("begin");
  for (int i = 0; i < 2000; ++i) connection.run("insert into t (b) values (randomblob(500))");
  EXPECT_EQ(connection.number("select count(*) from t"), 2000);
  EXPECT_EQ(connection.number("select count(*) from t not indexed where b in (select b from t)"), 2000);
  EXPECT_EQ(seen_by_others("select count(*) from t"), 0);
  connection.run("rollback");
  EXPECT_EQ(connection.number("select count(*) from t"), 0);
  connection.run("begin");
  for (int i = 0; i < 2000; ++i) connection.run("insert into t (b) values (randomblob(500))");
  connection.run("update t set b=randomblob(600) where a%2=0");
  connection.run("commit");
  EXPECT_EQ(seen_by_others(kSum), 1'100'000);
  EXPECT_EQ(seen_by_others("select integrity_check='ok' from pragma_integrity_check"), 1);
}

TEST_F(GatheredLog, ACopyOfTheFilesHoldsWhatWasCommitted) {
  auto connection = open();
  connection.run("create table t (a integer primary key, b blob)");
  for (int i = 0; i < 50; ++i) connection.run("insert into t (b) values (randomblob(3000))");
  // As after a crash: without the shared memory, and without anybody having closed the log.
  for (const std::string end : {"", "-wal"}) {
    std::filesystem::copy_file(path_ + end, folder_.file("copy.db") + end);
  }
  Connection copy(folder_.file("copy.db"), Access::read_write);
  EXPECT_EQ(copy.number(kSum), 150'000);
}

// It would rest on pages that are lost, although its own are on disk.
TEST_F(GatheredLog, NoCommitSucceedsBesideASyncThatFails) {
  using namespace std::chrono_literals;
  LogSyncs syncs;
  auto connection = open();
  connection.run("create table t (a integer primary key)");
  connection.share_log_syncs(syncs);
  connection.sync_commits(true);
  connection.run("insert into t values (1)");
  std::promise<void> has_begun;
  std::promise<void> may_fail;
  const auto other = std::async(std::launch::async, [&] {
    return syncs.run([&] {
      has_begun.set_value();
      may_fail.get_future().wait();
      return SQLITE_IOERR_FSYNC;
    });
  });
  has_begun.get_future().wait();
  auto commit = std::async(std::launch::async, [&] { connection.run("insert into t values (2)"); });
  EXPECT_EQ(commit.wait_for(50ms), std::future_status::timeout) << "it does not wait for the other sync";
  may_fail.set_value();
  other.wait();
  try {
    commit.get();
    FAIL() << "it says that it is on disk";
  } catch (const StoreFailure& failure) {
    EXPECT_EQ(failure.retry, Retry::after_restart);
  }
}

}  // namespace
}  // namespace flowfabric::store::sqlite
