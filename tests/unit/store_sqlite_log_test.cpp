// The log that is written in large pieces holds what SQLite has announced, and nothing gets lost in between.
#include <gtest/gtest.h>

#include "store/sqlite/database.h"
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

}  // namespace
}  // namespace flowfabric::store::sqlite
