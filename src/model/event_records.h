// The event logs.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/ids.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"
#include "flowfabric/registry.h"
#include "flowfabric/state.h"

namespace flowfabric {

// Events are only ever appended; the store numbers them in commit order.
struct LeaseEvent {
  static constexpr const char* table = "ff_lease_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  LeaseEventType event_type{};
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
  bool operator==(const LeaseEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(LeaseEvent, (),
                      (event_id, partition_key, execution_id, event_type, lease_id, lease_epoch, attempt_id,
                       attempt_index, worker_id, worker_instance_id, reason, occurred_at_ms, namespace_,
                       instance_tag, tags))

struct CompletionEvent {
  static constexpr const char* table = "ff_completion_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::optional<FlowId> flow_id;
  TerminalOutcome outcome{};
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  bool operator==(const CompletionEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(CompletionEvent, (),
                      (event_id, partition_key, execution_id, flow_id, outcome, occurred_at_ms, namespace_,
                       instance_tag, tags))

struct OperatorEvent {
  static constexpr const char* table = "ff_operator_event";

  std::int64_t event_id{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  OperatorEventType event_type{};
  Tags details;
  std::int64_t occurred_at_ms{};
  std::string namespace_;
  std::string instance_tag;
  Tags tags;
  bool operator==(const OperatorEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(OperatorEvent, (),
                      (event_id, partition_key, execution_id, event_type, details, occurred_at_ms, namespace_,
                       instance_tag, tags))

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
  bool operator==(const SignalEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(SignalEvent, (),
                      (event_id, partition_key, execution_id, signal_id, waitpoint_id, source_identity,
                       effect, occurred_at_ms, namespace_, instance_tag, tags))

struct WorkerEvent {
  static constexpr const char* table = "ff_worker_registry_event";

  std::int64_t event_id{};
  std::string namespace_;
  std::string worker_instance_id;
  std::string worker_id;
  WorkerEventKind event_kind{};
  std::string reason;
  std::int64_t occurred_at_ms{};
  bool operator==(const WorkerEvent&) const = default;
};
BOOST_DESCRIBE_STRUCT(WorkerEvent, (),
                      (event_id, namespace_, worker_instance_id, worker_id, event_kind, reason,
                       occurred_at_ms))

}  // namespace flowfabric
