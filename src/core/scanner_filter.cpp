#include "core/scanner_filter.h"

namespace flowfabric::core {

namespace {

bool is_empty(const ScannerFilter& filter) {
  return !filter.namespace_ && !filter.instance_tag;
}

bool matches(const ScannerFilter& filter, const std::string& name_space) {
  return !filter.namespace_ || *filter.namespace_ == name_space;
}

// An execution or a flow.
template <class Record>
bool passes_record(Unit& unit, const ScannerFilter& filter, const typename Record::Key& key) {
  if (is_empty(filter)) return true;
  const auto* record = unit.find<Record>(key);
  if (!record || !matches(filter, record->namespace_)) return false;
  if (!filter.instance_tag) return true;
  const auto tag = record->tags.find(filter.instance_tag->first);
  return tag != record->tags.end() && tag->second == filter.instance_tag->second;
}

}  // namespace

bool passes(Unit& unit, const ScannerFilter& filter, const ExecutionId& id) {
  return passes_record<Execution>(unit, filter, id);
}
bool passes(Unit& unit, const ScannerFilter& filter, const DependencyDispatchKey& key) {
  return passes_record<Execution>(unit, filter, {key.partition_key, key.execution_id});
}
bool passes(Unit& unit, const ScannerFilter& filter, const EdgeGroupKey& key) {
  return passes_record<Execution>(unit, filter, {key.partition_key, key.downstream_eid});
}
bool passes(Unit& unit, const ScannerFilter& filter, const SuspensionKey& key) {
  return passes_record<Execution>(unit, filter, owner_of(key));
}
bool passes(Unit& unit, const ScannerFilter& filter, const StreamKey& key) {
  return passes_record<Execution>(unit, filter, owner_of(key));
}
bool passes(Unit& unit, const ScannerFilter& filter, const WaitpointRecordKey& key) {
  return passes_record<Execution>(unit, filter, owner_of(key));
}
bool passes(Unit& unit, const ScannerFilter& filter, const FlowKey& key) {
  return passes_record<Flow>(unit, filter, key);
}
bool passes(Unit& unit, const ScannerFilter& filter, const RouteKey& key) {
  if (is_empty(filter)) return true;
  const auto* route = unit.find<Route>(key);
  return route && matches(filter, route->namespace_);
}
bool passes(Unit&, const ScannerFilter& filter, const WorkerKey& key) {
  return matches(filter, key.namespace_);
}
bool passes(Unit&, const ScannerFilter& filter, const DeadWorkerKey& key) {
  return matches(filter, key.namespace_);
}
bool passes(Unit&, const ScannerFilter& filter, const CreateDedupKey& key) {
  return matches(filter, key.namespace_);
}
// These belong to nobody's namespace.
bool passes(Unit&, const ScannerFilter&, const BulkJobKey&) {
  return true;
}
bool passes(Unit&, const ScannerFilter&, const BudgetKey&) {
  return true;
}
bool passes(Unit&, const ScannerFilter&, const UsageDedupKey&) {
  return true;
}
bool passes(Unit&, const ScannerFilter&, const QuotaPolicyKey&) {
  return true;
}

}  // namespace flowfabric::core
