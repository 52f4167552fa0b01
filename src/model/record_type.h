// The descriptions of all records and events, made once from their Boost.Describe descriptions. The unit of
// work, the stores and the doctor work with these; a record's own type is named where a rule uses it.
#pragma once

#include <bitset>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/any_key.h"
#include "model/field_type.h"
#include "model/records.h"

namespace flowfabric {

inline constexpr std::size_t kRecordTypes = boost::mp11::mp_size<Records>::value;
inline constexpr std::size_t kEventTypes = boost::mp11::mp_size<Events>::value;

// The place of a record in `Records`, or of an event in `Events`.
template <class Record>
inline constexpr std::size_t place_of = boost::mp11::mp_find<Records, Record>::value;
template <class Event>
inline constexpr std::size_t event_place = boost::mp11::mp_find<Events, Event>::value;

// A table whose rows are structs in memory.
struct TableType {
  const char* table{};
  Columns columns{};
  std::size_t keys{};  // the first columns are the key; events have none
  std::vector<std::string_view> names{};

  std::span<const std::string_view> key_names() const { return std::span(names).first(keys); }
};

struct RecordType : TableType {
  std::size_t place{};
  const KeyType* key{};
  std::shared_ptr<void> (*make)(){};
  std::shared_ptr<void> (*copy)(const void* record){};
  void (*copy_key)(void* at, const void* record){};
  // records.h says what these mean.
  bool is_owned{};
  bool is_shared{};
  bool is_held{};
  bool is_guarded{};
  // When it is due, and when it is to be removed; null: it has no such column.
  const Column* clock{};
  const Column* removal{};

  AnyKey key_of(const void* record) const {
    return AnyKey(*key, [&](void* at) { copy_key(at, record); });
  }
  template <class Record>
  bool is() const {
    return place == place_of<Record>;
  }
};

struct EventType : TableType {
  std::size_t place{};
  EventFamily family{};
  std::size_t size{};
  std::shared_ptr<void> (*make)(){};
};

// In the order of `Records`, and of `Events`.
std::span<const RecordType> record_types();
std::span<const EventType> event_types();
// Those of records that are removed with their execution, in the order of `OwnedRecords`.
std::span<const RecordType* const> owned_types();

template <class Record>
const RecordType& record_type() {
  return record_types()[place_of<Record>];
}
template <class Event>
const EventType& event_type() {
  return event_types()[event_place<Event>];
}
// Keys of one record.
template <class Record>
AnyKey any_key(const typename Record::Key& key) {
  return AnyKey(*record_type<Record>().key, &key);
}

// A record of any type, by its key.
struct RecordKey {
  const RecordType* type{};
  AnyKey key;

  // Null: it is one of another type.
  template <class Record>
  const typename Record::Key* key_of() const {
    return type->is<Record>() ? &key.as<typename Record::Key>() : nullptr;
  }
  bool operator==(const RecordKey& other) const { return type == other.type && key == other.key; }
  std::strong_ordering operator<=>(const RecordKey& other) const {
    return type == other.type ? key <=> other.key : type->place <=> other.type->place;
  }
};
template <class Record>
RecordKey record_key(const typename Record::Key& key) {
  return {&record_type<Record>(), any_key<Record>(key)};
}
// "ff_exec_core {fp:7}:…", "ff_route 17"
std::string shown(const RecordKey& key);
// "a b": the columns of a key.
std::string shown_columns(const AnyKey& key);

// The time in a record's column `clock` or `removal`.
std::optional<std::int64_t> time_in(const Column* column, const void* record);

// The columns of any described struct.
template <class Struct>
Columns described_columns() {
  if constexpr (place_of<Struct> < kRecordTypes) {
    return record_type<Struct>().columns;
  } else if constexpr (event_place<Struct> < kEventTypes) {
    return event_type<Struct>().columns;
  } else {
    static const auto columns = describe_columns<Struct>();
    return columns;
  }
}

// ---- sets of columns ----

inline constexpr std::size_t kMostColumns = 96;
using ColumnMask = std::bitset<kMostColumns>;

ColumnMask all_columns(Columns columns);
ColumnMask changed_columns(const TableType& type, const void* before, const void* after);
// Keys always count: an empty namespace is a namespace.
ColumnMask columns_with_value(const TableType& type, const void* record);
std::vector<std::string_view> chosen_names(const TableType& type, const ColumnMask& mask);

}  // namespace flowfabric
