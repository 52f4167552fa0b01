// Events: what has happened, in the order in which it was committed, for those who want to be told.
//
// Nothing is kept for a subscriber: it says how far it has read (its cursor), and is given what comes after,
// at once or as soon as there is something. So it cannot be skipped, it can go on after a restart, and it
// slows down nobody. Each event of a family has its cursor; an event may come twice, if a cursor was lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"

namespace flowfabric {

enum class EventFamily : std::uint8_t {
  lease_history,
  completion,
  signal_delivery,
  operator_,
  instance_tags,
  worker_registry
};
BOOST_DESCRIBE_ENUM(EventFamily, lease_history, completion, signal_delivery, operator_, instance_tags,
                    worker_registry)

enum class TagEventType : std::uint8_t { attached, cleared };
BOOST_DESCRIBE_ENUM(TagEventType, attached, cleared)

// All that is given must match; what an event does not have matches nothing.
struct EventFilter {
  std::optional<std::string> namespace_{};
  std::optional<std::pair<std::string, std::string>> tag{};  // key and value
  std::optional<std::string> lane_id{};
  std::optional<FlowId> flow_id{};
  std::optional<ExecutionId> execution_id{};
  std::vector<std::string> types{};  // any of them; empty: all
  bool operator==(const EventFilter&) const = default;
};

struct EventView {
  EventFamily family{};
  std::string cursor;  // bytes
  std::string type;    // acquired, …; the outcome of a completion; the effect of a signal; …
  std::optional<ExecutionId> execution_id;
  std::int64_t at{};
  std::map<std::string, std::string> fields;  // what else the family says
  bool operator==(const EventView&) const = default;
};
struct EventBatch {
  std::vector<EventView> events;  // oldest first
  // To go on with, also if there are none. It has moved then, if many were passed that are not asked for.
  std::string cursor;
  bool operator==(const EventBatch&) const = default;
};
// What has happened after the cursor. If there is nothing, it waits until there is, or its time is up.
// A cursor of an older day, whose events are gone, is refused with `stream_disconnected`; the error's detail
// is the oldest cursor that there is, in base64. One that this store has not given out is `invalid_input`.
// An event that cannot be read is `corruption`, once those before it were given; the error's detail is the
// cursor to go on with, after it.
struct FollowEvents {
  using Answer = EventBatch;
  EventFamily family{};
  std::string cursor{};  // bytes; empty: from now on
  EventFilter filter{};
  std::uint32_t limit{256};  // 1–1 000
  std::int64_t wait_ms{0};   // 0–30 000
};

// The cursor before the first event that is still there.
std::string first_cursor();
std::string cursor_of(std::int64_t event_id);
// Refuses what is none, or one of another kind of store.
Result<std::int64_t> parse_cursor(const std::string& bytes);

}  // namespace flowfabric
