// The event logs.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/event_word.h"
#include "flowfabric/events.h"
#include "flowfabric/ids.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"
#include "flowfabric/registry.h"
#include "flowfabric/state.h"

namespace flowfabric {

// Reasons of lease events by which attempts pause and go on (core/index_rules.h).
inline constexpr const char* kWorkerDelay = "worker_delay";
inline constexpr const char* kWaitingChildren = "waiting_children";
inline constexpr const char* kPausedByBudget = "paused_by_budget";
inline constexpr const char* kClaimResumed = "claim_resumed";
inline constexpr const char* kGrantAndClaimResumed = "issue_grant_and_claim_resumed";

// Events are only ever appended; the store numbers them in commit order.
struct LeaseEvent {
  static constexpr const char* table = "ff_lease_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  EventWord<LeaseEventType> event_type;
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  AttemptId attempt_id;
  std::uint32_t attempt_index{};
  std::string worker_id;
  std::string worker_instance_id;
  std::string reason;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  std::string lane_id;
  std::optional<FlowId> flow_id;
  bool operator==(const LeaseEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(LeaseEvent, (),
                      (event_id, partition_key, execution_id, event_type, lease_id, lease_epoch, attempt_id,
                       attempt_index, worker_id, worker_instance_id, reason, occurred_at_ms, namespace_,
                       instance_tag, tags, lane_id, flow_id))

struct CompletionEvent {
  static constexpr const char* table = "ff_completion_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::optional<FlowId> flow_id;
  EventWord<TerminalOutcome> outcome;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  std::string lane_id;
  bool operator==(const CompletionEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(CompletionEvent, (),
                      (event_id, partition_key, execution_id, flow_id, outcome, occurred_at_ms, namespace_,
                       instance_tag, tags, lane_id))

struct OperatorEvent {
  static constexpr const char* table = "ff_operator_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  EventWord<OperatorEventType> event_type;
  Tags details;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  std::string lane_id;
  std::optional<FlowId> flow_id;
  bool operator==(const OperatorEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(OperatorEvent, (),
                      (event_id, partition_key, execution_id, event_type, details, occurred_at_ms, namespace_,
                       instance_tag, tags, lane_id, flow_id))

struct SignalEvent {
  static constexpr const char* table = "ff_signal_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  SignalId signal_id;
  WaitpointId waitpoint_id;
  std::string source_identity;
  std::string effect;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  std::string raw_effect;
  std::string lane_id;
  std::optional<FlowId> flow_id;
  bool operator==(const SignalEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(SignalEvent, (),
                      (event_id, partition_key, execution_id, signal_id, waitpoint_id, source_identity,
                       effect, occurred_at_ms, namespace_, instance_tag, tags, raw_effect, lane_id, flow_id))

struct TagEvent {
  static constexpr const char* table = "ff_instance_tag_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  EventWord<TagEventType> event_type;
  std::string tag;
  std::string value;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  std::string lane_id;
  std::optional<FlowId> flow_id;
  bool operator==(const TagEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(TagEvent, (),
                      (event_id, partition_key, execution_id, event_type, tag, value, occurred_at_ms,
                       namespace_, instance_tag, tags, lane_id, flow_id))

struct WorkerEvent {
  static constexpr const char* table = "ff_worker_registry_event";

  std::int64_t event_id{};
  std::string namespace_;
  std::string worker_instance_id;
  std::string worker_id;
  EventWord<WorkerEventKind> event_kind;
  std::string reason;
  std::int64_t occurred_at_ms{};
  bool operator==(const WorkerEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(WorkerEvent, (),
                      (event_id, namespace_, worker_instance_id, worker_id, event_kind, reason,
                       occurred_at_ms))

template <class Event>
inline constexpr EventFamily family_of = EventFamily::lease_history;
template <>
inline constexpr EventFamily family_of<CompletionEvent> = EventFamily::completion;
template <>
inline constexpr EventFamily family_of<SignalEvent> = EventFamily::signal_delivery;
template <>
inline constexpr EventFamily family_of<OperatorEvent> = EventFamily::operator_;
template <>
inline constexpr EventFamily family_of<TagEvent> = EventFamily::instance_tags;
template <>
inline constexpr EventFamily family_of<WorkerEvent> = EventFamily::worker_registry;

}  // namespace flowfabric
