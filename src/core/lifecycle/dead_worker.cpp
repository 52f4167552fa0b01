#include "core/lifecycle/dead_worker.h"

#include <set>

#include "core/execution/lease.h"
#include "core/index_rules.h"
#include "core/limits/admission.h"
#include "core/registry/worker.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kLeasesPerStep = 100;

// What it took when it had come back is its own.
bool was_held_by(Unit& unit, const DeadWorker& dead, const Execution& execution) {
  return is_held(execution) && execution.lease.worker_instance_id == dead.worker_instance_id &&
         execution.lease.lease_acquired_at_ms.value_or(0) <= dead.died_at_ms &&
         works_for(unit, {dead.namespace_, dead.worker_instance_id}, execution.namespace_);
}

void end_lease(Unit& unit, const DeadWorker& dead, const ExecutionId& id, const Context& at) {
  const auto* execution = unit.find<Execution>(id);
  if (execution && was_held_by(unit, dead, *execution)) {
    end_lease_of_dead(unit, unit.edit<Execution>(id), at);
  }
}

// With what this batch has changed, of which the store does not know yet.
std::vector<ExecutionId> candidates(Unit& unit, const DeadWorker& dead,
                                    const std::vector<ExecutionId>& page) {
  std::set<ExecutionId> all(page.begin(), page.end());
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    const auto* execution = slot.current();
    if (execution && execution->lease.worker_instance_id == dead.worker_instance_id) all.insert(slot.key);
  });
  return {all.begin(), all.end()};
}

void fetch_for(Unit& unit, const DeadWorker& dead, const std::vector<ExecutionId>& ids, const Context& at) {
  unit.fetch<Execution>(ids);
  std::set<WorkerKey> namesakes;
  for (const auto& id : ids) {
    const auto* execution = unit.find<Execution>(id);
    if (execution) namesakes.insert({execution->namespace_, dead.worker_instance_id});
  }
  if (dead.namespace_.empty()) unit.fetch<Worker>(namesakes);
  fetch_to_give_back(unit, ids, at);
}

}  // namespace

LeasesOf next_page(const DeadWorker& dead) {
  return {.worker_instance_id = dead.worker_instance_id,
          .namespace_ = dead.namespace_.empty() ? std::nullopt : std::optional(dead.namespace_),
          .after = ExecutionId::parse(dead.looked_up_to),
          .limit = kLeasesPerStep};
}

void end_lease_if_dead(Unit& unit, const DeadWorkerKey& key, const ExecutionId& id, const Context& at) {
  if (const auto* dead = unit.find<DeadWorker>(key)) end_lease(unit, *dead, id, at);
}

void pass(Unit& unit, const DeadWorkerKey& key, const std::vector<ExecutionId>& page, const Context& at) {
  if (!unit.find<DeadWorker>(key)) return;
  if (page.size() < kLeasesPerStep) return unit.erase<DeadWorker>(key);
  auto& dead = unit.edit<DeadWorker>(key);
  dead.looked_up_to = page.back().to_string();
  dead.next_due_at_ms = at.now_ms;
}

Rule run_dead_worker_clock(Unit& unit, const DeadWorkerKey& key, Context& at) {
  const auto* found = unit.find<DeadWorker>(key);
  if (!found) return Rule::none;
  const auto dead = *found;
  const auto page = unit.ask(next_page(dead));
  const auto ids = candidates(unit, dead, page);
  fetch_for(unit, dead, ids, at);
  for (const auto& id : ids) end_lease(unit, dead, id, at);
  pass(unit, key, page, at);
  return Rule::dead_worker;
}

}  // namespace flowfabric::core
