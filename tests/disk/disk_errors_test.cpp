// The disk fails: no answered operation is lost, no refused one appears, and an engine that cannot know the
// contents of its disk says so and stops. FF_DISK_ALL=1: at every call, not only at some; FF_DISK_PARTS=4
// with FF_DISK_PART=0 to 3 in four processes that run beside each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <random>

#include "disk/numbers.h"
#include "disk/trouble.h"

namespace flowfabric::disk {
namespace {

class DiskErrors : public testing::Test {
 protected:
  // Adds one at each of some numbers from 1 to `calls`: at all, or spread.
  void spread(Failing failing, std::uint64_t calls, std::uint64_t most, bool is_restart) {
    const auto count = is_long() ? calls : std::min(calls, most);
    for (std::uint64_t i = 0; i < count; ++i) {
      failing.first = count == calls
                          ? i + 1
                          : 1 + (calls - 1) * i / (count - 1) + (i > 0 && i + 1 < count ? random_() % 2 : 0);
      add(failing, is_restart);
    }
  }
  void add(const Failing& failing, bool is_restart) {
    if (added_++ % number_from("FF_DISK_PARTS", 1) != number_from("FF_DISK_PART", 0)) return;
    experiments_.push_back({failing, is_restart, static_cast<unsigned>(random_()), is_long() ? 4u : 2u});
  }
  static bool is_long() { return number_from("FF_DISK_ALL", 0) == 1; }

  void run_all() {
    std::size_t met = 0, states = 0, with_broken_rules = 0, with_bad_states = 0;
    std::map<std::string, std::vector<std::string>> rules;  // broken after what
    for (const auto& experiment : experiments_) {
      const auto outcome = run(experiment);
      ASSERT_FALSE(HasFatalFailure());
      met += outcome.was_met ? 1 : 0;
      states += outcome.states;
      for (const auto& rule : outcome.broken_rules)
        rules[rule].push_back(text_of(experiment, outcome) + outcome.trace);
      with_broken_rules += outcome.broken_rules.empty() ? 0 : 1;
      with_bad_states += outcome.bad_states.empty() ? 0 : 1;
      if (!outcome.bad_states.empty() && with_bad_states <= 3) tell(experiment, outcome);
    }
    for (const auto& [rule, after] : rules) {
      ADD_FAILURE() << after.size() << " times: " << rule << ". First after: " << after.front()
                    << "; last after: " << after.back();
    }
    EXPECT_EQ(with_bad_states, 0u);
    EXPECT_GT(met * 2, experiments_.size()) << "most errors were never met";
    std::printf("%zu errors, %zu met, %zu states; rules broken after %zu, bad states after %zu\n",
                experiments_.size(), met, states, with_broken_rules, with_bad_states);
  }

  // A run without errors, in which everything has happened that long logs need.
  static Probe look_around(bool is_restart) {
    Probe found;
    bool has_all = false;
    for (int i = 0; i < 20 && !has_all; ++i) {
      found = probe(is_restart, 1);
      has_all = found.seen.redo_turns >= 2 && found.seen.wal_starts >= 2 && found.seen.checkpoints >= 2;
    }
    EXPECT_TRUE(has_all) << found.seen.to_string();
    return found;
  }

  // In `./test` each place that syncs fails once; in the long run every single sync.
  void fail_syncs(const std::string& how) {
    std::map<std::string, std::vector<std::pair<bool, std::uint64_t>>>
        places;  // and how often they sync, and when
    for (const bool is_restart : {false, true}) {
      const auto seen = look_around(is_restart);
      if (is_long()) spread({.call = "sync", .reason = EIO, .how = how}, seen.calls[1], 0, is_restart);
      spread({.call = "sync", .count = kForEver, .reason = EIO, .how = how}, seen.calls[1], 3, is_restart);
      for (const auto& [site, count] : seen.syncs_of_site) places[site].emplace_back(is_restart, count);
    }
    for (const auto& [site, runs] : places) {
      const auto& [is_restart, count] = runs[random_() % runs.size()];
      add({.call = site,
           .first = 1 + random_() % std::max<std::uint64_t>(count / 2, 1),
           .reason = EIO,
           .how = how},
          is_restart);
    }
    run_all();
  }

  std::mt19937 random_{static_cast<unsigned>(number_from("FF_DISK_SEED", std::random_device{}()))};

 private:
  static std::string text_of(const Experiment& experiment, const Outcome& outcome) {
    const auto& failing = experiment.failing;
    const auto times = failing.count == kForEver ? "for ever" : std::to_string(failing.count) + " times";
    return fmt::format("{} ({} {}, {}, {}, {}{})", outcome.what, failing.call, failing.first, times,
                       failing.reason == EIO ? "EIO" : "ENOSPC", failing.how,
                       experiment.is_restart ? ", after a kill" : "");
  }
  static void tell(const Experiment& experiment, const Outcome& outcome) {
    ADD_FAILURE() << text_of(experiment, outcome) << ": " << outcome.bad_states.size() << " bad of "
                  << outcome.states << " states, such as\n"
                  << outcome.bad_states.front();
  }

  std::vector<Experiment> experiments_;
  std::size_t added_{0};
};

TEST_F(DiskErrors, SyncsAndTheCacheKeepsWhatIsNotOnDisk) {
  fail_syncs("keep");
}

TEST_F(DiskErrors, SyncsAndTheCacheIsDropped) {
  fail_syncs("drop");
}

// Behaves as if each descriptor had its own errors and reported them late.
TEST_F(DiskErrors, SyncsAndOnlyOneIsTold) {
  fail_syncs("alone");
}

TEST_F(DiskErrors, Writes) {
  for (const bool is_restart : {false, true}) {
    const auto seen = look_around(is_restart);
    spread({.call = "write", .count = 2, .reason = EIO}, seen.calls[0], 6, is_restart);
  }
  run_all();
}

TEST_F(DiskErrors, WritesOnAFullDisk) {
  for (const bool is_restart : {false, true}) {
    const auto seen = look_around(is_restart);
    spread({.call = "write", .count = 3, .reason = ENOSPC}, seen.calls[0], 4, is_restart);
    spread({.call = "write", .count = 3, .reason = ENOSPC, .how = "half"}, seen.calls[0], 4, is_restart);
    spread({.call = "write", .count = kForEver, .reason = ENOSPC}, seen.calls[0], 3, is_restart);
  }
  run_all();
}

TEST_F(DiskErrors, EverythingElse) {
  for (const bool is_restart : {false, true}) {
    const auto seen = look_around(is_restart);
    for (const int reason : {EIO, ENOSPC}) {
      if (!is_long() && is_restart != (reason == EIO)) continue;
      for (const auto call : {Call::truncate, Call::create, Call::unlink}) {
        const auto number = static_cast<std::size_t>(call);
        spread({.call = kCallNames[number], .reason = reason}, seen.calls[number], 5, is_restart);
      }
    }
  }
  run_all();
}

}  // namespace
}  // namespace flowfabric::disk
