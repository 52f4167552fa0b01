// Why an execution does not run: one read that answers for any execution.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

enum class WaitingFor : std::uint8_t {
  dependency,     // an upstream has not ended
  delay,          // until a time
  retry_backoff,  // likewise
  resume_delay,   // likewise
  signal,         // at a waitpoint
  budget,         // at its limit
  quota,          // a full window, or no free slot
  lane,           // hands out nothing
  operator_,      // holds it
  grant,          // reserves it for a worker
  capability,     // no live worker has it
  worker          // one that serves it has not come yet
};
BOOST_DESCRIBE_ENUM(WaitingFor, dependency, delay, retry_backoff, resume_delay, signal, budget, quota, lane,
                    operator_, grant, capability, worker)

struct WaitingReason {
  WaitingFor waiting_for{};
  std::string
      subject{};  // the id of the upstream, the budget, the quota policy, the waitpoint; the lane's name
  std::string detail{};                 // for people
  std::optional<std::int64_t> until{};  // when the reason ends by itself, if known
  bool operator==(const WaitingReason&) const = default;
};
// A live worker of the execution's namespace that serves its lane.
struct NearWorker {
  std::string worker_instance_id;
  std::vector<std::string> missing_capabilities;
  bool operator==(const NearWorker&) const = default;
};
struct WaitingExplanation {
  PublicState public_state{};
  // All present obstacles, in the order of admission. None: it runs, or has ended.
  std::vector<WaitingReason> reasons;
  // If a capability is missing: the workers that lack the fewest.
  std::vector<NearWorker> nearest_workers;
  bool operator==(const WaitingExplanation&) const = default;
};
struct ExplainWaiting {
  using Answer = WaitingExplanation;
  ExecutionId execution_id;
};

}  // namespace flowfabric
