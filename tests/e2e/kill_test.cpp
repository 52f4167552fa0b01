// Kills a process under load, again and again on the same database, and looks for everything that it had
// acknowledged.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include "e2e/kill_checks.h"
#include "e2e/kill_child.h"
#include "flowfabric/engine.h"
#include "store/sqlite/database.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

constexpr int kRounds = 24;

// The child of one round, and what it said before it died.
class Victim {
 public:
  Victim(const std::string& database, int round) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      const auto pipe_text = std::to_string(ends[1]);
      const auto round_text = std::to_string(round);
      execl("/proc/self/exe", "ff_e2e_tests", kChildArgument, database.c_str(), pipe_text.c_str(),
            round_text.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    // The pipe holds little: it is read all the time, so that the child never waits for us.
    reader_ = std::thread([this, end = ends[0]] {
      std::string buffer(1 << 16, '\0');
      for (ssize_t got = 0; (got = read(end, buffer.data(), buffer.size())) > 0;) {
        said_.append(buffer, 0, static_cast<std::size_t>(got));
        speaking_ = true;
      }
      close(end);
    });
  }

  bool is_speaking() const { return speaking_; }

  // What it said, in whole lines.
  std::string kill() {
    ::kill(process_, SIGKILL);
    waitpid(process_, &status_, 0);
    reader_.join();
    return std::move(said_);
  }
  bool was_killed() const { return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL; }

 private:
  pid_t process_{};
  int status_{};
  std::thread reader_;
  std::string said_;
  std::atomic<bool> speaking_{false};
};

void read_lines(const std::string& said, Ledger& ledger) {
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const auto complaint = ledger.note(line);
    ASSERT_EQ(complaint, "");
  }
}

void check_everything(const std::string& database, const Ledger& ledger) {
  {
    auto store = store::open_store("sqlite:" + database, {});
    ASSERT_TRUE(store) << store.error().to_string();
    check_acknowledged(*(*store)->open_reader(), ledger);
    check_nothing_is_half_there(database);
  }
  check_store(database);
}

// A last process brings everything to its end.
void finish_all(const std::string& database) {
  auto engine = Engine::open("sqlite:" + database);
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::map<PublicState, std::int64_t> open;
  do {
    const auto tasks = engine->call(
        ClaimTasks{.worker_id = "last", .lanes = {"left", "right"}, .max_tasks = 256, .wait_ms = 200});
    ASSERT_TRUE(tasks) << tasks.error().to_string();
    std::vector<std::future<Result<Completed>>> answers;
    for (const auto& task : *tasks) {
      answers.push_back(engine->submit(
          CompleteExecution{.execution_id = task.execution_id, .fence = task.fence, .result = "at last"}));
    }
    for (auto& answer : answers) ASSERT_TRUE(answer.get());
    open.clear();
    for (const auto* lane : {"left", "right"}) {
      const auto counts = engine->call(CountLane{.lane_id = lane});
      ASSERT_TRUE(counts) << counts.error().to_string();
      for (const auto& [state, count] : *counts) {
        if (state != PublicState::completed && state != PublicState::failed) open[state] += count;
      }
    }
  } while (!open.empty() && std::chrono::steady_clock::now() < give_up);
  EXPECT_TRUE(open.empty()) << "some executions cannot be brought to an end";
}

TEST(Kill, NothingThatWasAcknowledgedIsEverLost) {
  const tests::TemporaryFolder folder;
  const auto database = folder.file("kill.db");
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  Ledger ledger;
  for (int round = 0; round < kRounds; ++round) {
    const auto before = ledger.lines;
    Victim victim(database, round);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!victim.is_speaking() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 280));
    const auto said = victim.kill();
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed));
    EXPECT_TRUE(victim.was_killed()) << said.substr(0, 500);
    ASSERT_NO_FATAL_FAILURE(read_lines(said, ledger));
    EXPECT_GT(ledger.lines, before) << "nothing was acknowledged";
    ASSERT_NO_FATAL_FAILURE(check_everything(database, ledger));
    if (HasFailure()) return;
  }
  ASSERT_NO_FATAL_FAILURE(finish_all(database));
  ASSERT_NO_FATAL_FAILURE(check_everything(database, ledger));
  store::sqlite::Connection connection(database, store::sqlite::Access::read_only,
                                       store::sqlite::Durability::full);
  EXPECT_EQ(connection.number("select count(*) from pragma_integrity_check where integrity_check='ok'"), 1);
  std::size_t marked = 0, replayed = 0;
  for (const auto& [id, said] : ledger.executions) {
    marked += said.marked ? 1 : 0;
    replayed += said.replays;
  }
  EXPECT_GT(marked, 0u);
  EXPECT_GT(replayed, 0u);
  std::printf("%d kills, %zu acknowledged operations on %zu executions, %lld MB\n", kRounds, ledger.lines,
              ledger.executions.size(), static_cast<long long>(std::filesystem::file_size(database) >> 20));
}

}  // namespace
}  // namespace flowfabric::e2e
