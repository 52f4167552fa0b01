// The definition of an operation: everything the engine has to know in order to run a request.
//
// A rule defines its operations at the end of its file:
//
//   FLOWFABRIC_OPERATION(RenewLease)
//   FLOWFABRIC_OPERATION(ClaimTasks, .want = want, .affinity = affinity)
//
// `apply` is the rule itself. Members that a definition leaves out follow from the shape of the request.
// core/operations.h lists all operations.
#pragma once

#include "core/context.h"
#include "core/keys.h"
#include "core/unit.h"

namespace flowfabric::core {

template <class Request>
void want_by_shape(Unit& unit, const Request& request, const PartitionCounts& partitions) {
  // Spending changes the budget, and the rest may only be read once the budget is locked.
  if constexpr (requires { request.budget_id; })
    unit.want_lock<Budget>(budget_key(request.budget_id, partitions));
  else if constexpr (requires { request.quota_policy_id; })
    unit.want<QuotaPolicy>(quota_key(request.quota_policy_id, partitions));
  else if constexpr (requires { request.execution_id; })
    unit.want<Execution>(request.execution_id);
  else if constexpr (requires { request.lane_id; })
    unit.want<Lane>({request.lane_id});
  else if constexpr (requires { request.worker_instance_id; })
    unit.want<Worker>({request.namespace_, request.worker_instance_id});
}

template <class Request>
std::size_t affinity_by_shape(const Request& request) {
  if constexpr (requires { request.budget_id; })
    return std::hash<BudgetId>{}(request.budget_id);
  else if constexpr (requires { request.quota_policy_id; })
    return std::hash<QuotaPolicyId>{}(request.quota_policy_id);
  else if constexpr (requires { affinity_of(request.flow_id); })
    return affinity_of(request.flow_id);
  else if constexpr (requires { affinity_of(*request.flow_id); })
    return affinity_of(*request.flow_id);
  else if constexpr (requires { affinity_of(request.execution_id); })
    return affinity_of(request.execution_id);
  else
    return 0;
}

template <class Request>
std::size_t weight_by_shape(const Request& request) {
  return sizeof(request);
}

template <class Request>
struct OperationDefinition {
  // Runs the request. The same inputs give the same outputs, so it can simply be run again.
  Result<typename Request::Answer> (*apply)(Unit&, const Request&, Context&);
  // Names the records that `apply` will need, so that a store across a network fetches them in its first
  // round trip.
  void (*want)(Unit&, const Request&, const PartitionCounts&){want_by_shape<Request>};
  // Gives the request this new id if the caller gave none. True: it took the id, so nobody has used it.
  bool (*take_id)(Request&, const Uuid& minted, const PartitionCounts&){nullptr};
  // Marks as absent the records that a request with a new id will make, so that nobody looks for them.
  void (*expect_absent)(Unit&, const Request&, const PartitionCounts&){nullptr};
  // Operations with the same affinity share a committer: those on one execution, those on one flow, the
  // claims of one worker.
  std::size_t (*affinity)(const Request&){affinity_by_shape<Request>};
  // How many bytes the request holds while it is queued, roughly.
  std::size_t (*weight)(const Request&){weight_by_shape<Request>};
};

template <class Request>
const OperationDefinition<Request>& definition_of();

#define FLOWFABRIC_OPERATION(Request, ...)                                                               \
  template <>                                                                                            \
  const OperationDefinition<Request>& definition_of<Request>() {                                         \
    static constexpr OperationDefinition<Request> definition{.apply = apply __VA_OPT__(, ) __VA_ARGS__}; \
    return definition;                                                                                   \
  }

}  // namespace flowfabric::core
