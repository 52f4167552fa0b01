#include "core/history.h"

#include <algorithm>
#include <tuple>

#include "core/transition.h"
#include "model/event_word.h"

namespace flowfabric::core {

namespace {

// What stands where when several things happened in one millisecond: by attempt, and then in this order.
enum class Place {
  created,
  operator_event,
  attempt_started,
  suspended,
  signal,
  resumed,
  lost,
  attempt_ended,
  ended
};

struct Told {
  std::int64_t at;
  std::uint32_t attempt;
  Place place;
  HistoryEntry entry;
};

class Story {
 public:
  void tell(std::int64_t at, std::uint32_t attempt, Place place, std::string what,
            std::map<std::string, std::string> fields) {
    std::erase_if(fields, [](const auto& field) { return field.second.empty(); });
    told_.push_back({at, attempt, place, {at, std::move(what), std::move(fields)}});
  }

  std::vector<HistoryEntry> in_order() && {
    std::ranges::stable_sort(told_, {},
                             [](const Told& each) { return std::tuple(each.at, each.attempt, each.place); });
    std::vector<HistoryEntry> entries;
    for (auto& each : told_) entries.push_back(std::move(each.entry));
    return entries;
  }

 private:
  std::vector<Told> told_;
};

std::string text(const std::optional<std::uint32_t>& number) {
  return number ? std::to_string(*number) : "";
}

void tell_start(Story& story, std::uint32_t index, std::int64_t at, AttemptType type,
                const std::string& worker, const std::optional<std::uint32_t>& tier) {
  story.tell(at, index, Place::attempt_started, "attempt_started",
             {{"attempt_index", std::to_string(index)},
              {"attempt_type", std::string(enum_name(type))},
              {"worker_instance_id", worker},
              {"fallback_tier", text(tier)}});
}

void tell_attempt(Story& story, const Attempt& attempt) {
  const auto index = attempt.attempt_index;
  tell_start(story, index, attempt.started_at_ms, attempt.attempt_type, attempt.worker_instance_id,
             attempt.fallback_tier);
  story.tell(attempt.terminal_at_ms, index, Place::attempt_ended, "attempt_ended",
             {{"attempt_index", std::to_string(index)},
              {"attempt_state", std::string(enum_name(attempt.attempt_state))},
              {"worker_instance_id", attempt.worker_instance_id},
              {"failure_reason", attempt.failure_reason},
              {"failure_category", attempt.failure_category}});
}

void tell_current(Story& story, const Execution& execution) {
  const auto& attempt = execution.attempt;
  if (!has_live_attempt(execution) || !attempt.attempt_started_at_ms) return;
  const auto& worker = execution.lease.worker_instance_id;
  tell_start(story, attempt.attempt_index, *attempt.attempt_started_at_ms, attempt.attempt_type, worker,
             attempt.fallback_tier);
  if (attempt.attempt_resumed_at_ms) {
    story.tell(*attempt.attempt_resumed_at_ms, attempt.attempt_index, Place::resumed, "attempt_resumed",
               {{"attempt_index", std::to_string(attempt.attempt_index)}, {"worker_instance_id", worker}});
  }
  const auto& lost_at = execution.lease.lease_expired_at_ms ? execution.lease.lease_expired_at_ms
                                                            : execution.lease.lease_revoked_at_ms;
  if (lost_at && execution.state.ownership_state != OwnershipState::leased) {
    story.tell(*lost_at, attempt.attempt_index, Place::lost, "lease_lost",
               {{"attempt_index", std::to_string(attempt.attempt_index)},
                {"worker_instance_id", worker},
                {"reason", execution.lease.lease_revoke_reason}});
  }
}

void tell_suspension(Story& story, const SuspensionDetails& details) {
  if (!details.suspension_id) return;
  const auto id = details.suspension_id->to_string();
  story.tell(details.suspended_at_ms, details.attempt_index, Place::suspended, "suspended",
             {{"suspension_id", id}, {"reason", std::string(enum_name(details.reason_code))}});
  if (!details.closed_at_ms) return;
  // It may also have ended with the execution, which does not go on.
  const bool goes_on = details.resume_trigger != ResumeTrigger::none;
  story.tell(*details.closed_at_ms, details.attempt_index, Place::resumed,
             goes_on ? "resumed" : "suspension_ended",
             {{"suspension_id", id},
              {"close_reason", details.close_reason},
              {"trigger", goes_on ? std::string(enum_name(details.resume_trigger)) : ""},
              {"requested_by", details.resume_requested_by}});
}

void tell_end(Story& story, const Execution& execution) {
  if (execution.state.lifecycle_phase != LifecyclePhase::terminal || !execution.terminal_at_ms) return;
  story.tell(*execution.terminal_at_ms, execution.attempt.attempt_index, Place::ended, "ended",
             {{"outcome", std::string(enum_name(execution.state.terminal_outcome))},
              {"failure_reason", execution.failure_reason},
              {"cancellation_reason", execution.cancellation_reason},
              {"cancelled_by", execution.cancelled_by}});
}

}  // namespace

std::vector<HistoryEntry> history(const Life& life) {
  const auto& execution = life.execution;
  Story story;
  story.tell(execution.created_at_ms, 0, Place::created, "created",
             {{"lane_id", execution.lane_id},
              {"execution_kind", life.spec.execution_kind},
              {"namespace", execution.namespace_},
              {"creator_identity", life.spec.creator_identity},
              {"flow_id", execution.flow_id ? execution.flow_id->to_string() : ""}});
  for (const auto& attempt : life.ended) tell_attempt(story, attempt);
  tell_current(story, execution);
  for (const auto* details : life.suspensions) tell_suspension(story, *details);
  for (const auto* signal : life.signals) {
    story.tell(signal->accepted_at_ms, execution.attempt.attempt_index, Place::signal, "signal",
               {{"signal_id", signal->signal_id.to_string()},
                {"signal_name", signal->signal_name},
                {"source_identity", signal->source_identity},
                {"effect", std::string(enum_name(signal->observed_effect))}});
  }
  for (const auto& event : life.operator_events) {
    story.tell(event.occurred_at_ms, 0, Place::operator_event, std::string(word_text(event.event_type)),
               event.details);
  }
  tell_end(story, execution);
  return std::move(story).in_order();
}

}  // namespace flowfabric::core
