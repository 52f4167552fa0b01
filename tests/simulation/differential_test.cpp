// Random operations on several stores at once: whatever is asked, all must answer the same and hold the same.
//
// The deferred memory store runs operations in another order than they came in, because those that meet a
// record that is not loaded have to wait. It tells its order, and the others are given the same one: so it is
// shown that every batch is as if its operations had run one after another.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "simulation/callers.h"
#include "simulation/model.h"
#include "simulation/replica.h"
#include "support/temporary_folder.h"

namespace flowfabric::simulation {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::size_t kOperationsPerSeed = 6000;
constexpr std::size_t kBatchesBetweenLooks = 40;

// FF_SEED=<n> replays one seed.
std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const char* given = std::getenv("FF_SEED")) return {std::strtoull(given, nullptr, 10)};
  std::vector<std::uint64_t> all(count);
  std::random_device device;
  for (auto& seed : all) seed = device();
  return all;
}

struct Totals {
  std::size_t operations{0};
  std::size_t claimed{0};
  std::size_t put_off{0};
};

void report(const char* what, const std::vector<std::uint64_t>& used, const Totals& totals) {
  std::printf("%s: %zu operations, %zu tasks claimed, %zu put off too often; seeds", what, totals.operations,
              totals.claimed, totals.put_off);
  for (const auto seed : used) std::printf(" %llu", static_cast<unsigned long long>(seed));
  std::printf("\n");
}

void expect_same_answers(const std::vector<Step>& steps, const Ran& expected, const Ran& actual,
                         const std::string& who) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_TRUE(actual.answers[i]) << who << " did not run step " << i;
    EXPECT_EQ(*expected.answers[i] == *actual.answers[i], true)
        << who << ", step " << i << " (" << name_of(steps[i].request) << ")\n  expected "
        << to_text(*expected.answers[i]) << "\n  answered " << to_text(*actual.answers[i]);
  }
}

class World {
 public:
  explicit World(std::uint64_t seed)
      : callers(seed, now),
        memory("memory", "memory:", clock()),
        deferred("deferred", "memory:?load=deferred", clock()),
        sqlite("sqlite", "sqlite:" + folder.file("sim.db") + "?synchronous=normal", clock()) {}

  std::function<std::int64_t()> clock() {
    return [this] { return now; };
  }

  std::vector<Step> random_batch(std::size_t size) {
    std::vector<Step> steps;
    while (steps.size() < size) steps.push_back(callers.next());
    return steps;
  }

  std::vector<Step> everything_due(std::size_t limit) {
    std::vector<Step> steps;
    for (const auto& key : memory.due(limit)) steps.push_back(callers.step(RunDue{key}));
    return steps;
  }

  void learn(const std::vector<Step>& steps, const Ran& ran) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      callers.learn(steps[i], *ran.answers[i]);
      model.observe(steps[i], *ran.answers[i], now);
    }
  }

  void compare_states() {
    const auto& known = callers.known();
    const auto expected = memory.state(known);
    EXPECT_EQ(differences(expected, deferred.state(known)), "") << "memory and deferred";
    EXPECT_EQ(differences(expected, sqlite.state(known)), "") << "memory and sqlite";
    model.check(expected);
  }

  std::int64_t now{kStart};
  tests::TemporaryFolder folder;
  Callers callers;
  Model model;
  Replica memory;
  Replica deferred;
  Replica sqlite;
};

std::vector<Step> in_order(const std::vector<Step>& steps, const std::vector<std::size_t>& order) {
  std::vector<Step> sorted;
  for (const auto index : order) sorted.push_back(steps[index]);
  return sorted;
}

Ran in_order(const Ran& ran, const std::vector<std::size_t>& order) {
  Ran sorted;
  for (const auto index : order) sorted.answers.push_back(ran.answers[index]);
  return sorted;
}

void same_batches(std::uint64_t seed, Totals& totals) {
  World world(seed);
  for (std::size_t done = 0, batches = 1; done < kOperationsPerSeed; ++batches) {
    auto steps = world.callers.chance(15) ? world.everything_due(60) : std::vector<Step>{};
    if (steps.empty()) steps = world.random_batch(world.callers.batch_size());

    const auto deferred = world.deferred.run(steps);
    totals.put_off += steps.size() - deferred.order.size();
    steps = in_order(steps, deferred.order);
    const auto expected = in_order(deferred, deferred.order);
    const auto memory = world.memory.run(steps);
    expect_same_answers(steps, expected, memory, "memory");
    expect_same_answers(steps, expected, world.sqlite.run(steps), "sqlite");
    if (testing::Test::HasFailure()) return;

    world.learn(steps, memory);
    done += steps.size();
    totals.operations += steps.size();
    world.now += world.callers.pause();
    if (batches % kBatchesBetweenLooks == 0) world.compare_states();
    if (testing::Test::HasFailure()) return;
  }
  world.compare_states();
  totals.claimed += world.model.claimed();
}

TEST(Differential, EveryStoreAnswersAndHoldsTheSame) {
  const auto used = seeds(16);
  Totals totals;
  for (const auto seed : used) {
    SCOPED_TRACE("replay with FF_SEED=" + std::to_string(seed));
    ASSERT_NO_THROW(same_batches(seed, totals));
    if (HasFailure()) return;
  }
  report("same batches", used, totals);
  EXPECT_GT(totals.claimed, totals.operations / 20) << "the simulation hardly works on anything";
}

// The answers may not depend on how operations are grouped into batches.
Ran run_in_groups_of(std::size_t size, Replica& replica, const std::vector<Step>& steps) {
  Ran all;
  for (std::size_t start = 0; start < steps.size(); start += size) {
    const auto end = std::min(steps.size(), start + size);
    auto ran = replica.run({steps.begin() + static_cast<std::ptrdiff_t>(start),
                            steps.begin() + static_cast<std::ptrdiff_t>(end)});
    for (auto& answer : ran.answers) all.answers.push_back(std::move(answer));
  }
  return all;
}

void different_batches(std::uint64_t seed, Totals& totals) {
  World world(seed);
  for (std::size_t done = 0, batches = 1; done < kOperationsPerSeed; ++batches) {
    auto steps = world.callers.chance(15) ? world.everything_due(60) : std::vector<Step>{};
    if (steps.empty()) steps = world.random_batch(40);

    const auto expected = run_in_groups_of(steps.size(), world.memory, steps);
    const auto some = 1 + batches % 7;
    expect_same_answers(steps, expected, run_in_groups_of(1, world.deferred, steps), "deferred, one by one");
    expect_same_answers(steps, expected, run_in_groups_of(some, world.sqlite, steps), "sqlite, in groups");
    if (testing::Test::HasFailure()) return;

    world.learn(steps, expected);
    done += steps.size();
    totals.operations += steps.size();
    world.now += world.callers.pause();
    if (batches % kBatchesBetweenLooks == 0) world.compare_states();
    if (testing::Test::HasFailure()) return;
  }
  world.compare_states();
  totals.claimed += world.model.claimed();
}

TEST(Differential, AnswersDoNotDependOnHowBatchesAreCut) {
  const auto used = seeds(6);
  Totals totals;
  for (const auto seed : used) {
    SCOPED_TRACE("replay with FF_SEED=" + std::to_string(seed));
    ASSERT_NO_THROW(different_batches(seed, totals));
    if (HasFailure()) return;
  }
  report("different batches", used, totals);
}

}  // namespace
}  // namespace flowfabric::simulation
