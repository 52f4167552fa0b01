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

// When SQLite has made a log it syncs the folder, and does not look at the answer; so we do it again.
bool is_sqlites_sync_of_folder(const std::string& place) {
  return place.starts_with("folder") && place.find("log_writer") != place.npos;
}
bool is_our_sync_of_folder(const std::string& place) {
  return place.starts_with("folder") && place.find("open_database") != place.npos &&
         !is_sqlites_sync_of_folder(place);
}

Found leave_out(const std::string& sites, Promise promise, unsigned seed) {
  const auto most = number_from("FF_DISK_SABOTAGE_STATES", 2000);
  Found found;
  Seen seen;
  std::mt19937 random(seed);
  for (unsigned i = 0; found.states < most && i < most / 10 && found.complaint.empty(); ++i) {
    Recording recording;
    run_rounds(recording, promise, seed + i, kRounds, seen, {.skipped_sites = sites});
    if (testing::Test::HasFatalFailure()) return found;
    if (recording.trace().count(EventKind::skipped) == 0) continue;
    const auto stored = stored_at_starts(recording.trace(), promise);
    auto cuts = choose_cuts(recording.trace(), kStatesOfTrace, random);
    std::ranges::shuffle(cuts, random);  // so that the number of states says how likely one is to be bad
    for (const auto& cut : cuts) {
      ++found.states;
      const auto tell = [&](const BadState& bad) {
        const auto& last = bad.complaints.front();
        found.complaint = last.substr(last.rfind('\n', last.size() - 2) + 1, 100);
        return false;
      };
      check_cuts(recording.trace(), promise, {cut}, tell, stored);
      if (!found.complaint.empty()) break;
    }
  }
  return found;
}

// The reason for a sync whose absence no test notices; empty if a test should notice it.
std::string excuse(const std::string& place) {
  if (is_sqlites_sync_of_folder(place)) return "Ours follows";
  const bool is_of_folder_or_journal = place.starts_with("folder") || place.starts_with("journal");
  if (is_of_folder_or_journal && place.find("sqlite3PagerCommitPhaseOne") != place.npos)
    return "The first page of a new database is there or all zeros, and then the database is made anew";
  if (place.starts_with("wal") && place.find("sqlite3WalFrames") != place.npos)
    return "The header of a log that starts over: the sync of the commit follows, or there is no old log "
           "behind it";
  return "";
}

void sabotage(Promise promise) {
  const auto seed = static_cast<unsigned>(number_from("FF_DISK_SEED", std::random_device{}()));
  const char* const only = std::getenv("FF_DISK_SITE");
  auto places = places_of_syncs(promise, seed);
  std::string sqlites_of_folder;
  std::vector<std::string> texts;
  for (const auto& [site, place] : places) texts.push_back(place.text);
  const auto described = describe_sites(texts);
  auto text = described.begin();
  for (auto& [site, place] : places) {
    place.text = *text++;
    if (is_sqlites_sync_of_folder(place.text)) sqlites_of_folder += " " + site;
  }
  std::printf("%-17s %6s %7s  place, and what was found\n", "site", "syncs", "states");
  for (const auto& [site, place] : places) {
    if (only != nullptr && site != only) continue;
    const auto found =
        leave_out(is_our_sync_of_folder(place.text) ? site + sqlites_of_folder : site, promise, seed);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    const bool is_found = !found.complaint.empty();
    const auto unfound = "NOT FOUND. " + excuse(place.text);
    std::printf("%-17s %6zu %6zu%s  %s\n%34s%s\n", site.c_str(), place.syncs, found.states,
                is_found ? " " : "!", place.text.c_str(), "",
                is_found ? found.complaint.c_str() : unfound.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(is_found || !excuse(place.text).empty()) << "nobody misses this sync: " << place.text;
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
