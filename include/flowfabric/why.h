// Why does it not run? One read that answers for any execution.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

enum class WaitingFor : std::uint8_t {
  dependency,     // an upstream that has not ended
  delay,          // until a time
  retry_backoff,  // likewise
  resume_delay,   // likewise
  signal,         // at a waitpoint
  budget,         // at its limit
  quota,          // a window that is full, or slots that are all taken
  lane,           // which hands out nothing
  operator_,      // who holds it
  grant,          // it is reserved for a worker
  capability,     // that no live worker has
  worker          // any that serves it
};
BOOST_DESCRIBE_ENUM(WaitingFor, dependency, delay, retry_backoff, resume_delay, signal, budget, quota, lane,
                    operator_, grant, capability, worker)

struct WaitingReason {
  WaitingFor waiting_for{};
  std::string
      subject{};  // the id of the upstream, the budget, the quota policy, the waitpoint; the lane's name
  std::string detail{};                 // for people
  std::optional<std::int64_t> until{};  // when it is over by itself, as far as anybody knows
  bool operator==(const WaitingReason&) const = default;
};
// A live worker of its namespace that serves its lane.
struct NearWorker {
  std::string worker_instance_id;
  std::vector<std::string> missing_capabilities;
  bool operator==(const NearWorker&) const = default;
};
struct WaitingExplanation {
  PublicState public_state{};
  // Everything that is in its way now, in the order of admission. None: it runs, or has ended.
  std::vector<WaitingReason> reasons;
  // For lack of a capability: those who lack least.
  std::vector<NearWorker> nearest_workers;
  bool operator==(const WaitingExplanation&) const = default;
};
struct ExplainWaiting {
  using Answer = WaitingExplanation;
  ExecutionId execution_id;
};

}  // namespace flowfabric
