#include "engine/figures.h"

#include "core/registry/worker.h"

namespace flowfabric::engine {

namespace {

constexpr std::size_t kPage = 1000;

// Calls f(keys) for all keys of a table, a page at a time.
template <class Record, class F>
void for_each_page(Reading& reading, F&& f) {
  std::optional<typename Record::Key> after;
  for (;;) {
    const auto keys = reading.session.keys_after<Record>(after, kPage);
    f(keys);
    if (keys.size() < kPage) return;
    after = keys.back();
  }
}

}  // namespace

Result<StoreFigures> answer(Readers& readers, const ReadFigures&) {
  return readers.read([&](Reading& reading) -> Result<StoreFigures> {
    StoreFigures figures;
    for (const auto& [key, count] : reading.session.lane_counts()) {
      figures.executions[key.lane_id][key.public_state] = count;
    }
    for_each_page<CancelBacklog>(reading, [&](const auto& flows) {
      for (const auto& key : flows) reading.unit.want<CancelBacklog>(key);
      for (const auto& key : flows) {
        const auto status = reading.require<CancelBacklog>(key).status;
        if (status != BacklogState::kept) ++figures.cancel_backlog;
      }
    });
    for_each_page<Lane>(reading, [&](const auto& lanes) { figures.lanes += lanes.size(); });
    const core::Context at{.now_ms = reading.now_ms};
    for_each_page<Worker>(reading, [&](const auto& keys) {
      for (const auto& key : keys) reading.unit.want<Worker>(key);
      for (const auto& key : keys) {
        if (core::is_alive(reading.require<Worker>(key), at)) ++figures.workers[key.namespace_];
      }
    });
    return figures;
  });
}

}  // namespace flowfabric::engine
