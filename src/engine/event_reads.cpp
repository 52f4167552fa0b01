#include "engine/event_reads.h"

#include <algorithm>

#include "core/lifecycle/expiry.h"
#include "model/base64.h"
#include "model/event_word.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxEvents = 1000;
constexpr std::int64_t kMaxWaitMs = 30'000;
// How many events one look passes at most, if none of them is wanted: on the thread of who asks, and on the
// one that looks for all who wait.
constexpr std::size_t kMaxPassed = 20'000;
constexpr std::size_t kMaxPassedForAll = 1000;

Result<void> check(const FollowEvents& request) {
  if (request.limit < 1 || request.limit > kMaxEvents) {
    return fail_with(ErrorCode::invalid_input, "limit: out of range", "Ask for 1 to 1000 events.");
  }
  if (request.wait_ms < 0 || request.wait_ms > kMaxWaitMs) {
    return fail_with(ErrorCode::invalid_input, "wait_ms: out of range", "Wait for 0 to 30000 ms.");
  }
  return {};
}

// ---- what each family says ----

void describe(const LeaseEvent& event, EventView& seen) {
  seen.type = word_text(event.event_type);
  // Nobody else takes leases away: the other is the clock, when there have been too many losses.
  const bool by_operator = event.reason != core::kMaxReclaimsExceeded;
  const bool is_revoked = event.event_type == LeaseEventType::revoked;
  seen.fields = {{"lease_id", event.lease_id.to_string()},
                 {"lease_epoch", std::to_string(event.lease_epoch)},
                 {"attempt_id", event.attempt_id.to_string()},
                 {"attempt_index", std::to_string(event.attempt_index)},
                 {"worker_id", event.worker_id},
                 {"worker_instance_id", event.worker_instance_id},
                 {"reason", event.reason},
                 {"revoked_by", !is_revoked   ? ""
                                : by_operator ? "operator"
                                              : "reconciler"}};
}
void describe(const CompletionEvent& event, EventView& seen) {
  seen.type = word_text(event.outcome);
  seen.fields = {{"outcome", seen.type}};
}
void describe(const SignalEvent& event, EventView& seen) {
  seen.type = event.effect;
  seen.fields = {{"signal_id", event.signal_id.to_string()},
                 {"waitpoint_id", event.waitpoint_id.to_string()},
                 {"source_identity", event.source_identity},
                 {"effect", event.effect},
                 {"raw_effect", event.raw_effect}};
}
void describe(const OperatorEvent& event, EventView& seen) {
  seen.type = word_text(event.event_type);
  seen.fields = event.details;
}
void describe(const TagEvent& event, EventView& seen) {
  seen.type = word_text(event.event_type);
  seen.fields = {{"tag", event.tag}, {"value", event.value}};
}
void describe(const WorkerEvent& event, EventView& seen) {
  seen.type = word_text(event.event_kind);
  seen.fields = {{"worker_id", event.worker_id},
                 {"worker_instance_id", event.worker_instance_id},
                 {"reason", event.reason}};
}

template <class Event>
inline constexpr bool is_of_execution = requires(Event event) {
  event.execution_id;
};

template <class Event>
EventView view(const Event& event) {
  EventView seen{.family = family_of<Event>, .cursor = cursor_of(event.event_id), .type = ""};
  seen.at = event.occurred_at_ms;
  describe(event, seen);
  if constexpr (is_of_execution<Event>) {
    seen.execution_id = ExecutionId{event.partition_key, event.execution_id};
    if (event.flow_id) seen.fields["flow_id"] = event.flow_id->to_string();
    seen.fields["lane_id"] = event.lane_id;
    seen.fields["instance_tag"] = event.instance_tag;
  }
  seen.fields["namespace"] = event.namespace_;
  std::erase_if(seen.fields, [](const auto& field) { return field.second.empty(); });
  return seen;
}

template <class Event>
bool is_shown(const Event&) {
  return true;
}
// Subscribers are told of a replay by the operators' events: it is not what becomes of a lease.
bool is_shown(const LeaseEvent& event) {
  return event.event_type != LeaseEventType::replay_initiated;
}

bool has_tag(const Tags& tags, const EventFilter& filter) {
  const auto it = tags.find(filter.tag->first);
  return it != tags.end() && it->second == filter.tag->second;
}

// Events carry the tags that their execution had. Those of tags carry only the one that they tell of, so that
// many tags at once are not copied with each of them: what else it is tagged with, the execution says.
template <class Event>
bool has_tag(Reading& reading, const EventFilter& filter, const Event& event) {
  if (has_tag(event.tags, filter)) return true;
  if constexpr (std::is_same_v<Event, TagEvent>) {
    const auto* execution = reading.unit.find<Execution>({event.partition_key, event.execution_id});
    return execution && has_tag(execution->tags, filter);
  }
  return false;
}

// Loads what the function above will look for, all at once.
void load_for(Reading& reading, const EventFilter& filter, const std::vector<TagEvent>& events) {
  if (!filter.tag) return;
  for (const auto& event : events) {
    if (!has_tag(event.tags, filter)) reading.unit.want<Execution>({event.partition_key, event.execution_id});
  }
  reading.session.load(reading.unit);
}
template <class Event>
void load_for(Reading&, const EventFilter&, const std::vector<Event>&) {}

template <class Event>
bool matches(Reading& reading, const EventFilter& filter, const Event& event) {
  if (filter.namespace_ && event.namespace_ != *filter.namespace_) return false;
  if constexpr (is_of_execution<Event>) {
    if (filter.tag && !has_tag(reading, filter, event)) return false;
    if (filter.lane_id && event.lane_id != *filter.lane_id) return false;
    if (filter.flow_id && event.flow_id != filter.flow_id) return false;
    const ExecutionId id{event.partition_key, event.execution_id};
    return !filter.execution_id || *filter.execution_id == id;
  }
  return !filter.tag && !filter.lane_id && !filter.flow_id && !filter.execution_id;
}

// ---- reading on ----

struct Progress {
  EventBatch batch;
  std::int64_t position{};
  bool has_more{false};                 // that it has not looked at
  std::optional<std::int64_t> damaged;  // the event after those, if it cannot be read
};

template <class Event>
void read_on(Reading& reading, const FollowEvents& request, std::size_t most, Progress& progress) {
  const auto& types = request.filter.types;
  const auto page_size = request.filter == EventFilter{} ? request.limit : kMaxEvents;
  for (std::size_t passed = 0; passed < most; passed += page_size) {
    const auto page = reading.session.event_page<Event>(progress.position, page_size);
    load_for(reading, request.filter, page.found);
    for (const auto& event : page.found) {
      if (progress.batch.events.size() == request.limit) return;
      progress.position = event.event_id;
      if (!is_shown(event) || !matches(reading, request.filter, event)) continue;
      auto seen = view(event);
      const bool wanted = types.empty() || std::ranges::find(types, seen.type) != types.end();
      if (wanted) progress.batch.events.push_back(std::move(seen));
    }
    if (progress.batch.events.size() == request.limit) return;
    progress.damaged = page.damaged;
    if (page.damaged || page.found.size() < page_size) return;
  }
  progress.has_more = true;
}

void read_on(Reading& reading, const FollowEvents& request, std::size_t most, Progress& progress) {
  switch (request.family) {
    case EventFamily::lease_history:
      return read_on<LeaseEvent>(reading, request, most, progress);
    case EventFamily::completion:
      return read_on<CompletionEvent>(reading, request, most, progress);
    case EventFamily::signal_delivery:
      return read_on<SignalEvent>(reading, request, most, progress);
    case EventFamily::operator_:
      return read_on<OperatorEvent>(reading, request, most, progress);
    case EventFamily::instance_tags:
      return read_on<TagEvent>(reading, request, most, progress);
    case EventFamily::worker_registry:
      return read_on<WorkerEvent>(reading, request, most, progress);
  }
}

// Whether everything after this position is still there. One after the last is of another store, or of a time
// that this one has not come to.
Result<void> check_place(const store::EventRange& range, std::int64_t position) {
  if (position > range.last) {
    return fail_with(ErrorCode::invalid_input, "cursor",
                     "This store has not given out this cursor: subscribe anew, with an empty one.");
  }
  // Whoever begins at the beginning takes what there is.
  if (position == 0 || position >= range.trimmed_up_to) return {};
  return fail_with(ErrorCode::stream_disconnected, to_base64(cursor_of(range.trimmed_up_to)),
                   "Events after this cursor are gone: go on with the oldest cursor there is, given here.");
}

Result<Progress> look(Readers& readers, const FollowEvents& request, std::int64_t position,
                      std::size_t most) {
  return readers.read([&](Reading& reading) -> Result<Progress> {
    Progress progress{{}, position};
    read_on(reading, request, most, progress);
    // Asked last, so that nothing can have gone unnoticed.
    const auto range = reading.session.event_range(request.family);
    if (auto ok = check_place(range, position); !ok) return std::unexpected(ok.error());
    // Whatever comes before it is given first.
    if (progress.damaged && progress.batch.events.empty()) {
      return fail_with(ErrorCode::corruption, to_base64(cursor_of(*progress.damaged)),
                       "An event cannot be read: go on after it, with the cursor given here.");
    }
    progress.batch.cursor = cursor_of(progress.position);
    return progress;
  });
}

// Where the request begins.
Result<std::int64_t> position_of(Readers& readers, const FollowEvents& request) {
  if (!request.cursor.empty()) return parse_cursor(request.cursor);
  return readers.read([&](Reading& reading) -> Result<std::int64_t> {
    return reading.session.event_range(request.family).end;
  });
}

}  // namespace

void follow(Readers& readers, Watchers& watchers, FollowEvents request,
            std::function<void(Result<EventBatch>)> answer) {
  if (auto ok = check(request); !ok) return answer(std::unexpected(ok.error()));
  const auto from = position_of(readers, request);
  if (!from) return answer(std::unexpected(from.error()));
  auto first = look(readers, request, *from, kMaxPassed);
  if (!first) return answer(std::unexpected(first.error()));
  if (!first->batch.events.empty() || first->has_more || request.wait_ms == 0) {
    return answer(std::move(first->batch));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.wait_ms);
  auto name = feed_of(request.family);
  const bool waits = watchers.watch(
      std::move(name), until,
      // What was passed is not read again.
      [&readers, request = std::move(request), answer, position = first->position](bool last) mutable {
        auto found = look(readers, request, position, kMaxPassedForAll);
        if (!found) {
          answer(std::unexpected(found.error()));
          return true;
        }
        position = found->position;
        if (!last && found->batch.events.empty() && !found->has_more) return false;
        answer(std::move(found->batch));
        return true;
      });
  if (!waits) answer(std::unexpected(too_many_wait()));
}

}  // namespace flowfabric::engine
