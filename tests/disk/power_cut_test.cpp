// The power fails at any moment. Whatever state the disk is in then, no answered operation is lost.
// FF_DISK_STATES: how many states. FF_DISK_SEED: of the load and the cuts (threads are not repeated by it; a
// state is, by FF_DISK_REPEAT). FF_DISK_KEEP: a folder for the traces of bad states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "disk/cuts.h"
#include "disk/numbers.h"
#include "disk/rounds.h"

namespace flowfabric::disk {
namespace {

constexpr std::size_t kStatesOfTrace = 40;
constexpr int kRounds = 4;
constexpr std::size_t kMostReported = 5;

class PowerCuts {
 public:
  explicit PowerCuts(Promise promise) : promise_(promise) {}

  void run() {
    for (unsigned i = 0; goes_on(); ++i) {
      where_from_ = "seed " + std::to_string(seed_) + ", trace " + std::to_string(i);
      SCOPED_TRACE(where_from_);
      std::mt19937 random(seed_ + i);
      // The recovery from a power cut is itself cut again. (What may be lost may be told twice: that is for
      // `full` only.)
      const bool is_cut_twice = promise_ == Promise::full && i % 2 == 1;
      ASSERT_NO_FATAL_FAILURE(is_cut_twice ? cut_twice(seed_ + i, random) : cut_once(seed_ + i, random));
    }
    std::printf("%zu states, %zu of them bad: %s\n", checked_, bad_states_, seen_.to_string().c_str());
    if (bad_states_ == 0) expect_all_seen();
  }

 private:
  bool goes_on() const { return checked_ < wanted_ && bad_states_ < kMostReported; }

  void cut_once(unsigned seed, std::mt19937& random) {
    Recording recording;
    ASSERT_NO_FATAL_FAILURE(run_rounds(recording, promise_, seed, kRounds, seen_));
    check(recording.trace(), choose_cuts(recording.trace(), kStatesOfTrace, random),
          stored_at_starts(recording.trace(), promise_));
  }

  void cut_twice(unsigned seed, std::mt19937& random) {
    Recording first;
    ASSERT_NO_FATAL_FAILURE(run_rounds(first, promise_, seed, kRounds / 2, seen_));
    const auto cuts = choose_cuts(first.trace(), 1, random, first.trace().events().size() / 2);
    if (!check(first.trace(), cuts)) return;
    const auto second = after_cut(first.trace(), cuts.front());
    ASSERT_NO_FATAL_FAILURE(run_rounds(*second, promise_, seed + 500'000, kRounds / 2, seen_));
    const auto& events = second->trace().events();
    const auto start = std::ranges::find(events, EventKind::start, &Event::kind) - events.begin();
    check(second->trace(),
          choose_cuts(second->trace(), kStatesOfTrace - 1, random, static_cast<std::size_t>(start) + 1));
  }

  bool check(const Trace& trace, const std::vector<Cut>& cuts, const Stored& stored = {}) {
    const auto before = bad_states_;
    const auto tell = [&](const BadState& bad) {
      report(trace, promise_, bad, where_from_);
      return ++bad_states_ < kMostReported;
    };
    checked_ += check_cuts(trace, promise_, cuts, tell, stored);
    return bad_states_ == before;
  }

  void expect_all_seen() const {
    EXPECT_GT(seen_.kills, 0u);
    EXPECT_GT(seen_.orderly_ends, 0u);
    EXPECT_GT(seen_.redo_turns, 10u);
    EXPECT_GT(seen_.wal_starts, 10u);
    EXPECT_GT(seen_.checkpoints, 5u);
    EXPECT_GT(seen_.shown, 100u);
  }

  const Promise promise_;
  const std::size_t wanted_{number_from("FF_DISK_STATES", 160)};
  const unsigned seed_{static_cast<unsigned>(number_from("FF_DISK_SEED", std::random_device{}()))};
  std::string where_from_;
  Seen seen_;
  std::size_t checked_{0};
  std::size_t bad_states_{0};
};

TEST(PowerCut, Full) {
  PowerCuts(Promise::full).run();
}

TEST(PowerCut, Normal) {
  PowerCuts(Promise::normal).run();
}

// A state that was bad, again: FF_DISK_REPEAT as a failed test has printed it.
TEST(Repeat, State) {
  const char* const what = std::getenv("FF_DISK_REPEAT");
  if (what == nullptr) GTEST_SKIP() << "FF_DISK_REPEAT names no state";
  std::istringstream words(what);
  std::string promise, file;
  Cut cut{};
  int strategy{};
  words >> promise >> file >> cut.event >> strategy >> cut.choice.seed;
  cut.choice.strategy = static_cast<Strategy>(strategy);
  const auto trace = Trace::open(file);
  for (auto i = cut.event - std::min<std::size_t>(cut.event, 30);
       i < std::min(cut.event, trace.events().size()); ++i)
    std::printf("%zu %s\n", i, text_of(trace.events()[i]).c_str());
  const auto kind = promise == "full" ? Promise::full : Promise::normal;
  const auto tell = [](const BadState& bad) {
    for (const auto& complaint : bad.complaints) ADD_FAILURE() << complaint;
    return true;
  };
  check_cuts(trace, kind, {cut}, tell, stored_at_starts(trace, kind));
}

}  // namespace
}  // namespace flowfabric::disk
