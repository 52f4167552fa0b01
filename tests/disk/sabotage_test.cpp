// Are the tests any good? Each place that syncs is left out in turn, and a power cut must tell. What nothing
// tells is a sync that is not needed, or a fault that these tests would not find. FF_DISK_SABOTAGE_STATES:
// after how many states a place counts as not found. FF_DISK_SITE: only this place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "disk/cuts.h"
#include "disk/numbers.h"
#include "disk/rounds.h"
#include "disk/source_lines.h"
#include "disk/trouble.h"

namespace flowfabric::disk {
namespace {

constexpr std::size_t kStatesOfTrace = 40;
constexpr int kRounds = 3;
constexpr unsigned kTracesLookedAt = 6;

// Why a sync that nobody misses is made all the same; empty: it should be missed.
std::string excuse(const std::string& place) {
  if (place.find("sqlite3") != place.npos)
    return "SQLite's own: needed in cases that are rarer than that, or made twice";
  if (place.starts_with("folder") && place.find("open_database") != place.npos)
    return "SQLite syncs the folder at about the same time, but does not look at the answer";
  return "";
}

struct Place {
  std::string text;
  std::size_t syncs{0};
};

std::map<std::string, Place> places_of_syncs(Promise promise, unsigned seed) {
  std::map<std::string, Place> places;
  Seen seen;
  for (unsigned i = 0; i < kTracesLookedAt; ++i) {
    Recording recording;
    run_rounds(recording, promise, seed + i, kRounds, seen);
    for (const auto& event : recording.trace().events()) {
      if (event.kind == EventKind::site) places[site_text(event.extra)].text = event.text;
      if (event.kind == EventKind::sync_begin) ++places[site_text(event.extra)].syncs;
    }
  }
  return places;
}

struct Found {
  std::size_t states{0};
  std::string complaint;  // empty: not found
};

Found leave_out(const std::string& site, Promise promise, unsigned seed) {
  const auto most = number_from("FF_DISK_SABOTAGE_STATES", 2000);
  Found found;
  Seen seen;
  std::mt19937 random(seed);
  for (unsigned i = 0; found.states < most && i < most / 10 && found.complaint.empty(); ++i) {
    Recording recording;
    run_rounds(recording, promise, seed + i, kRounds, seen, {.skipped_site = site});
    if (testing::Test::HasFatalFailure()) return found;
    if (recording.trace().count(EventKind::skipped) == 0) continue;
    auto cuts = choose_cuts(recording.trace(), kStatesOfTrace, random);
    std::ranges::shuffle(cuts, random);  // so that the number of states says how likely one is to be bad
    for (const auto& cut : cuts) {
      ++found.states;
      check_cuts(recording.trace(), promise, {cut}, [&](const BadState& bad) {
        const auto& last = bad.complaints.front();
        found.complaint = last.substr(last.rfind('\n', last.size() - 2) + 1, 100);
        return false;
      });
      if (!found.complaint.empty()) break;
    }
  }
  return found;
}

void sabotage(Promise promise) {
  const auto seed = static_cast<unsigned>(number_from("FF_DISK_SEED", std::random_device{}()));
  const char* const only = std::getenv("FF_DISK_SITE");
  std::printf("%-17s %6s %7s  place, and what was found\n", "site", "syncs", "states");
  for (const auto& [site, place] : places_of_syncs(promise, seed)) {
    if (only != nullptr && site != only) continue;
    const auto found = leave_out(site, promise, seed);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    const bool is_found = !found.complaint.empty();
    const auto described = describe_site(place.text);
    const auto unfound = "NOT FOUND. " + excuse(described);
    std::printf("%-17s %6zu %6zu%s  %s\n%34s%s\n", site.c_str(), place.syncs, found.states,
                is_found ? " " : "!", described.c_str(), "",
                is_found ? found.complaint.c_str() : unfound.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(is_found || !excuse(described).empty()) << "nobody misses this sync: " << described;
  }
}

TEST(Sabotage, Full) {
  sabotage(Promise::full);
}

TEST(Sabotage, Normal) {
  sabotage(Promise::normal);
}

}  // namespace
}  // namespace flowfabric::disk
