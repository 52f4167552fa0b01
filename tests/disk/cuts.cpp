#include "disk/cuts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>

namespace flowfabric::disk {

namespace {

// From an event on, and up to another one, before which a cut still makes a difference.
struct Window {
  std::size_t begin;
  std::size_t end;
};

// The events of a kind, behind which a cut is worth more than anywhere else.
struct Places {
  std::vector<std::size_t> answers;
  std::map<std::string, std::vector<std::size_t>>
      syncs;  // by kind of file: the few of one are as good as the many
  std::vector<std::size_t> names;
  std::vector<std::size_t> starts;
  std::vector<std::size_t> names_at_start;  // changed during recovery
  std::vector<Window> skipped;              // where a sync was left out, up to the next one of the file
  std::vector<std::size_t> stakes;          // something may depend on data that was not synced
};

constexpr std::array kByFile{Strategy::nothing, Strategy::names_only, Strategy::by_file, Strategy::by_kind};

// A sync that was left out is made up for by the next one of the same file.
std::vector<Window> windows_of_skipped(const Trace& trace) {
  const auto& events = trace.events();
  std::map<std::uint64_t, std::size_t> begun;          // events by their positions
  std::map<std::uint32_t, std::vector<Window>> syncs;  // by file, in the order in which they ended
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == EventKind::sync_begin) begun[events[i].position] = i;
    if (events[i].kind == EventKind::sync_end) syncs[events[i].file].push_back({begun[events[i].extra], i});
  }
  std::vector<Window> windows;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind != EventKind::skipped) continue;
    const auto& later = syncs[events[i].file];
    const auto next = std::ranges::find_if(later, [&](const Window& sync) { return sync.begin > i; });
    windows.push_back({i, next == later.end() ? events.size() : next->end});
  }
  return windows;
}

Places places_of(const Trace& trace) {
  Places places;
  places.skipped = windows_of_skipped(trace);
  bool is_starting = false;
  std::map<std::uint32_t, std::string> kinds{{0, "folder"}};
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const auto& event = trace.events()[i];
    if (event.kind == EventKind::create) kinds[event.file] = kind_of_file(event.text, false);
    switch (event.kind) {
      case EventKind::mark:
        is_starting = false;
        if (event.text.find_first_of("CMTDFV") == 0) {
          places.answers.push_back(i + 1);
          places.stakes.push_back(i + 1);
        }
        break;
      case EventKind::sync_end:
      case EventKind::sync_failed:
        places.syncs[kinds[event.file]].push_back(i);
        places.stakes.push_back(i + 1);
        break;
      case EventKind::create:
      case EventKind::unlink:
      case EventKind::rename:
      case EventKind::make_folder:
      case EventKind::remove_folder:
      case EventKind::truncate:
        (is_starting ? places.names_at_start : places.names).push_back(i + 1);
        places.stakes.push_back(i + 1);
        break;
      case EventKind::start:
        places.starts.push_back(i);
        is_starting = i > 0;  // there is something to take over
        break;
      default:
        break;
    }
  }
  return places;
}

std::size_t choose_event(const Places& places, std::size_t events, std::mt19937& random) {
  const auto one_of = [&](const std::vector<std::size_t>& some) {
    return some.empty() ? random() % (events + 1) : some[random() % some.size()];
  };
  if (!places.skipped.empty() && random() % 4 != 0) {
    const auto& window = places.skipped[random() % places.skipped.size()];
    const auto first = std::ranges::lower_bound(places.stakes, window.begin + 1);
    const auto count = std::ranges::upper_bound(places.stakes, window.end) - first;
    if (count > 0 && random() % 2 == 0) return first[static_cast<std::ptrdiff_t>(random()) % count];
    const auto length = window.end - window.begin;
    return window.begin + 1 + random() % (random() % 2 == 0 ? std::min<std::size_t>(length, 10) : length);
  }
  switch (random() % 8) {
    case 0:
      return random() % (events + 1);
    case 1:
      if (places.syncs.empty()) return random() % (events + 1);
      return one_of(
          std::next(places.syncs.begin(), static_cast<std::ptrdiff_t>(random() % places.syncs.size()))
              ->second);
    case 3:
    case 5:
      return std::min<std::size_t>(one_of(places.names_at_start) + (random() % 2 == 0 ? 0 : random() % 4),
                                   events);
    case 4:
      return std::min<std::size_t>(one_of(places.starts) + random() % 400, events);
    case 2:
      return std::min<std::size_t>(one_of(places.names) + random() % 12, events);
    default:
      return one_of(places.answers);
  }
}

}  // namespace

std::vector<Cut> choose_cuts(const Trace& trace, std::size_t count, std::mt19937& random, std::size_t from) {
  const auto places = places_of(trace);
  std::vector<Cut> cuts;
  while (cuts.size() < count) {
    const auto events = trace.events().size();
    auto event = choose_event(places, events, random);
    for (int i = 0; i < 20 && event < from; ++i) event = choose_event(places, events, random);
    if (event < from) event = from + random() % (events - from + 1);
    auto strategy = static_cast<Strategy>(random() % kStrategies);
    // Where a process takes over, what counts is which of the files before it are whole.
    const bool is_at_start = std::ranges::binary_search(places.names_at_start, event);
    if (is_at_start && random() % 4 != 0) strategy = kByFile[random() % kByFile.size()];
    cuts.push_back({event, {strategy, static_cast<unsigned>(random())}});
  }
  std::ranges::sort(cuts, {}, &Cut::event);
  return cuts;
}

Stored stored_at_starts(const Trace& trace, Promise promise) {
  Stored stored;
  if (promise == Promise::full) return stored;  // every answered operation must be there
  Disk disk(trace);
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::start) continue;
    disk.advance_to(i);
    const tests::TemporaryFolder folder;
    write_files(disk.state({Strategy::nothing, 0}), folder.path());
    stored[i] = executions_in(folder.path(), promise);
  }
  return stored;
}

std::size_t check_cuts(const Trace& trace, Promise promise, const std::vector<Cut>& cuts,
                       const std::function<bool(const BadState&)>& told, const Stored& stored) {
  Disk disk(trace);
  Witness witness(trace);
  std::size_t checked = 0;
  for (const auto& cut : cuts) {
    const auto later = stored.upper_bound(cut.event);
    if (later != stored.begin()) witness.must_have(std::prev(later)->second);
    disk.advance_to(cut.event);
    witness.advance_to(cut.event);
    const tests::TemporaryFolder folder;
    write_files(disk.state(cut.choice), folder.path());
    auto complaints = check_state(folder.path(), promise, witness);
    ++checked;
    if (!complaints.empty() && !told({cut, std::move(complaints)})) break;
  }
  return checked;
}

std::string keep(const Trace& trace, Promise promise, const BadState& bad) {
  static int kept = 0;
  const char* const asked = std::getenv("FF_DISK_KEEP");
  const auto folder = asked ? std::filesystem::path(asked) : std::filesystem::path("disk-failures");
  const std::string word = promise == Promise::full ? "full" : "normal";
  std::filesystem::create_directories(folder);
  const auto name = word + "-" + std::to_string(getpid()) + "-" + std::to_string(++kept) + ".trace";
  const auto file = std::filesystem::absolute(folder / name).string();
  trace.copy_to(file);
  const auto& choice = bad.cut.choice;
  return "\nAgain: FF_DISK_REPEAT='" + word + " " + file + " " + std::to_string(bad.cut.event) + " " +
         std::to_string(static_cast<int>(choice.strategy)) + " " + std::to_string(choice.seed) +
         "' ff_disk_tests --gtest_filter=Repeat.*";
}

void report(const Trace& trace, Promise promise, const BadState& bad, const std::string& where_from) {
  std::string complaints;
  for (std::size_t i = 0; i < bad.complaints.size() && i < 3; ++i) complaints += "\n  " + bad.complaints[i];
  ADD_FAILURE() << where_from << ": cut before event " << bad.cut.event << " of " << trace.events().size()
                << ", " << bad.cut.choice.to_string() << "; " << bad.complaints.size()
                << " complaints, such as" << complaints << keep(trace, promise, bad);
}

}  // namespace flowfabric::disk
