// Tags: labels that callers put on executions, and find them by.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Tags to set (with a value) or to remove (without).
Result<void> check_changes(const std::map<std::string, std::optional<std::string>>& changes);

// The tags after the changes. Refused: more than there may be.
Result<Tags> changed(Tags tags, const std::map<std::string, std::optional<std::string>>& changes);

Result<TagsSet> apply(Unit& unit, const SetTags& request, Context& at);

// The rows that listings find the execution by, one for each of its tags.
std::vector<ExecutionTagKey> tag_rows(const Execution& execution);
void insert_tag_rows(Unit& unit, const Execution& execution);
// The same for a new execution, which is an event.
void attach_first_tags(Unit& unit, const Execution& execution, const Context& at);
void erase_tag_rows(Unit& unit, const Execution& execution);

}  // namespace flowfabric::core
