#include "core/doctor/suspension_check.h"

#include <algorithm>

#include "core/suspension/suspension.h"
#include "model/waitpoint_token.h"

namespace flowfabric::core {

namespace {

constexpr const char* kRepaired = "repaired";
constexpr std::uint32_t kSignalsAtOnce = 500;

using Clock = std::optional<std::int64_t>;

// It may be early, never late.
bool is_in_time(const Clock& clock, const Clock& due) {
  return !due || (clock && *clock <= *due);
}
Clock due_at(const Suspension& suspension) {
  return is_open(suspension) ? suspension.details.timeout_at_ms : std::nullopt;
}
Clock due_at(const Waitpoint& waitpoint) {
  return waitpoint.state == WaitpointState::pending ? waitpoint.expires_at_ms : std::nullopt;
}

bool is_bound_to(const Waitpoint& waitpoint, const Suspension& suspension) {
  return is_open(suspension) && waitpoint.suspension_id == suspension.details.suspension_id;
}

// 0, 1, 2, …
bool counts_up_to(const std::vector<std::uint32_t>& numbers, std::size_t count) {
  if (numbers.size() != count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (numbers[i] != i) return false;
  }
  return true;
}

std::string fault_of_token(const Waitpoint& waitpoint, const std::map<std::string, const HmacKey*>& secrets) {
  const auto parts = split_token(waitpoint.token);
  if (!parts) return "has a malformed token";
  const auto known = secrets.find(std::string(parts->kid));
  if (known == secrets.end() || known->second->secret.data.empty()) return "";
  // A kid that was forgotten may be used again, with another secret: what is older is not its work.
  if (waitpoint.created_at_ms < known->second->rotated_at_ms) return "";
  const auto genuine =
      mint_token(parts->kid, known->second->secret.data, waitpoint.owner(), waitpoint.waitpoint_id);
  return equal_in_constant_time(genuine, waitpoint.token) ? "" : "has a token that its secret did not sign";
}

}  // namespace

std::vector<std::string> faults(const SuspensionNeighbourhood& found) {
  std::vector<std::string> wrong;
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) wrong.push_back(what);
  };
  const bool suspended = found.execution->state.lifecycle_phase == LifecyclePhase::suspended;
  require(!suspended || (found.latest && is_open(*found.latest)),
          "it is suspended, and no suspension is open");
  if (!found.latest) return wrong;
  const auto& latest = *found.latest;
  require(suspended || !is_open(latest), "a suspension is open, and it is not suspended");
  require(is_in_time(latest.next_due_at_ms, due_at(latest)), "the clock of its suspension is late");

  std::vector<std::uint32_t> past;
  for (const auto* each : found.past) {
    past.push_back(each->suspension_index);
    require(each->details.closed_at_ms.has_value(),
            "its suspension " + std::to_string(each->suspension_index) + " is past, and open");
  }
  const auto before = std::max<std::size_t>(latest.suspension_count, 1) - 1;
  require(counts_up_to(past, before), "it counts " + std::to_string(before) +
                                          " suspensions of the past and has " + std::to_string(past.size()));
  require(counts_up_to(found.signals, latest.signal_count),
          "it counts " + std::to_string(latest.signal_count) + " signals and has " +
              std::to_string(found.signals.size()));

  for (const auto& text : latest.details.waitpoint_ids) {
    const bool there = std::ranges::any_of(found.waitpoints, [&](const Waitpoint* each) {
      return each->waitpoint_id.to_string() == text && each->suspension_id == latest.details.suspension_id;
    });
    require(there, "waitpoint " + text + " of its suspension is missing");
  }
  for (const auto* each : found.waitpoints) {
    const auto name = "waitpoint " + each->waitpoint_id.to_string() + " ";
    require(each->state != WaitpointState::active || is_bound_to(*each, latest),
            name + "is active, and nothing is suspended on it");
    require(is_in_time(each->next_due_at_ms, due_at(*each)), name + "is pending, and its clock is late");
    const auto token = fault_of_token(*each, found.secrets);
    require(token.empty(), name + token);
  }
  return wrong;
}

void repair_suspension(Unit& unit, const ExecutionId& id, Context& at) {
  const auto key = suspension_key(id);
  if (!unit.find<Suspension>(key)) return;
  auto& row = unit.edit<Suspension>(key);
  const bool suspended = unit.require<Execution>(id).state.lifecycle_phase == LifecyclePhase::suspended;
  if (suspended && !is_open(row)) return;
  if (is_open(row) && !suspended) close(row, kRepaired, ResumeTrigger::none, at);
  row.next_due_at_ms = due_at(row);
  for (bool more = true; more;) {
    std::vector<SignalKey> next;
    for (std::uint32_t i = 0; i < kSignalsAtOnce; ++i) {
      next.push_back({id.partition, id.uuid, row.signal_count + i});
    }
    unit.fetch<Signal>(next);
    const auto gap = std::ranges::find_if(next, [&](const auto& each) { return !unit.find<Signal>(each); });
    row.signal_count += static_cast<std::uint32_t>(gap - next.begin());
    more = gap == next.end();
  }
  const auto open = unit.ask(OpenWaitpoints{id});
  unit.fetch<Waitpoint>(open);
  for (const auto& each : open) {
    if (!unit.find<Waitpoint>(each)) continue;
    auto& waitpoint = unit.edit<Waitpoint>(each);
    const bool stray = waitpoint.state == WaitpointState::active && !is_bound_to(waitpoint, row);
    if (stray) close(waitpoint, kRepaired, at);
    waitpoint.next_due_at_ms = due_at(waitpoint);
  }
}

std::vector<std::string> faults(const KeystoreNeighbourhood& found) {
  std::vector<std::string> wrong;
  if (!found.keystore) {
    if (!found.keys.empty()) wrong.push_back("there are secrets, and none is in force");
    return wrong;
  }
  const auto& active_kid = found.keystore->active_kid;
  bool active_is_there = false;
  for (const auto* key : found.keys) {
    const bool active = key->kid == active_kid;
    active_is_there = active_is_there || active;
    if (key->secret.data.empty()) wrong.push_back("kid " + key->kid + " has no secret");
    if (key->active != active) {
      wrong.push_back("kid " + key->kid +
                      (active ? " is in force, and not marked so" : " is marked as in force"));
    }
    if (!key->active && !active && !key->expires_at_ms) {
      wrong.push_back("kid " + key->kid + " is retired, and does not say until when it is accepted");
    }
  }
  if (!active_is_there) wrong.push_back("kid " + active_kid + " is in force, and not there");
  return wrong;
}

void repair_keystore(Unit& unit, const std::vector<HmacKeyKey>& kids) {
  unit.fetch<HmacKey>(kids);
  std::vector<std::string> marked;
  for (const auto& kid : kids) {
    const auto* key = unit.find<HmacKey>(kid);
    if (key && key->active) marked.push_back(kid.kid);
  }
  if (!unit.find<Keystore>({})) {
    if (marked.size() == 1) unit.insert(Keystore{.active_kid = marked.front()});
    return;
  }
  const auto active_kid = unit.find<Keystore>({})->active_kid;
  for (const auto& kid : kids) {
    const auto* key = unit.find<HmacKey>(kid);
    const bool active = kid.kid == active_kid;
    if (!key || key->active == active) continue;
    auto& edited = unit.edit<HmacKey>(kid);
    edited.active = active;
    if (active) edited.expires_at_ms.reset();
  }
}

}  // namespace flowfabric::core
