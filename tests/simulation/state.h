// Everything a store holds, read through a session, and the differences between two of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/invariants.h"
#include "model/policy_json.h"
#include "store/store.h"

namespace flowfabric::simulation {

// The names under which records may have been stored.
struct Known {
  std::set<ExecutionId> executions;
  std::set<std::string> lanes;
  std::set<CreateDedupKey> keys;
};

template <class Record>
using Rows = std::map<typename Record::Key, Record>;

struct State {
  Rows<Execution> executions;
  Rows<ExecutionSpec> specs;
  Rows<Attempt> attempts;
  Rows<Lane> lanes;
  Rows<Route> routes;
  Rows<CreateDedup> keys;
  std::vector<LeaseEvent> lease_events;
  std::vector<CompletionEvent> completions;
  std::map<std::string, std::map<PublicState, std::int64_t>> counts;
  std::set<store::DueKey> due_within_a_day;
  std::optional<std::int64_t> next_due;
};

inline State read_state(store::Session& session, const Known& known) {
  constexpr std::size_t everything = 10'000'000;
  State state;
  core::Unit unit(session);
  for (const auto& id : known.executions) {
    unit.want<Execution>(id);
    unit.want<ExecutionSpec>(id);
  }
  for (const auto& lane : known.lanes) {
    unit.want<Lane>({lane});
    unit.wanted_routes().push_back(lane);
  }
  for (const auto& key : known.keys) unit.want<CreateDedup>(key);
  const auto now = session.begin(unit);
  const auto keep = [&]<class Record>(Rows<Record>& rows, const typename Record::Key& key) {
    if (const auto* record = unit.find<Record>(key)) rows.emplace(key, *record);
  };
  for (const auto& id : known.executions) {
    keep.template operator()<Execution>(state.executions, id);
    keep.template operator()<ExecutionSpec>(state.specs, id);
    if (const auto it = state.specs.find(id); it != state.specs.end()) {
      // As text a policy is canonical: the reclaim cap is filled in, capabilities are sorted.
      it->second.policy = *policy_from_json(to_json(it->second.policy));
    }
    for (const auto& attempt : session.attempts_of(id)) state.attempts.emplace(attempt.key(), attempt);
  }
  for (const auto& lane : known.lanes) {
    keep.template operator()<Lane>(state.lanes, {lane});
    for (const auto* route : unit.routes_of(lane)) state.routes.emplace(route->key(), *route);
    state.counts[lane] = session.count_lane(lane);
  }
  for (const auto& key : known.keys) keep.template operator()<CreateDedup>(state.keys, key);
  state.lease_events = session.lease_events(0, everything);
  state.completions = session.completion_events(0, everything);
  const auto due = session.due(now + 86'400'000, everything);
  state.due_within_a_day = {due.begin(), due.end()};
  state.next_due = session.next_due();
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
    if (*static_cast<const Field*>(fields[index++]) == field) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return names;
}

// One line per difference, at most a few of each kind.
class Differences {
 public:
  template <class Key, class Record>
  void rows(const std::map<Key, Record>& a, const std::map<Key, Record>& b) {
    for (const auto& [key, record] : a) {
      const auto it = b.find(key);
      if (it == b.end()) {
        note(std::string(Record::table) + ": a row is missing in the second");
      } else if (!(it->second == record)) {
        note(std::string(Record::table) + ": " + different_columns(record, it->second));
      }
    }
    if (a.size() < b.size()) note(std::string(Record::table) + ": the second has more rows");
  }

  template <class Event>
  void events(const std::vector<Event>& a, const std::vector<Event>& b) {
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
  found.rows(a.executions, b.executions);
  found.rows(a.specs, b.specs);
  found.rows(a.attempts, b.attempts);
  found.rows(a.lanes, b.lanes);
  found.rows(a.routes, b.routes);
  found.rows(a.keys, b.keys);
  found.events(a.lease_events, b.lease_events);
  found.events(a.completions, b.completions);
  if (a.counts != b.counts) found.note("lane counts");
  if (a.due_within_a_day != b.due_within_a_day) found.note("what is due within a day");
  if (a.next_due != b.next_due) found.note("when something is due next");
  return found.text();
}

}  // namespace flowfabric::simulation
