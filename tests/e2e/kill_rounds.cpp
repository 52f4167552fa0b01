#include "e2e/kill_rounds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "e2e/child_process.h"
#include "e2e/kill_child.h"
#include "e2e/waiting.h"
#include "flowfabric/engine.h"

namespace flowfabric::e2e {

namespace {

void check_everything(const KilledOn& database, const Ledger& ledger) {
  check_acknowledged(database.url, ledger);
  check_nothing_is_half_there(database.number);
  check_store(database.url);
}

// A last process brings everything to its end.
void finish_all(const std::string& url) {
  auto engine = Engine::open(url);
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

void kill_once(const KilledOn& database, int round, std::mt19937& random, Ledger& ledger) {
  const auto before = ledger.lines;
  ChildProcess victim({kChildArgument, database.url, std::to_string(round)});
  wait_until([&] { return victim.is_speaking(); }, std::chrono::seconds(10), std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 280));
  victim.kill();
  const auto said = victim.take_lines();
  EXPECT_TRUE(victim.was_killed()) << said.substr(0, 500);
  note_lines(said, ledger);
  EXPECT_GT(ledger.lines, before) << "nothing was acknowledged";
}

void print_summary(const Ledger& ledger, int rounds) {
  std::size_t marked = 0, replayed = 0;
  for (const auto& [id, said] : ledger.executions) {
    marked += said.marked ? 1 : 0;
    replayed += said.replays;
  }
  EXPECT_GT(marked, 0u);
  EXPECT_GT(replayed, 0u);
  std::printf("%d kills, %zu acknowledged operations on %zu executions\n", rounds, ledger.lines,
              ledger.executions.size());
}

}  // namespace

void kill_again_and_again(const KilledOn& database, int rounds) {
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  Ledger ledger;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed));
    kill_once(database, round, random, ledger);
    database.settle();
    check_everything(database, ledger);
    if (testing::Test::HasFailure()) return;
  }
  ASSERT_NO_FATAL_FAILURE(finish_all(database.url));
  check_everything(database, ledger);
  print_summary(ledger, rounds);
}

}  // namespace flowfabric::e2e
