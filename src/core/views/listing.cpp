#include "core/views/listing.h"

#include <algorithm>
#include <charconv>

#include "model/text.h"

namespace flowfabric::core {

namespace {

std::string_view letter(ListOrder order) {
  return order == ListOrder::newest ? "n" : "o";
}

bool has_tags(const ListedExecution& execution, const Tags& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& tag) {
    const auto it = execution.tags.find(tag.first);
    return it != execution.tags.end() && it->second == tag.second;
  });
}

template <class T>
bool is_or_any(const std::optional<T>& wanted, const T& value) {
  return !wanted || *wanted == value;
}

}  // namespace

Result<void> check_filter(const ExecutionFilter& filter) {
  if (filter.lane_id) {
    if (auto ok = check_lane(*filter.lane_id); !ok) return ok;
  }
  if (filter.namespace_) {
    if (auto ok = check_namespace(*filter.namespace_); !ok) return ok;
  }
  if (auto ok = check_text("kind", filter.execution_kind.value_or(""), kMaxKeyBytes); !ok) return ok;
  return check_create_tags(filter.tags);
}

bool is_empty(const ExecutionFilter& filter) {
  return filter == ExecutionFilter{};
}

bool matches(const ExecutionFilter& filter, const ListedExecution& execution, const Group& group) {
  const bool in_state = filter.states.empty() ||
                        std::ranges::find(filter.states, execution.public_state) != filter.states.end();
  return in_state && is_or_any(filter.lane_id, execution.lane_id) &&
         is_or_any(filter.namespace_, execution.namespace_) &&
         is_or_any(filter.execution_kind, group.execution_kind) &&
         (!filter.flow_id || filter.flow_id == execution.flow_id) && has_tags(execution, filter.tags) &&
         (!filter.created_after || execution.created_at_ms > *filter.created_after) &&
         (!filter.created_before || execution.created_at_ms < *filter.created_before);
}

ExecutionSummary summary(const ListedExecution& execution, const Group& group) {
  return {.execution_id = execution.key(),
          .execution_kind = group.execution_kind,
          .namespace_ = execution.namespace_,
          .lane_id = execution.lane_id,
          .public_state = execution.public_state,
          .priority = execution.priority,
          .flow_id = execution.flow_id,
          .created_at = execution.created_at_ms,
          .started_at = execution.started_at_ms,
          .completed_at = execution.terminal_at_ms,
          .attempts = execution.total_attempt_count,
          .tags = execution.tags};
}

// "n.1750000000000.{fp:7}:…"
std::string cursor_of(const ListPosition& position, ListOrder order) {
  return std::string(letter(order)) + "." + std::to_string(position.created_at_ms) + "." +
         position.execution_id.to_string();
}

Result<ListPosition> position_of(const std::string& cursor, ListOrder order) {
  const auto prefix = std::string(letter(order)) + ".";
  const auto end = cursor.find('.', prefix.size());
  if (!cursor.starts_with(prefix) || end == cursor.npos) return bad_cursor(cursor);
  ListPosition position;
  const auto* first = cursor.data() + prefix.size();
  const auto* last = cursor.data() + end;
  const auto [rest, failure] = std::from_chars(first, last, position.created_at_ms);
  const auto id = ExecutionId::parse(std::string_view(cursor).substr(end + 1));
  if (failure != std::errc() || rest != last || !id) return bad_cursor(cursor);
  position.execution_id = *id;
  return position;
}

std::unexpected<Error> bad_cursor(const std::string& cursor) {
  return fail_with(ErrorCode::invalid_input, "cursor: not one of this listing",
                   "Give the next_cursor of the page before, as it came, or none for the first page (got '" +
                       truncate_utf8(cursor, 80) + "').");
}

}  // namespace flowfabric::core
