// Copies of a SQLite store, made while it is written to.
#include <atomic>
#include <fstream>

#include "flowfabric/backup.h"
#include "flowfabric/engine.h"
#include "store_sqlite_behind_fixture.h"

namespace flowfabric::store::sqlite {
namespace {

class Backup : public CommitBehind {
 protected:
  std::string url() const { return "sqlite:" + path_; }
  std::string copy() const { return folder_.file("copy.db"); }

  // The contents of the copy, which must be sound.
  static std::int64_t waiting_in(const std::string& file, const std::string& lane) {
    auto engine = Engine::open("sqlite:" + file, {});
    EXPECT_TRUE(engine) << engine.error().to_string();
    if (!engine) return -1;
    EXPECT_EQ(engine->call(CheckStore{})->found, 0u);
    return engine->call(CountLane{lane}).value()[PublicState::waiting];
  }
};

TEST_F(Backup, HoldsWhatIsNotInTheTablesYet) {
  ASSERT_TRUE(run(task("lane")));
  writer_->await_durable();
  hold();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(run(task("lane")));
  ASSERT_TRUE(are_told(31));
  ASSERT_EQ(stored(), 1);
  const auto done = backup(url(), copy());
  let_go();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_NE(done->find(copy()), std::string::npos) << *done;
  EXPECT_EQ(waiting_in(copy(), "lane"), 31);
}

TEST_F(Backup, IsOneFileThatOnlyItsOwnerReads) {
  ASSERT_TRUE(run(task("lane")));
  ASSERT_TRUE(backup(url(), copy()));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("copy")) names.push_back(name);
  }
  EXPECT_EQ(names, std::vector<std::string>{"copy.db"});
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(copy()).permissions(), perms::owner_read | perms::owner_write);
}

// Each copy has every operation that was acknowledged before it began, and the original continues.
TEST_F(Backup, OfAStoreUnderLoadMissesNothing) {
  writer_.reset();
  store_.reset();
  auto engine = Engine::open(url(), {});
  ASSERT_TRUE(engine) << engine.error().to_string();
  std::atomic<std::int64_t> acknowledged{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!is_over) {
        std::vector<std::future<Result<Creation>>> answers;
        for (int j = 0; j < 16; ++j)
          answers.push_back(engine->submit(CreateExecution{.lane_id = "lane", .execution_kind = "k"}));
        for (auto& answer : answers) acknowledged += answer.get() ? 1 : 0;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // every copy is looked through
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    const std::int64_t before = acknowledged;
    const auto file = folder_.file("copy" + std::to_string(i) + ".db");
    const auto done = backup(url(), file);
    EXPECT_TRUE(done) << done.error().to_string();
    EXPECT_GE(waiting_in(file, "lane"), before);
  }
  is_over = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(engine->call(CountLane{"lane"}).value()[PublicState::waiting], acknowledged);
}

// After SIGKILL, when no process has it open.
TEST_F(Backup, OfAStoreThatWasKilledHoldsEverything) {
  hold();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run(task("lane")));
  ASSERT_TRUE(are_told(5));
  const auto killed = folder_.file("killed.db");
  for (const char* suffix : {"", "-wal", "-redo1"})
    std::filesystem::copy_file(path_ + suffix, killed + suffix);
  let_go();
  ASSERT_TRUE(backup("sqlite:" + killed, copy()));
  EXPECT_EQ(waiting_in(copy(), "lane"), 5);
}

TEST_F(Backup, IsNotTheOriginal) {
  hold();
  ASSERT_TRUE(run(task("lane")));
  ASSERT_TRUE(are_told(1));
  ASSERT_TRUE(backup(url(), copy()));
  std::filesystem::copy_file(path_ + "-redo1", copy() + "-redo1");
  let_go();
  const auto refused = Engine::open("sqlite:" + copy(), {});
  ASSERT_FALSE(refused) << "the log of the original was run on the copy";
  EXPECT_EQ(refused.error().code, ErrorCode::corruption);
}

TEST_F(Backup, OverwritesNothing) {
  std::ofstream(copy()) << "precious";
  const auto refused = backup(url(), copy());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_input);
  EXPECT_NE(refused.error().to_string().find("not there yet"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(copy()), 8u);
}

TEST_F(Backup, OfOtherThingsIsRefusedAndLeavesNothing) {
  std::ofstream(folder_.file("text")) << std::string(5000, 't');
  for (const auto& store :
       {"sqlite:" + folder_.file("none.db"), "sqlite:" + folder_.file("text"), std::string("memory:"),
        std::string("postgres://u@h/d"), std::string("nonsense")}) {
    EXPECT_FALSE(backup(store, copy())) << store;
    EXPECT_FALSE(std::filesystem::exists(copy())) << store;
    EXPECT_FALSE(std::filesystem::exists(copy() + ".part")) << store;
  }
  EXPECT_FALSE(backup(url(), folder_.file("no/such/folder.db")));
}

}  // namespace
}  // namespace flowfabric::store::sqlite
