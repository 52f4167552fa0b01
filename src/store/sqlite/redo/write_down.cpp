#include "store/sqlite/redo/write_down.h"

namespace flowfabric::store::sqlite {

namespace {

using core::Unit;

void give_all(RedoEntry& entry, Columns columns, const void* value) {
  for (const auto& column : columns) give_field(*column.type, column.in(value), entry);
}
template <class Struct>
void give_all(RedoEntry& entry, const Struct& value) {
  give_all(entry, described_columns<Struct>(), &value);
}

// The columns of a row, from `first` on.
void give_row(RedoEntry& entry, const TableType& type, const void* record, std::size_t first = 0) {
  for (auto i = first; i < type.columns.size(); ++i) {
    give_column(type.columns[i], i < type.keys, record, entry);
  }
}

void write_down_records(const Unit& unit, const RecordType& type, RedoEntry& entry) {
  for (const auto* slot : unit.dirty(type.place)) {
    if (slot->changed) {
      entry.statement(statements_of(type).put);
      give_row(entry, type, slot->changed.get());
    } else {
      entry.statement(statements_of(type).erase);
      give_all(entry, type.key->columns, slot->key.get());
    }
  }
}

void write_down_events(const Unit& unit, const EventType& type, std::int64_t number, RedoEntry& entry) {
  const auto events = unit.appended(type.place);
  for (std::size_t i = 0; i < events.size(); ++i) {
    entry.statement(statements_of(type).put);
    entry.integer(++number);
    give_row(entry, type, events[i], 1);
  }
  if (!unit.trim_before_ms()) return;
  entry.statement(statements_of(type).trim);
  entry.integer(*unit.trim_before_ms());
  entry.integer(number);
  entry.integer(kTrimmedPerStep);
}

}  // namespace

// In the order in which the writer does it.
void write_down(const Unit& unit, const EventNumbers& last, RedoEntry& entry) {
  for (const auto& id : unit.purged()) {
    for (const auto* type : owned_types()) {
      entry.statement(statements_of(*type).purge);
      give_all(entry, id);
    }
  }
  for (const auto& type : record_types()) write_down_records(unit, type, entry);
  for (const auto& [stream, count] : unit.dropped_frames()) {
    entry.statement(kDropFrames);
    give_all(entry, stream);
    entry.integer(static_cast<std::int64_t>(count));
  }
  for (const auto& type : event_types()) write_down_events(unit, type, last[type.place], entry);
  for (const auto& [key, delta] : unit.count_deltas()) {
    if (delta == 0) continue;
    entry.statement(kCount);
    give_all(entry, key);
    entry.integer(delta);
  }
}

}  // namespace flowfabric::store::sqlite
