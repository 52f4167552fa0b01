// The only file that is compiled for every record.
#include "model/record_type.h"

#include <array>

namespace flowfabric {

namespace {

template <class Struct>
Columns columns_of_struct() {
  static const auto columns = describe_columns<Struct>();
  static_assert(column_count<Struct>() <= kMostColumns);
  return columns;
}

std::vector<std::string_view> names_of(Columns columns) {
  std::vector<std::string_view> names;
  for (const auto& column : columns) names.push_back(column.name);
  return names;
}

template <class Key>
const KeyType& key_type() {
  static_assert(sizeof(Key) <= AnyKey::kLargest);
  static const KeyType type = [] {
    KeyType made;
    made.size = sizeof(Key);
    made.is_trivial = std::is_trivially_copyable_v<Key>;
    made.columns = columns_of_struct<Key>();
    made.hash = [](const void* key) { return KeyHash<Key>{}(*static_cast<const Key*>(key)); };
    made.same = [](const void* left, const void* right) {
      return *static_cast<const Key*>(left) == *static_cast<const Key*>(right);
    };
    made.compare = [](const void* left, const void* right) -> std::strong_ordering {
      return *static_cast<const Key*>(left) <=> *static_cast<const Key*>(right);
    };
    made.make = [](void* at) { new (at) Key(); };
    made.copy = [](void* at, const void* from) { new (at) Key(*static_cast<const Key*>(from)); };
    made.move = [](void* at, void* from) { new (at) Key(std::move(*static_cast<Key*>(from))); };
    made.destroy = [](void* key) { static_cast<Key*>(key)->~Key(); };
    if constexpr (requires(const Key& key) { owner_of(key); }) {
      made.owner = [](const void* key) -> ExecutionId { return owner_of(*static_cast<const Key*>(key)); };
      made.make_first = [](void* at, const ExecutionId& owner) {
        auto* key = new (at) Key();
        if constexpr (std::is_same_v<Key, ExecutionId>) {
          *key = owner;
        } else {
          key->partition_key = owner.partition;
          key->execution_id = owner.uuid;
        }
      };
    }
    return made;
  }();
  return type;
}

template <class Record>
RecordType describe_record() {
  RecordType type;
  type.table = Record::table;
  type.columns = columns_of_struct<Record>();
  type.names = names_of(type.columns);
  type.place = place_of<Record>;
  type.key = &key_type<typename Record::Key>();
  type.keys = type.key->columns.size();
  type.make = []() -> std::shared_ptr<void> { return std::make_shared<Record>(); };
  type.copy = [](const void* record) -> std::shared_ptr<void> {
    return std::make_shared<Record>(*static_cast<const Record*>(record));
  };
  type.copy_key = [](void* at, const void* record) {
    new (at) typename Record::Key(static_cast<const Record*>(record)->key());
  };
  type.is_owned = is_owned<Record>;
  type.is_shared = is_shared<Record>;
  type.is_held = is_held<Record>;
  type.is_guarded = is_guarded<Record>;
  if constexpr (has_clock<Record>) type.clock = column_named(type.columns, "next_due_at_ms");
  if constexpr (is_removable<Record>) type.removal = column_named(type.columns, "purge_at_ms");
  return type;
}

template <class Event>
EventType describe_event() {
  EventType type;
  type.table = Event::table;
  type.columns = columns_of_struct<Event>();
  type.names = names_of(type.columns);
  type.place = event_place<Event>;
  type.family = family_of<Event>;
  type.size = sizeof(Event);
  type.make = []() -> std::shared_ptr<void> { return std::make_shared<Event>(); };
  return type;
}

}  // namespace

std::span<const RecordType> record_types() {
  static const auto types = [] {
    std::array<RecordType, kRecordTypes> all;
    for_each_type<Records>([&]<class Record>() { all[place_of<Record>] = describe_record<Record>(); });
    return all;
  }();
  return types;
}

std::span<const EventType> event_types() {
  static const auto types = [] {
    std::array<EventType, kEventTypes> all;
    for_each_type<Events>([&]<class Event>() { all[event_place<Event>] = describe_event<Event>(); });
    return all;
  }();
  return types;
}

std::span<const RecordType* const> owned_types() {
  static const auto types = [] {
    std::vector<const RecordType*> owned;
    for_each_type<OwnedRecords>([&]<class Record>() { owned.push_back(&record_type<Record>()); });
    return owned;
  }();
  return types;
}

std::string shown_columns(const AnyKey& key) {
  std::string text;
  for (const auto& column : key.type().columns) {
    if (!text.empty()) text += ' ';
    text += shown_field(*column.type, column.in(key.get()));
  }
  return text;
}

std::string shown(const RecordKey& key) {
  const auto table = std::string(key.type->table) + " ";
  if (key.type->key == record_type<Execution>().key) return table + key.key.as<ExecutionId>().to_string();
  return table + shown_columns(key.key);
}

std::optional<std::int64_t> time_in(const Column* column, const void* record) {
  if (!column) return std::nullopt;
  const void* field = column->in(record);
  if (!column->type->is_optional()) return *static_cast<const std::int64_t*>(field);
  return *static_cast<const std::optional<std::int64_t>*>(field);
}

ColumnMask all_columns(Columns columns) {
  ColumnMask mask;
  for (std::size_t i = 0; i < columns.size(); ++i) mask.set(i);
  return mask;
}

ColumnMask changed_columns(const TableType& type, const void* before, const void* after) {
  ColumnMask mask;
  std::size_t index = 0;
  for (const auto& column : type.columns) {
    if (!column.type->same(column.in(before), column.in(after))) mask.set(index);
    ++index;
  }
  return mask;
}

ColumnMask columns_with_value(const TableType& type, const void* record) {
  ColumnMask mask;
  std::size_t index = 0;
  for (const auto& column : type.columns) {
    if (index < type.keys || has_value(*column.type, column.in(record))) mask.set(index);
    ++index;
  }
  return mask;
}

std::vector<std::string_view> chosen_names(const TableType& type, const ColumnMask& mask) {
  std::vector<std::string_view> chosen;
  for (std::size_t i = 0; i < type.names.size(); ++i) {
    if (mask.test(i)) chosen.push_back(type.names[i]);
  }
  return chosen;
}

}  // namespace flowfabric
