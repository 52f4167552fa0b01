#include "disk/rounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "disk/load_child.h"
#include "e2e/waiting.h"

namespace flowfabric::disk {

void Seen::add(const Trace& trace) {
  std::map<std::uint32_t, std::string> kinds;
  std::string last_kind;
  for (const auto& event : trace.events()) {
    if (event.kind == EventKind::create) kinds[event.file] = kind_of_file(event.text, false);
    if (event.kind == EventKind::mark) {
      shown += event.text.starts_with('V') ? 1 : 0;
      acknowledged += event.text.find_first_of("CMTDFR") == 0 ? 1 : 0;
    }
    if (event.kind != EventKind::write) continue;
    const auto& kind = kinds[event.file];
    if (event.offset == 0 && kind == "redo") ++redo_turns;
    if (event.offset == 0 && kind == "wal") ++wal_starts;
    if (kind == "db" && last_kind != "db") ++checkpoints;
    last_kind = kind;
  }
}

std::string Seen::to_string() const {
  return fmt::format(
      "{} kills, {} orderly ends, {} turns of the redo log, {} starts of the WAL, {} checkpoints, {} "
      "answers, "
      "{} shown",
      kills, orderly_ends, redo_turns, wal_starts, checkpoints, acknowledged, shown);
}

namespace {

void run_round(Recording& recording, Promise promise, const Plan& plan, std::mt19937& random, Seen& seen,
               const Settings& settings) {
  using std::chrono::milliseconds;
  const auto child =
      recording.start({kLoadArgument, url_of(recording.folder(), promise), plan.to_string()}, settings);
  const bool is_killed_early = plan.round > 0 && random() % 6 == 0;
  if (is_killed_early) {
    std::this_thread::sleep_for(milliseconds(random() % 25));  // while it opens, most likely
  } else {
    e2e::wait_until([&] { return child->is_speaking(); }, milliseconds(20'000), milliseconds(1));
    if (plan.pauses)
      e2e::wait_until([&] { return recording.trace().has_mark('P'); }, milliseconds(10'000), milliseconds(1));
    else
      std::this_thread::sleep_for(milliseconds(30 + random() % 220));
  }
  if (is_killed_early || random() % 4 < (plan.pauses ? 3u : 2u)) {
    child->kill();
    ASSERT_TRUE(child->was_killed()) << child->take_lines();
    ++seen.kills;
  } else {
    child->terminate();
    ASSERT_TRUE(child->ended_well()) << child->take_lines();
    ++seen.orderly_ends;
  }
  recording.settle();
}

}  // namespace

void run_rounds(Recording& recording, Promise promise, unsigned seed, int rounds, Seen& seen,
                const Settings& settings) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(run_round(
        recording, promise, {.seed = seed, .round = round, .pauses = seed % 2 == 1}, random, seen, settings));
  }
  for (const auto& event : recording.trace().events()) {
    ASSERT_FALSE(event.kind == EventKind::mark && event.text.find_first_of("XS!") == 0) << event.text;
  }
  seen.add(recording.trace());
}

std::unique_ptr<Recording> after_cut(const Trace& before, const Cut& cut) {
  auto recording = std::make_unique<Recording>();
  Disk disk(before);
  disk.advance_to(cut.event);
  write_files(disk.state(cut.choice), recording->folder());
  for (std::size_t i = 0; i < cut.event; ++i) {
    if (before.events()[i].kind == EventKind::mark) recording->trace().add_mark(before.events()[i].text);
  }
  return recording;
}

}  // namespace flowfabric::disk
