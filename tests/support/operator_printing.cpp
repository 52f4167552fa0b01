#include "support/operator_printing.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const LaneStatus& lane) {
  return out << lane.lane_id << ' ' << lane.state;
}

std::ostream& operator<<(std::ostream& out, const LaneView& lane) {
  out << lane.lane_id << ' ' << lane.state;
  for (const auto& [state, count] : lane.counts) out << ' ' << state << '=' << count;
  print_optional(out << " oldest ", lane.oldest_waiting_at);
  return out << " registered " << lane.registered_at << " by " << lane.registered_by;
}

std::ostream& operator<<(std::ostream& out, const WorkerRegistration& registration) {
  return out << (registration.refreshed ? "refreshed" : "registered") << " until " << registration.expires_at;
}

std::ostream& operator<<(std::ostream& out, const WorkerView& worker) {
  out << worker.worker_id << '/' << worker.worker_instance_id << " in '" << worker.namespace_ << "' lanes";
  for (const auto& lane : worker.lanes) out << ' ' << lane;
  out << " capabilities";
  for (const auto& token : worker.capabilities) out << ' ' << token;
  return out << " heartbeat " << worker.last_heartbeat_at << " ttl " << worker.liveness_ttl_ms
             << " registered " << worker.registered_at << " leases " << worker.leases;
}

std::ostream& operator<<(std::ostream& out, const ExecutionSummary& seen) {
  out << seen.execution_id << ' ' << seen.execution_kind << " in '" << seen.namespace_ << "' on "
      << seen.lane_id << ' ' << seen.public_state << " priority " << seen.priority << " created "
      << seen.created_at;
  print_optional(out << " started ", seen.started_at);
  print_optional(out << " completed ", seen.completed_at);
  out << " attempts " << seen.attempts;
  for (const auto& [key, value] : seen.tags) out << ' ' << key << '=' << value;
  return out;
}

std::ostream& operator<<(std::ostream& out, const ExpiredLease& lease) {
  return out << lease.execution_id << " lease " << lease.lease_id << " epoch " << lease.lease_epoch << " of "
             << lease.worker_instance_id << " until " << lease.expires_at << " attempt "
             << lease.attempt_index;
}

std::ostream& operator<<(std::ostream& out, const BulkOperation& operation) {
  out << operation.operation_id << ' ' << operation.action << ' ' << operation.state << " matched "
      << operation.matched << " done " << operation.done << " failed " << operation.failed << " '"
      << operation.last_error << "' created " << operation.created_at;
  return print_optional(out << " ended ", operation.ended_at);
}

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
  return out << violation.where << ": " << violation.what << (violation.repaired ? " (repaired)" : "");
}

std::ostream& operator<<(std::ostream& out, const StoreReport& report) {
  out << report.executions << " executions, " << report.records << " records, " << report.found << " found, "
      << report.repaired << " repaired";
  for (const auto& violation : report.violations) out << "\n  " << violation;
  return out;
}

}  // namespace flowfabric
