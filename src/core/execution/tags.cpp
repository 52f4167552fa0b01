#include "core/execution/tags.h"

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

ExecutionTagKey row_of(const Execution& execution, const std::string& key, const std::string& value) {
  return {key, value, execution.created_at_ms, execution.partition_key, execution.execution_id};
}

void set_one(Unit& unit, Execution& execution, const std::string& key,
             const std::optional<std::string>& value, const Context& at) {
  const auto it = execution.tags.find(key);
  const bool known = it != execution.tags.end();
  if (known && value && it->second == *value) return;
  if (known) {
    const auto before = it->second;
    unit.erase<ExecutionTag>(row_of(execution, key, before));
    execution.tags.erase(it);
    append_tag_event(unit, execution, TagEventType::cleared, key, before, at);
  }
  if (!value) return;
  unit.insert(ExecutionTag{row_of(execution, key, *value)});
  execution.tags.emplace(key, *value);
  append_tag_event(unit, execution, TagEventType::attached, key, *value, at);
}

}  // namespace

std::vector<ExecutionTagKey> tag_rows(const Execution& execution) {
  std::vector<ExecutionTagKey> rows;
  for (const auto& [key, value] : execution.tags) rows.push_back(row_of(execution, key, value));
  return rows;
}

void insert_tag_rows(Unit& unit, const Execution& execution) {
  for (auto& row : tag_rows(execution)) unit.insert(ExecutionTag{std::move(row)});
}

void attach_first_tags(Unit& unit, const Execution& execution, const Context& at) {
  insert_tag_rows(unit, execution);
  for (const auto& [key, value] : execution.tags) {
    append_tag_event(unit, execution, TagEventType::attached, key, value, at);
  }
}

void erase_tag_rows(Unit& unit, const Execution& execution) {
  const auto rows = tag_rows(execution);
  unit.fetch<ExecutionTag>(rows);
  for (const auto& row : rows) unit.erase<ExecutionTag>(row);
}

Result<void> check_changes(const std::map<std::string, std::optional<std::string>>& changes) {
  if (changes.empty()) {
    return fail_with(ErrorCode::invalid_input, "tags: empty", "Give at least one tag to set or to remove.");
  }
  if (changes.size() > 2 * kMaxTags) {
    return fail_with(ErrorCode::invalid_input, "tags: more than 128 changes",
                     "An execution or flow has at most 64 tags: give at most 64 to remove and 64 to set.");
  }
  for (const auto& [key, value] : changes) {
    if (auto ok = check_tag(key, value.value_or("")); !ok) return ok;
  }
  return {};
}

Result<Tags> changed(Tags tags, const std::map<std::string, std::optional<std::string>>& changes) {
  for (const auto& [key, value] : changes) {
    if (value)
      tags[key] = *value;
    else
      tags.erase(key);
  }
  if (auto fit = check_tags_fit(tags); !fit) return std::unexpected(fit.error());
  return tags;
}

Result<TagsSet> apply(Unit& unit, const SetTags& request, Context& at) {
  if (auto ok = check_changes(request.tags); !ok) return std::unexpected(ok.error());
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (const auto after = changed(found->tags, request.tags); !after) return std::unexpected(after.error());
  auto& execution = unit.edit<Execution>(request.execution_id);
  for (const auto& [key, value] : request.tags) set_one(unit, execution, key, value, at);
  note_mutation(execution, at);
  return TagsSet{static_cast<std::uint32_t>(request.tags.size()), execution.tags};
}

FLOWFABRIC_OPERATION(SetTags)

}  // namespace flowfabric::core
