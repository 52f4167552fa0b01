#include "engine/history.h"

#include "core/execution/lease.h"
#include "core/suspension/suspension.h"
#include "core/views/history.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMostOfEach = 1000;

// The latest records of a series that is numbered from 0 on.
template <class Record>
std::vector<const Record*> latest(Reading& reading, const ExecutionId& id, std::uint32_t count,
                                  std::uint32_t most) {
  std::vector<typename Record::Key> keys;
  for (auto index = count - std::min(count, most); index < count; ++index) {
    keys.push_back({id.partition, id.uuid, index});
    reading.unit.want<Record>(keys.back());
  }
  reading.session.load(reading.unit);
  std::vector<const Record*> found;
  for (const auto& key : keys) {
    if (const auto* record = reading.unit.find<Record>(key)) found.push_back(record);
  }
  return found;
}

}  // namespace

Result<std::vector<HistoryEntry>> answer(Readers& readers, const ReadHistory& request) {
  const auto& id = request.execution_id;
  return readers.read([&](Reading& reading) -> Result<std::vector<HistoryEntry>> {
    reading.unit.want<ExecutionSpec>(id);
    const auto* execution = reading.find<Execution>(id);
    if (!execution) return std::unexpected(core::not_found(id));
    core::Life life{.execution = *execution,
                    .spec = reading.unit.require<ExecutionSpec>(id),
                    .ended = reading.session.attempts_of(id),
                    .operator_events = reading.session.operator_events_of(id),
                    .pauses = reading.session.pauses_of(id, kMostOfEach)};
    if (const auto* suspension = reading.find<Suspension>(core::suspension_key(id))) {
      const auto past = suspension->suspension_count > 0 ? suspension->suspension_count - 1 : 0;
      for (const auto* each : latest<PastSuspension>(reading, id, past, kMostOfEach)) {
        life.suspensions.push_back(&each->details);
      }
      life.suspensions.push_back(&suspension->details);
      life.signals = latest<Signal>(reading, id, suspension->signal_count, kMostOfEach);
    }
    return core::history(life);
  });
}

}  // namespace flowfabric::engine
