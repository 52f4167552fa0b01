// Submitting an execution: idempotent by its id, and by a key within the key's window.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Of an execution that is created with its flow.
struct Membership {
  FlowId flow_id;
  std::string node_name;
  std::uint32_t dependencies{};  // edges into it
};
// Sorted; of the policy.
Result<std::vector<std::string>> required_capabilities(const ExecutionPolicy& policy);
Result<void> check_create(const CreateExecution& request, const Context& at);
// The request was checked, and the id is new.
Result<PublicState> create_new(Unit& unit, const CreateExecution& request,
                               const std::optional<Membership>& member, Context& at);

// The request must carry an execution id; the engine mints one for callers that give none.
Result<Creation> apply(Unit& unit, const CreateExecution& request, Context& at);

}  // namespace flowfabric::core
