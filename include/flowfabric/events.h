// Events: a log of everything that happened, in the order of commits, for subscribers.
//
// The engine keeps no state for a subscriber. A subscriber passes its cursor, the place up to which it has
// read, and gets the following events, at once or as soon as there are any. So it misses nothing, can
// continue after a restart, and slows down nobody. Each event of a family has its cursor. A subscriber that
// lost its cursor may see an event twice.
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

// Every condition that is given must match. An event without the field does not match.
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
  std::map<std::string, std::string> fields;  // further fields of the family
  bool operator==(const EventView&) const = default;
};
struct EventBatch {
  std::vector<EventView> events;  // oldest first
  // The cursor for the next call, also if there are no events. It has then moved past events that the filter
  // left out.
  std::string cursor;
  bool operator==(const EventBatch&) const = default;
};
// Returns the events after the cursor. If there are none, the call waits for one, up to `wait_ms`. An old
// cursor, whose next events are gone, is refused with `stream_disconnected`; the error's detail is the oldest
// valid cursor, in base64. A cursor that this store has not given out is `invalid_input`. An event that
// cannot be read is `corruption`, once those before it were given; the error's detail is the cursor after it.
struct FollowEvents {
  using Answer = EventBatch;
  EventFamily family{};
  std::string cursor{};  // bytes; empty: from now on
  EventFilter filter{};
  std::uint32_t limit{256};  // 1–1 000
  std::int64_t wait_ms{0};   // 0–30 000
};

// The cursor before the oldest event that is still kept.
std::string first_cursor();
std::string cursor_of(std::int64_t event_id);
// Refuses bytes that are not a cursor, or a cursor of another kind of store.
Result<std::int64_t> parse_cursor(const std::string& bytes);

}  // namespace flowfabric
