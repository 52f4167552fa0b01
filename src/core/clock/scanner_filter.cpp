#include "core/clock/scanner_filter.h"

namespace flowfabric::core {

namespace {

bool matches(const ScannerFilter& filter, const std::string& name_space) {
  return !filter.namespace_ || *filter.namespace_ == name_space;
}

template <class Owner>
bool matches(const ScannerFilter& filter, const Owner* owner) {
  if (!owner || !matches(filter, owner->namespace_)) return false;
  if (!filter.instance_tag) return true;
  const auto tag = owner->tags.find(filter.instance_tag->first);
  return tag != owner->tags.end() && tag->second == filter.instance_tag->second;
}

const std::string* namespace_in(Columns columns, const void* of) {
  const auto* column = column_named(columns, "namespace");
  return column ? static_cast<const std::string*>(column->in(of)) : nullptr;
}

bool namespace_passes(const ScannerFilter& filter, const RecordKey& due, const FindOwner& find) {
  if (const auto* in_key = namespace_in(due.type->key->columns, due.key.get())) {
    return matches(filter, *in_key);
  }
  const void* record = find(*due.type, due.key.get());
  return record && matches(filter, *namespace_in(due.type->columns, record));
}

}  // namespace

bool is_empty(const ScannerFilter& filter) {
  return !filter.namespace_ && !filter.instance_tag;
}

ExecutionId execution_of(const RecordKey& due) {
  if (const auto* join = due.key_of<PendingCancelGroup>()) return {join->partition_key, join->downstream_eid};
  return due.type->key->owner(due.key.get());
}

bool passes(const ScannerFilter& filter, const RecordKey& due, const FindOwner& find) {
  if (is_empty(filter)) return true;
  switch (clock_rule(*due.type).belonging) {
    case Belonging::to_execution: {
      const auto id = execution_of(due);
      return matches(filter, static_cast<const Execution*>(find(record_type<Execution>(), &id)));
    }
    case Belonging::to_flow:
      return matches(filter, static_cast<const Flow*>(find(record_type<Flow>(), due.key.get())));
    case Belonging::to_namespace:
      return namespace_passes(filter, due, find);
    case Belonging::to_nobody:
      break;
  }
  return true;
}

bool passes(Unit& unit, const ScannerFilter& filter, const RecordKey& due) {
  return passes(filter, due,
                [&](const RecordType& type, const void* key) { return unit.find(type.place, key); });
}

}  // namespace flowfabric::core
