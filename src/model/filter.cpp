#include <algorithm>
#include <charconv>

#include "flowfabric/listing.h"
#include "model/describe.h"
#include "model/text.h"

namespace flowfabric {

namespace {

std::unexpected<Error> refuse(const std::string& word, const std::string& advice) {
  return fail_with(ErrorCode::invalid_input, word, advice);
}

Result<std::int64_t> parse_time(const std::string& key, const std::string& value) {
  std::int64_t time = 0;
  const auto [rest, failure] = std::from_chars(value.data(), value.data() + value.size(), time);
  if (failure == std::errc() && rest == value.data() + value.size()) return time;
  return refuse(key + ": not a time", "Give '" + key + "' in milliseconds since the Unix epoch.");
}

Result<void> apply(ExecutionFilter& filter, const std::string& key, const std::string& value) {
  const auto once = [&](auto& field, auto parsed) -> Result<void> {
    if (field) return refuse(key + ": given twice", "Give '" + key + "' once.");
    field = std::move(parsed);
    return {};
  };
  if (key == "lane") return once(filter.lane_id, value);
  if (key == "namespace") return once(filter.namespace_, value);
  if (key == "kind") return once(filter.execution_kind, value);
  if (key == "state") {
    const auto state = enum_from_name<PublicState>(value);
    if (!state) return refuse("state: unknown", "'" + truncate_utf8(value, 80) + "' is not a public state.");
    if (std::ranges::find(filter.states, *state) == filter.states.end()) filter.states.push_back(*state);
    return {};
  }
  if (key == "flow") {
    const auto flow = FlowId::parse(value);
    if (!flow) return refuse("flow: not a flow id", "Give 'flow' as a UUID.");
    return once(filter.flow_id, *flow);
  }
  if (key == "tag") {
    const auto equals = value.find('=');
    if (equals == value.npos) return refuse("tag: without a value", "Give 'tag' as key=value.");
    const auto [tag, fresh] = filter.tags.emplace(value.substr(0, equals), value.substr(equals + 1));
    if (fresh || tag->second == value.substr(equals + 1)) return {};
    return refuse("tag: given twice", "One tag cannot have two values: give '" + tag->first + "' once.");
  }
  if (key == "created_after" || key == "created_before") {
    const auto time = parse_time(key, value);
    if (!time) return std::unexpected(time.error());
    return once(key == "created_after" ? filter.created_after : filter.created_before, *time);
  }
  return refuse(truncate_utf8(key, 80) + ": unknown filter",
                "Filter by lane, state, namespace, kind, flow, tag, created_after or created_before.");
}

}  // namespace

Result<ExecutionFilter> parse_filter(const std::vector<std::pair<std::string, std::string>>& words) {
  ExecutionFilter filter;
  for (const auto& [key, value] : words) {
    if (auto ok = apply(filter, key, value); !ok) return std::unexpected(ok.error());
  }
  return filter;
}

}  // namespace flowfabric
