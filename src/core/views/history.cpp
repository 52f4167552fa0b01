#include "core/views/history.h"

#include <algorithm>
#include <tuple>

#include "core/index_rules.h"
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
  paused,  // for other reasons than a suspension, or gone on
  lost,
  attempt_ended,
  delayed,  // before an attempt, or to be tried again
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

// ---- delays, and other pauses without a suspension ----

std::string word_of(const std::string& pause_reason) {
  if (pause_reason == kWorkerDelay) return "delayed";
  return pause_reason == kWaitingChildren ? "waiting_for_children" : pause_reason;
}

void tell_pause(Story& story, const Execution& execution, const LeaseEvent& event) {
  std::map<std::string, std::string> fields{{"attempt_index", std::to_string(event.attempt_index)},
                                            {"worker_instance_id", event.worker_instance_id}};
  if (event.event_type == LeaseEventType::acquired) {
    story.tell(event.occurred_at_ms, event.attempt_index, Place::paused, "attempt_resumed",
               std::move(fields));
    return;
  }
  if (event.reason == kWorkerDelay) {
    fields["reason"] = enum_name(BlockingReason::waiting_for_delay);
    const auto& end = execution.last_end;
    const bool is_latest = end.ended_by == LeaseEnd::delay && end.ended_lease_epoch == event.lease_epoch;
    if (is_latest && end.ended_delay_until_ms) fields["until"] = std::to_string(*end.ended_delay_until_ms);
  }
  story.tell(event.occurred_at_ms, event.attempt_index, Place::paused, word_of(event.reason),
             std::move(fields));
}

// Those of the log, and what the records know of others: it may have been trimmed.
std::vector<LeaseEvent> pauses(const Life& life) {
  auto all = life.pauses;
  std::erase_if(all, [](const LeaseEvent& event) { return !is_pause_reason(event.reason); });
  const auto add = [&](LeaseEvent event) {
    const bool is_known = std::ranges::any_of(life.pauses, [&](const LeaseEvent& logged) {
      return logged.event_type == event.event_type && logged.attempt_index == event.attempt_index &&
             logged.occurred_at_ms == event.occurred_at_ms;
    });
    if (!is_known) all.push_back(std::move(event));
  };
  const auto add_resumption = [&](std::uint32_t attempt, const std::string& worker, std::int64_t at) {
    add({.event_type = LeaseEventType::acquired,
         .attempt_index = attempt,
         .worker_instance_id = worker,
         .occurred_at_ms = at});
  };
  for (const auto& attempt : life.ended) {
    if (attempt.resumed_at_ms) {
      add_resumption(attempt.attempt_index, attempt.worker_instance_id, *attempt.resumed_at_ms);
    }
  }
  const auto& execution = life.execution;
  const auto& current = execution.attempt;
  if (!has_live_attempt(execution)) return all;
  if (current.attempt_resumed_at_ms) {
    add_resumption(current.attempt_index, execution.lease.worker_instance_id, *current.attempt_resumed_at_ms);
  }
  if (current.attempt_suspended_at_ms && is_pause_reason(current.attempt_suspension)) {
    add({.event_type = LeaseEventType::released,
         .lease_epoch = execution.lease_epoch,
         .attempt_index = current.attempt_index,
         .worker_instance_id = execution.lease.worker_instance_id,
         .reason = current.attempt_suspension,
         .occurred_at_ms = *current.attempt_suspended_at_ms});
  }
  return all;
}

void tell_delay(Story& story, std::int64_t at, std::uint32_t attempt, BlockingReason reason,
                const std::optional<std::int64_t>& until) {
  if (!until || *until <= at) return;
  story.tell(at, attempt, Place::delayed, "delayed",
             {{"reason", std::string(enum_name(reason))}, {"until", std::to_string(*until)}});
}

// Before the first attempt, and after suspensions.
void tell_delays(Story& story, const Life& life) {
  tell_delay(story, life.execution.created_at_ms, 0, BlockingReason::waiting_for_delay,
             life.spec.policy.delay_until);
  for (const auto* details : life.suspensions) {
    if (!details->closed_at_ms || details->resume_trigger == ResumeTrigger::none) continue;
    const auto delay_ms = static_cast<std::uint64_t>(details->resume_delay_ms.value_or(0));
    tell_delay(story, *details->closed_at_ms, details->attempt_index,
               BlockingReason::waiting_for_resume_delay, saturating_add(*details->closed_at_ms, delay_ms));
  }
}

// Which attempts others have followed, or will. How long they are waited for is known of the latest.
void tell_retries(Story& story, const Life& life) {
  std::map<std::uint32_t, AttemptType> types;
  for (const auto& attempt : life.ended) types[attempt.attempt_index] = attempt.attempt_type;
  const auto& execution = life.execution;
  if (has_live_attempt(execution)) types[execution.attempt.attempt_index] = execution.attempt.attempt_type;
  for (const auto& attempt : life.ended) {
    const auto& end = execution.last_end;
    const bool is_latest = end.ended_next_attempt_index && end.ended_attempt_id == attempt.attempt_id;
    const auto next = types.find(attempt.attempt_index + 1);
    const bool is_followed =
        next != types.end() && (next->second == AttemptType::retry || next->second == AttemptType::fallback);
    if (!is_latest && !is_followed) continue;
    story.tell(attempt.terminal_at_ms, attempt.attempt_index, Place::delayed, "retry_scheduled",
               {{"attempt_index", std::to_string(attempt.attempt_index)},
                {"until", is_latest ? std::to_string(end.ended_delay_until_ms.value_or(0)) : ""}});
  }
}

void tell_current(Story& story, const Execution& execution) {
  const auto& attempt = execution.attempt;
  if (!has_live_attempt(execution) || !attempt.attempt_started_at_ms) return;
  const auto& worker = execution.lease.worker_instance_id;
  tell_start(story, attempt.attempt_index, *attempt.attempt_started_at_ms, attempt.attempt_type, worker,
             attempt.fallback_tier);
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
  for (const auto& pause : pauses(life)) tell_pause(story, execution, pause);
  tell_delays(story, life);
  tell_retries(story, life);
  std::map<std::string, std::uint32_t> attempts;  // by waitpoint
  for (const auto* details : life.suspensions) {
    for (const auto& waitpoint : details->waitpoint_ids) attempts[waitpoint] = details->attempt_index;
  }
  for (const auto* signal : life.signals) {
    const auto attempt = attempts.find(signal->waitpoint_id.to_string());
    story.tell(signal->accepted_at_ms,
               attempt == attempts.end() ? execution.attempt.attempt_index : attempt->second, Place::signal,
               "signal",
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
