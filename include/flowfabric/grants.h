// Claiming one particular execution: a grant reserves it for a worker for a short while, a second call takes
// it.
//
// Workers that take whatever comes next use ClaimTasks and never see a grant. Grants are for schedulers that
// choose first and hand over later, and for operators.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

// The use of the grant, which follows from the state of the execution.
enum class GrantKind : std::uint8_t { claim, resume, reclaim };
BOOST_DESCRIBE_ENUM(GrantKind, claim, resume, reclaim)

// An execution has at most one live grant, and is offered to nobody else meanwhile. When the grant runs out
// unused, the execution is offered to all again. Any instance of the worker may use the grant, once.
struct ClaimGrant {
  ExecutionId execution_id;
  GrantKind kind{};
  std::string partition_key;  // `{fp:N}`
  std::string grant_key;      // opaque
  std::string lane_id;
  std::int64_t expires_at{};
  bool operator==(const ClaimGrant&) const = default;
};

// The worker that the grant is for, and data that is stored beside it for audits.
struct GrantTerms {
  std::string worker_id{};
  std::string worker_instance_id{};  // = worker_id when empty
  std::vector<std::string> capabilities{};
  std::int64_t grant_ttl_ms{10'000};  // 1–60 000
  std::string capability_hash{};
  std::string route_snapshot_json{};
  std::string admission_summary{};
};

// Reserves an execution that waits for a worker. A worker that lacks required capabilities is refused with
// `capability_mismatch`, which names them.
struct IssueClaimGrant {
  using Answer = ClaimGrant;
  ExecutionId execution_id;
  std::string lane_id{"default"};
  GrantTerms terms;
};

// Reserves the best execution of the lane for this worker. The answer is absent if there is no work.
struct ClaimForWorker {
  using Answer = std::optional<ClaimGrant>;
  std::string lane_id{"default"};
  std::optional<std::string> namespace_{};  // absent: any
  GrantTerms terms;
};

// The terms on which a granted execution is taken.
struct GrantUse {
  std::string worker_id{};
  std::string worker_instance_id{};       // = worker_id when empty
  std::string grant_key{};                // empty: the grant that this worker holds
  std::optional<LeaseId> lease_id{};      // minted when absent
  std::int64_t lease_ttl_ms{30'000};      // 1 000–3 600 000
  std::optional<AttemptId> attempt_id{};  // of a new attempt; minted when absent
};

// Takes fresh work: a new attempt begins. Interrupted work is refused with `use_claim_resumed_execution`.
struct ClaimExecution {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  GrantUse use;
  std::optional<std::uint32_t> expected_attempt_index{};
};

// Takes paused work: the same attempt continues.
struct ClaimResumedExecution {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  GrantUse use;
};

// Takes the execution of any grant: fresh, resumed or reclaimed.
struct ClaimGranted {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  GrantUse use;
};

// An operator takes an execution that waits for a worker, without grant, capabilities or admission.
struct IssueGrantAndClaim {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  std::string lane_id{"default"};
  std::int64_t lease_duration_ms{30'000};
};

enum class ReclaimStatus : std::uint8_t {
  granted,
  claimed,
  not_reclaimable,
  reclaim_cap_exceeded,
  grant_not_found
};
BOOST_DESCRIBE_ENUM(ReclaimStatus, granted, claimed, not_reclaimable, reclaim_cap_exceeded, grant_not_found)

struct ReclaimAnswer {
  ReclaimStatus status{};
  std::string detail;               // why it is not reclaimable
  std::uint32_t reclaim_count{};    // with reclaim_cap_exceeded
  std::optional<ClaimGrant> grant;  // with granted
  std::optional<ClaimedTask> task;  // with claimed
  bool operator==(const ReclaimAnswer&) const = default;
};

// Reserves an execution whose lease was lost. An execution that has used up its reclaims fails for good.
struct IssueReclaimGrant {
  using Answer = ReclaimAnswer;
  ExecutionId execution_id;
  GrantTerms terms;
};

// Takes an execution with a lost lease: the interrupted attempt ends, and a new one begins.
struct ReclaimExecution {
  using Answer = ReclaimAnswer;
  ExecutionId execution_id;
  GrantUse use;
  std::optional<std::uint32_t> max_reclaim_count{};  // applies when the policy gives none
};

}  // namespace flowfabric
