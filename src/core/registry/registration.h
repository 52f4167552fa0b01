// Routes and groups: registered by the first execution that needs one, and removed when nothing has needed
// them for a day.
//
// An execution names its route and its group for as long as it exists, and both must be there. A group is
// needed while it has an execution, in whatever state, and a route while it has a group.
//
// Servers share these records, and rely on them without a lock, even when they read them long ago. This is
// safe because nothing is removed before its `purge_at_ms`, and because every submit looks at that time: if
// it is less than 23 hours away, the submit locks the record, reads it again and moves the time a day ahead.
// So a submit that takes no lock has at least 23 hours to commit before the record can be removed, and one
// that takes it comes either before the removal, which then finds the record in use, or after it, and
// registers anew. A record in use is written once an hour at most.
#pragma once

#include <string>
#include <vector>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Where an execution is offered, and where listings find it.
struct Registration {
  std::int64_t route_id{};
  std::int64_t group_id{};
};

// The route and the group of such executions, which are registered if they are new.
Registration ensure_registered(Unit& unit, const std::string& lane, const std::string& name_space,
                               const std::vector<std::string>& required_capabilities, const std::string& kind,
                               const Context& at);
// Names the records that the function above will look for.
void want_registered(Unit& unit, const std::string& lane, const std::string& name_space,
                     const std::vector<std::string>& required_capabilities, const std::string& kind);

// Their time has come: they are removed, or looked at again later.
Rule remove_if_unused(Unit& unit, const RouteKey& key, const Context& at);
Rule run_group_clock(Unit& unit, const GroupKey& key, Context& at);

}  // namespace flowfabric::core
