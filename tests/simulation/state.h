// Everything a store holds, read through a session, and the differences between two of them.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/policy_json.h"
#include "store/store.h"

namespace flowfabric::simulation {

template <class Record>
using Rows = std::map<typename Record::Key, Record>;
template <class Event>
using Log = std::vector<Event>;
template <template <class> class Of, class List>
using TupleOf = boost::mp11::mp_rename<boost::mp11::mp_transform<Of, List>, std::tuple>;
using LaneCounts = std::map<LaneCountKey, std::int64_t>;

struct State {
  std::int64_t now_ms{};
  TupleOf<Rows, Records> tables;
  TupleOf<Log, Events> logs;
  LaneCounts counts;     // as they are kept
  LaneCounts recounted;  // row by row
  std::set<RecordKey> due_within_a_day;
  std::set<RecordKey> removed_within_a_day;
  std::optional<std::int64_t> next_due;

  template <class Record>
  const Rows<Record>& rows() const {
    return std::get<Rows<Record>>(tables);
  }
  template <class Event>
  const Log<Event>& log() const {
    return std::get<Log<Event>>(logs);
  }
};

inline LaneCounts without_zeros(LaneCounts counts) {
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  return counts;
}

// A store may leave gaps between the ids of events: what counts is their order, by which they are numbered
// here.
template <class Event>
Log<Event> numbered_by_order(Log<Event> events) {
  std::int64_t last_id = 0;
  std::int64_t number = 0;
  for (auto& event : events) {
    if (event.event_id <= last_id) throw std::runtime_error(std::string(Event::table) + " is out of order");
    last_id = std::exchange(event.event_id, ++number);
  }
  return events;
}

inline State read_state(store::Session& session) {
  constexpr std::size_t everything = 10'000'000;
  State state;
  core::Unit unit(session);
  state.now_ms = session.begin(unit);
  for_each_type<Records>([&]<class Record>() {
    const auto keys = session.keys_after<Record>(std::nullopt, everything);
    for (const auto& key : keys) unit.want<Record>(key);
    session.load(unit);
    auto& rows = std::get<Rows<Record>>(state.tables);
    for (const auto& key : keys) rows.emplace_hint(rows.end(), key, unit.require<Record>(key));
  });
  for_each_type<Events>([&]<class Event>() {
    std::get<Log<Event>>(state.logs) = numbered_by_order(session.events_after<Event>(0, everything));
  });
  for (auto& [id, spec] : std::get<Rows<ExecutionSpec>>(state.tables)) {
    // As text a policy is canonical: the reclaim cap is filled in, capabilities are sorted.
    spec.policy = *policy_from_json(to_json(spec.policy));
  }
  state.counts = without_zeros(session.lane_counts());
  state.recounted = session.count_executions();
  const auto tomorrow = state.now_ms + 86'400'000;
  const auto keys_of = [](const store::DueRecords& records) {
    std::set<RecordKey> keys;
    for (const auto& record : records.found) keys.insert(record.key);
    return keys;
  };
  state.due_within_a_day = keys_of(session.due({.until_ms = tomorrow, .limit = everything}));
  state.removed_within_a_day = keys_of(session.due({.until_ms = tomorrow, .purge_limit = everything}));
  state.next_due = session.next_due({.until_ms = std::numeric_limits<std::int64_t>::max()});
  session.rollback();
  return state;
}

// "lease_epoch, worker_id": the columns in which two records differ.
template <class Record>
std::string different_columns(const Record& a, const Record& b) {
  std::vector<const void*> fields;
  for_each_field(a, [&](std::string_view, const auto& field) { fields.push_back(&field); });
  std::string names;
  std::size_t index = 0;
  for_each_field(b, [&](std::string_view name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    const auto& first = *static_cast<const Field*>(fields[index++]);
    if (first == field) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
    if constexpr (std::is_integral_v<Field>) {
      names += " " + std::to_string(first) + " and " + std::to_string(field);
    }
  });
  return names;
}

// One line per difference, at most a few.
class Differences {
 public:
  template <class Record>
  void rows(const Rows<Record>& a, const Rows<Record>& b) {
    for (const auto& [key, record] : a) {
      const auto it = b.find(key);
      if (it == b.end()) {
        note(std::string(Record::table) + ": a row is missing in the second");
      } else if (!(it->second == record)) {
        note(std::string(Record::table) + ": " + different_columns(record, it->second));
      }
    }
    for (const auto& [key, record] : b) {
      if (!a.contains(key)) note(std::string(Record::table) + ": a row is missing in the first");
    }
  }

  template <class Event>
  void events(const Log<Event>& a, const Log<Event>& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] == b[i]) continue;
      note(std::string(Event::table) + " " + std::to_string(i) + ": " + different_columns(a[i], b[i]));
    }
    if (a.size() != b.size()) note(std::string(Event::table) + ": different lengths");
  }

  void note(const std::string& line) {
    if (++count_ <= 10) text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  int count_{0};
  std::string text_;
};

inline std::string differences(const State& a, const State& b) {
  Differences found;
  for_each_type<Records>([&]<class Record>() { found.rows<Record>(a.rows<Record>(), b.rows<Record>()); });
  for_each_type<Events>([&]<class Event>() { found.events<Event>(a.log<Event>(), b.log<Event>()); });
  if (a.counts != b.counts) found.note("lane counts");
  if (a.recounted != b.recounted) found.note("recounted lanes");
  if (a.due_within_a_day != b.due_within_a_day) found.note("what is due within a day");
  if (a.removed_within_a_day != b.removed_within_a_day) found.note("what is removed within a day");
  if (a.next_due != b.next_due) found.note("when something is due next");
  return found.text();
}

}  // namespace flowfabric::simulation
