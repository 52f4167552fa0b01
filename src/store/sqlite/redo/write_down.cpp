#include "store/sqlite/redo/write_down.h"

namespace flowfabric::store::sqlite {

namespace {

using core::Slot;
using core::Unit;

template <class Struct>
void give_all(RedoEntry& entry, const Struct& value) {
  for_each_field(value, [&](std::string_view, const auto& field) { give(field, entry); });
}

template <class Record>
void put(RedoEntry& entry, const Record& record, std::optional<std::int64_t> number = std::nullopt) {
  entry.statement(put_statement<Record>());
  std::size_t index = 0;
  for_each_field(record, [&](std::string_view, const auto& field) {
    const bool is_key = index < key_columns<Record>;
    if (index++ == 0 && number)
      entry.integer(*number);
    else if (is_key || has_value(field))
      give(field, entry);
    else
      entry.null();
  });
}

}  // namespace

// In the order in which the writer does it.
void write_down(const Unit& unit, const EventNumbers& last, RedoEntry& entry) {
  for (const auto& id : unit.purged()) {
    for_each_type<OwnedRecords>([&]<class Record>() {
      entry.statement(purge_statement<Record>());
      give_all(entry, id);
    });
  }
  for_each_type<Records>([&]<class Record>() {
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
      if (slot.changed) return put(entry, *slot.changed);
      entry.statement(erase_statement<Record>());
      give_all(entry, slot.key);
    });
  });
  for (const auto& [stream, count] : unit.dropped_frames()) {
    entry.statement(kDropFrames);
    give_all(entry, stream);
    give(count, entry);
  }
  for_each_type<Events>([&]<class Event>() {
    auto number = last[event_index<Event>];
    for (const auto& event : unit.appended<Event>()) put(entry, event, ++number);
    if (!unit.trim_before_ms()) return;
    entry.statement(trim_statement<Event>());
    entry.integer(*unit.trim_before_ms());
    entry.integer(number);
    entry.integer(kTrimmedPerStep);
  });
  for (const auto& [key, delta] : unit.count_deltas()) {
    if (delta == 0) continue;
    entry.statement(kCount);
    give_all(entry, key);
    entry.integer(delta);
  }
}

}  // namespace flowfabric::store::sqlite
