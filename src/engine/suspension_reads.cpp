#include "engine/suspension_reads.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/suspension/keystore.h"
#include "core/suspension/signal.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"
#include "core/views/suspension_read.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxPage = 1000;
constexpr std::uint32_t kShownSignals = 100;

Result<void> check_exists(Reading& reading, const ExecutionId& id) {
  if (reading.find<Execution>(id)) return {};
  return std::unexpected(core::not_found(id));
}

// A waitpoint may be pending still, for a while; it takes no signals any more.
bool has_ended(Reading& reading, const ExecutionId& id) {
  const auto* execution = reading.find<Execution>(id);
  return !execution || execution->state.lifecycle_phase == LifecyclePhase::terminal;
}

template <class Record>
void load_all(Reading& reading, const std::vector<typename Record::Key>& keys) {
  for (const auto& key : keys) reading.unit.want<Record>(key);
  reading.session.load(reading.unit);
}

std::vector<WaitpointRecordKey> open_waitpoints(Reading& reading, const ExecutionId& id) {
  reading.unit.want_answer(core::OpenWaitpoints{id});
  reading.session.load(reading.unit);
  return reading.unit.ask(core::OpenWaitpoints{id});
}

}  // namespace

Result<WaitpointKids> answer(Readers& readers, const ListWaitpointKids&) {
  return readers.read([&](Reading& reading) -> Result<WaitpointKids> {
    WaitpointKids kids;
    if (const auto* keystore = reading.find<Keystore>({})) kids.current_kid = keystore->active_kid;
    reading.unit.want_answer(core::RetiredSecrets{});
    reading.session.load(reading.unit);
    const auto retired = reading.unit.ask(core::RetiredSecrets{});
    load_all<HmacKey>(reading, retired);
    for (const auto& kid : retired) {
      const auto* key = reading.unit.find<HmacKey>(kid);
      if (key && core::is_accepted(*key, reading.now_ms)) {
        kids.verifying.push_back({key->kid, *key->expires_at_ms});
      }
    }
    return kids;
  });
}

Result<WaitpointPage> answer(Readers& readers, const ListPendingWaitpoints& request) {
  return readers.read([&](Reading& reading) -> Result<WaitpointPage> {
    if (auto ok = check_exists(reading, request.execution_id); !ok) return std::unexpected(ok.error());
    if (has_ended(reading, request.execution_id)) return WaitpointPage{};
    auto keys = open_waitpoints(reading, request.execution_id);
    std::erase_if(keys, [&](const auto& key) { return request.after && key.waitpoint_id <= *request.after; });
    const auto limit = std::clamp<std::size_t>(request.limit, 1, kMaxPage);
    WaitpointPage page;
    if (keys.size() > limit) {
      keys.resize(limit);
      page.next_cursor = keys.back().waitpoint_id;
    }
    load_all<Waitpoint>(reading, keys);
    for (const auto& key : keys) {
      if (const auto* waitpoint = reading.unit.find<Waitpoint>(key)) {
        page.waitpoints.push_back(core::view(*waitpoint));
      }
    }
    return page;
  });
}

Result<std::optional<std::string>> answer(Readers& readers, const ReadWaitpointToken& request) {
  return readers.read([&](Reading& reading) -> Result<std::optional<std::string>> {
    const auto* waitpoint =
        reading.find<Waitpoint>(core::waitpoint_key(request.execution_id, request.waitpoint_id));
    if (!waitpoint || waitpoint->state == WaitpointState::closed) return std::nullopt;
    if (core::has_expired(*waitpoint, reading.now_ms)) return std::nullopt;
    if (has_ended(reading, request.execution_id)) return std::nullopt;
    return waitpoint->token;
  });
}

Result<SuspensionView> answer(Readers& readers, const DescribeSuspension& request) {
  const auto& id = request.execution_id;
  return readers.read([&](Reading& reading) -> Result<SuspensionView> {
    if (auto ok = check_exists(reading, id); !ok) return std::unexpected(ok.error());
    const auto* row = reading.find<Suspension>(core::suspension_key(id));
    if (!row || !row->details.suspension_id) {
      return fail_with(ErrorCode::suspension_not_found, id.to_string(),
                       "The execution has never been suspended.");
    }
    const auto waitpoints = core::waitpoints_of(id, row->details);
    std::vector<SignalKey> signals;
    const auto first = row->signal_count > kShownSignals ? row->signal_count - kShownSignals : 0;
    for (auto index = first; index < row->signal_count; ++index) {
      signals.push_back({id.partition, id.uuid, index});
    }
    load_all<Waitpoint>(reading, waitpoints);
    load_all<Signal>(reading, signals);
    auto view = core::view(*row);
    for (const auto& key : waitpoints) {
      if (const auto* found = reading.unit.find<Waitpoint>(key))
        view.waitpoints.push_back(core::view(*found));
    }
    for (const auto& key : signals) {
      const auto* signal = reading.unit.find<Signal>(key);
      if (!signal) continue;
      const auto* waitpoint = reading.find<Waitpoint>(core::waitpoint_key(id, signal->waitpoint_id));
      view.signals.push_back({core::view(*signal, waitpoint), signal->observed_effect});
      const auto& satisfiers = row->details.satisfier_signals;
      if (row->details.closed_at_ms && !satisfiers.empty() &&
          satisfiers.back() == std::to_string(signal->signal_index)) {
        view.closer_signal_id = signal->signal_id;
      }
    }
    return view;
  });
}

Result<SuspendedPage> answer(Readers& readers, const ListSuspended& request) {
  const auto last = static_cast<std::uint16_t>(readers.partitions().flow - 1);
  return readers.read([&](Reading& reading) -> Result<SuspendedPage> {
    SuspendedPage page;
    if (request.limit == 0) return page;
    const std::size_t limit = std::min(request.limit, kMaxPage);
    store::SuspendedScan scan{.first_partition = request.partition.value_or(0),
                              .last_partition = request.partition.value_or(last),
                              .limit = limit + 1};
    if (request.cursor) {
      scan.after_id = request.cursor->uuid;
      scan.after_ms = request.cursor_suspended_at_ms;
      const auto* seen = reading.find<Suspension>(core::suspension_key(*request.cursor));
      if (seen && !scan.after_ms) scan.after_ms = seen->details.suspended_at_ms;
    }
    auto keys = reading.session.suspended(scan);
    const bool more = keys.size() > limit;
    if (more) keys.resize(limit);
    for (const auto& key : keys) reading.unit.want<Execution>({key.partition_key, key.execution_id});
    load_all<Suspension>(reading, keys);
    for (const auto& key : keys) {
      const auto* found = reading.unit.find<Suspension>(key);
      const auto* execution = reading.unit.find<Execution>({key.partition_key, key.execution_id});
      if (found && execution) page.suspended.push_back(core::entry_of(*found, *execution));
    }
    if (more && !page.suspended.empty()) page.next_cursor = page.suspended.back().execution_id;
    return page;
  });
}

Result<std::vector<ResumeSignal>> answer(Readers& readers, const ObserveSignals& request) {
  const auto& id = request.execution_id;
  return readers.read([&](Reading& reading) -> Result<std::vector<ResumeSignal>> {
    if (auto ok = check_exists(reading, id); !ok) return std::unexpected(ok.error());
    const auto* row = reading.find<Suspension>(core::suspension_key(id));
    if (!row || row->details.attempt_index != request.attempt_index) return std::vector<ResumeSignal>{};
    if (!core::is_shown_to_worker(row->details)) return std::vector<ResumeSignal>{};
    load_all<Signal>(reading, core::signal_keys(id, row->details.satisfier_signals));
    load_all<Waitpoint>(reading, core::waitpoints_of(id, row->details));
    return core::signals_of(reading.unit, id, row->details);
  });
}

}  // namespace flowfabric::engine
