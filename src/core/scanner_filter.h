// Whether a due record is for this engine's clock: stores ask for such records only, and what they found is
// judged again under the batch's lock.
#pragma once

#include "core/unit.h"
#include "flowfabric/scanner_filter.h"

namespace flowfabric::core {

// What says whose a record with a clock is.
enum class Belonging {
  to_execution,  // which it is, or is kept under
  to_flow,
  to_namespace,  // tags do not matter
  to_nobody,     // it is for everybody's clock
};
template <class Record>
inline constexpr Belonging kBelonging = Belonging::to_nobody;
template <>
inline constexpr Belonging kBelonging<Execution> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<DependencyDispatch> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<PendingCancelGroup> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<Suspension> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<Stream> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<Waitpoint> = Belonging::to_execution;
template <>
inline constexpr Belonging kBelonging<CancelBacklog> = Belonging::to_flow;
template <>
inline constexpr Belonging kBelonging<Route> = Belonging::to_namespace;
template <>
inline constexpr Belonging kBelonging<Group> = Belonging::to_namespace;
template <>
inline constexpr Belonging kBelonging<Worker> = Belonging::to_namespace;
template <>
inline constexpr Belonging kBelonging<DeadWorker> = Belonging::to_namespace;
template <>
inline constexpr Belonging kBelonging<CreateDedup> = Belonging::to_namespace;

bool is_empty(const ScannerFilter& filter);
bool matches(const ScannerFilter& filter, const std::string& name_space);
bool matches(const ScannerFilter& filter, const std::string& name_space, const Tags& tags);

// Of a join, it is the downstream.
inline ExecutionId execution_of(const EdgeGroupKey& key) {
  return {key.partition_key, key.downstream_eid};
}
template <class Key>
ExecutionId execution_of(const Key& key) {
  return owner_of(key);
}

// `find<Owner>(key)` gives the record that says whose it is. What cannot be found does not pass: never act on
// what may be somebody else's.
template <class Record, class Find>
bool passes(const ScannerFilter& filter, const typename Record::Key& key, Find find) {
  if (is_empty(filter)) return true;
  const auto owner_matches = [&](const auto* owner) {
    return owner && matches(filter, owner->namespace_, owner->tags);
  };
  if constexpr (kBelonging<Record> == Belonging::to_execution) {
    return owner_matches(find.template operator()<Execution>(execution_of(key)));
  } else if constexpr (kBelonging<Record> == Belonging::to_flow) {
    return owner_matches(find.template operator()<Flow>(key));
  } else if constexpr (kBelonging<Record> == Belonging::to_namespace) {
    if constexpr (requires { key.namespace_; }) {
      return matches(filter, key.namespace_);
    } else {
      const auto* record = find.template operator()<Record>(key);
      return record && matches(filter, record->namespace_);
    }
  }
  return true;
}
template <class Record>
bool passes(Unit& unit, const ScannerFilter& filter, const typename Record::Key& key) {
  return passes<Record>(
      filter, key, [&]<class Owner>(const typename Owner::Key& owner) { return unit.find<Owner>(owner); });
}

}  // namespace flowfabric::core
