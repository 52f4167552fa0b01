#include "support/printing.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const StateVector& state) {
  return out << state.lifecycle_phase << '/' << state.ownership_state << '/' << state.eligibility_state << '/'
             << state.blocking_reason << '/' << state.terminal_outcome << '/' << state.attempt_state << " → "
             << state.public_state;
}

std::ostream& operator<<(std::ostream& out, const ExecutionId& id) {
  return out << id.to_string();
}

std::ostream& operator<<(std::ostream& out, const LeaseFence& fence) {
  print_optional(out << "fence{", fence.lease_id);
  print_optional(out << ", ", fence.lease_epoch);
  return print_optional(out << ", ", fence.attempt_id) << '}';
}

std::ostream& operator<<(std::ostream& out, const Creation& creation) {
  out << creation.execution_id << (creation.duplicate ? " duplicate " : " created ");
  return print_optional(out, creation.public_state);
}

std::ostream& operator<<(std::ostream& out, const Failed& failed) {
  if (!failed.retry_scheduled) return out << "failed for good";
  return out << "attempt " << failed.next_attempt_index << " at " << failed.delay_until;
}

std::ostream& operator<<(std::ostream& out, const NotActiveDetails& details) {
  return out << details.lifecycle_phase << '/' << details.terminal_outcome << " epoch " << details.lease_epoch
             << " attempt '" << details.attempt_id << '\'';
}

std::ostream& operator<<(std::ostream& out, const ExecutionSnapshot& seen) {
  out << seen.execution_id << ' ' << seen.state << " '" << seen.blocking_detail << "' epoch "
      << seen.lease_epoch << " attempts " << seen.total_attempt_count << " retries " << seen.retry_count
      << " reclaims " << seen.lease_reclaim_count << " mutated " << seen.last_mutation_at;
  if (seen.lease) out << " lease until " << seen.lease->expires_at;
  return out;
}

std::ostream& operator<<(std::ostream& out, const AttemptSnapshot& attempt) {
  return out << attempt.attempt_index << ' ' << attempt.attempt_type << ' ' << attempt.attempt_state << ' '
             << attempt.failure_reason;
}

std::ostream& operator<<(std::ostream& out, const LeaseEventView& event) {
  return out << event.event_id << ": " << event.lease_epoch << ' ' << event.type << ' ' << event.reason;
}

std::ostream& operator<<(std::ostream& out, const CompletionEventView& event) {
  return out << event.event_id << ": " << event.outcome;
}

}  // namespace flowfabric
