#include "core/lifecycle/bulk.h"

#include <algorithm>

#include "core/execution/cancel.h"
#include "core/lifecycle/priority.h"
#include "core/lifecycle/replay.h"
#include "core/operation.h"
#include "core/views/listing.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kMaxStep = 256;
constexpr std::uint32_t kMaxRate = 100'000;

using enum PublicState;
// What an action can be done to, in the order of the enum.
const std::vector<PublicState> kAlive{waiting, delayed,   rate_limited, waiting_children,
                                      active,  suspended, resumable};
const std::vector<PublicState> kEnded{completed, failed, cancelled, expired, skipped};

const std::vector<PublicState>& states_for(BulkAction action) {
  return action == BulkAction::replay ? kEnded : kAlive;
}

std::string join(const std::vector<PublicState>& states) {
  std::string joined;
  for (const auto state : states) joined.append(joined.empty() ? "" : ",").append(enum_name(state));
  return joined;
}

std::vector<PublicState> split(std::string_view joined) {
  std::vector<PublicState> states;
  while (!joined.empty()) {
    const auto end = std::min(joined.find(','), joined.size());
    if (const auto state = enum_from_name<PublicState>(joined.substr(0, end))) states.push_back(*state);
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return states;
}

BulkFilter columns(const ExecutionFilter& filter) {
  return {.filter_lane = filter.lane_id,
          .filter_states = join(filter.states),
          .filter_namespace = filter.namespace_,
          .filter_kind = filter.execution_kind,
          .filter_flow_id = filter.flow_id,
          .filter_tags = filter.tags,
          .filter_created_after_ms = filter.created_after,
          .filter_created_before_ms = filter.created_before};
}

ExecutionFilter as_given(const BulkFilter& columns) {
  return {.lane_id = columns.filter_lane,
          .states = split(columns.filter_states),
          .namespace_ = columns.filter_namespace,
          .execution_kind = columns.filter_kind,
          .flow_id = columns.filter_flow_id,
          .tags = columns.filter_tags,
          .created_after = columns.filter_created_after_ms,
          .created_before = columns.filter_created_before_ms};
}

Result<void> check_start(const StartBulkOperation& request) {
  if (is_empty(request.filter)) {
    return fail_with(ErrorCode::invalid_input, "filter: empty",
                     "Name at least one condition; to mean every execution, name every state.");
  }
  if (auto ok = check_filter(request.filter); !ok) return ok;
  if (request.rate_per_second && (*request.rate_per_second < 1 || *request.rate_per_second > kMaxRate)) {
    return fail_with(ErrorCode::invalid_input, "rate_per_second: out of range",
                     "Give a rate between 1 and 100000 per second, or none.");
  }
  return check_text("reason", request.reason, kAnyLength);
}

void end_job(BulkJob& job, BulkState state, const Context& at) {
  job.state = state;
  job.ended_at_ms = at.now_ms;
  job.next_due_at_ms.reset();
  if (at.retention_ms > 0) {
    job.next_due_at_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(at.retention_ms));
  }
}

}  // namespace

BulkOperation view(const BulkJob& job) {
  return {.operation_id = job.operation_id,
          .action = job.action,
          .state = job.state,
          .filter = as_given(job.filter),
          .matched = job.matched,
          .done = job.done,
          .failed = job.failed,
          .last_error = job.last_error,
          .created_at = job.created_at_ms,
          .ended_at = job.ended_at_ms};
}

Error no_such_operation(const OperationId& id) {
  return {ErrorCode::operation_not_found, id.to_string(),
          "No such bulk operation: check the id; it may have been removed after its retention."};
}

Result<BulkOperation> apply(Unit& unit, const StartBulkOperation& request, Context& at) {
  if (auto ok = check_start(request); !ok) return std::unexpected(ok.error());
  const auto id = request.operation_id ? *request.operation_id : at.mint<OperationId>();
  if (request.operation_id) {
    if (const auto* known = unit.find<BulkJob>({id})) return view(*known);
  }
  return view(unit.insert(BulkJob{.operation_id = id,
                                  .action = request.action,
                                  .state = BulkState::running,
                                  .filter = columns(request.filter),
                                  .reason = truncate_utf8(request.reason, kMaxTextBytes),
                                  .new_priority = request.new_priority,
                                  .rate_per_second = request.rate_per_second,
                                  .created_at_ms = at.now_ms,
                                  .next_due_at_ms = at.now_ms}));
}

Result<BulkOperation> apply(Unit& unit, const CancelBulkOperation& request, Context& at) {
  const auto* found = unit.find<BulkJob>({request.operation_id});
  if (!found) return std::unexpected(no_such_operation(request.operation_id));
  if (found->state != BulkState::running) return view(*found);
  auto& job = unit.edit<BulkJob>({request.operation_id});
  end_job(job, BulkState::cancelled, at);
  return view(job);
}

ExecutionFilter filter_of(const BulkJob& job) {
  auto filter = as_given(job.filter);
  const auto& possible = states_for(job.action);
  if (filter.states.empty()) {
    filter.states = possible;
  } else {
    std::erase_if(filter.states,
                  [&](PublicState state) { return std::ranges::find(possible, state) == possible.end(); });
  }
  const auto after_start = job.created_at_ms + 1;
  filter.created_before = std::min(filter.created_before.value_or(after_start), after_start);
  return filter;
}

Result<BulkItem> apply_bulk(Unit& unit, const BulkJob& job, const ExecutionId& id, Context& at) {
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return BulkItem::left_alone;
  const auto filter = filter_of(job);
  const auto& group = unit.require<Group>({execution->group_id});
  const bool ended_since = execution->terminal_at_ms && *execution->terminal_at_ms > job.created_at_ms;
  // With no state left that the action could be done in, the filter would match all of them.
  if (filter.states.empty() || ended_since || !matches(filter, listed(*execution), group))
    return BulkItem::left_alone;
  const auto done = [](const auto& answer) -> Result<BulkItem> {
    if (!answer) return std::unexpected(answer.error());
    return BulkItem::done;
  };
  switch (job.action) {
    case BulkAction::cancel:
      return done(apply(unit, CancelExecution{.execution_id = id, .reason = job.reason}, at));
    case BulkAction::replay:
      return done(apply(
          unit, ReplayExecution{.execution_id = id, .reason = job.reason, .requested_by = "bulk_operation"},
          at));
    case BulkAction::change_priority:
      return done(apply(unit, ChangePriority{.execution_id = id, .new_priority = job.new_priority}, at));
  }
  return BulkItem::left_alone;
}

std::uint32_t bulk_step_size(const BulkJob& job) {
  // Ten small steps a second rather than one large one.
  return job.rate_per_second ? std::clamp(*job.rate_per_second / 10, 1u, kMaxStep) : kMaxStep;
}

void record_bulk_step(Unit& unit, const BulkStep& step, Context& at) {
  const auto* found = unit.find<BulkJob>({step.operation_id});
  if (!found || found->state != BulkState::running || found->cursor != step.after) return;
  auto& job = unit.edit<BulkJob>({step.operation_id});
  job.done += step.done;
  job.failed += step.failed;
  job.matched = job.done + job.failed;
  if (!step.last_error.empty()) job.last_error = step.last_error;
  if (!step.next) return end_job(job, BulkState::finished, at);
  job.cursor = *step.next;
  std::uint64_t wait_ms = 0;
  if (const auto rate = job.rate_per_second) {
    wait_ms = (bulk_step_size(job) * std::uint64_t{1000} + *rate - 1) / *rate;
  }
  job.next_due_at_ms = saturating_add(at.now_ms, wait_ms);
}

Rule run_bulk_job_clock(Unit& unit, const BulkJobKey& key, Context& at) {
  const auto* job = unit.find<BulkJob>(key);
  const bool over =
      job && job->state != BulkState::running && job->next_due_at_ms && *job->next_due_at_ms <= at.now_ms;
  if (!over) return Rule::none;
  unit.erase<BulkJob>(key);
  return Rule::ttl_sweep;
}

FLOWFABRIC_OPERATION(StartBulkOperation)
FLOWFABRIC_OPERATION(CancelBulkOperation)

}  // namespace flowfabric::core
