// Taking one named execution: a grant reserves it for a worker for a short while, a second call takes it.
//
// Workers that take whatever comes next use ClaimTasks and never see a grant. Grants are for schedulers that
// choose first and hand over later, and for operators.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

// What the grant will be used for; it follows from the state of the execution.
enum class GrantKind : std::uint8_t { claim, resume, reclaim };
BOOST_DESCRIBE_ENUM(GrantKind, claim, resume, reclaim)

// At most one is alive per execution. While it is, nobody else is offered the execution; when it runs out
// unused, everybody is again. Used once, by any instance of the worker it was issued to.
struct ClaimGrant {
  ExecutionId execution_id;
  GrantKind kind{};
  std::string partition_key;  // `{fp:N}`
  std::string grant_key;      // opaque
  std::string lane_id;
  std::int64_t expires_at{};
  bool operator==(const ClaimGrant&) const = default;
};

// Who the grant is for, and what is kept beside it for an audit.
struct GrantTerms {
  std::string worker_id{};
  std::string worker_instance_id{};  // = worker_id when empty
  std::vector<std::string> capabilities{};
  std::int64_t grant_ttl_ms{10'000};  // 1–60 000
  std::string capability_hash{};
  std::string route_snapshot_json{};
  std::string admission_summary{};
};

// Reserves an execution that waits for a worker. A worker without the needed capabilities is refused with
// `capability_mismatch` and the missing ones.
struct IssueClaimGrant {
  using Answer = ClaimGrant;
  ExecutionId execution_id;
  std::string lane_id{"default"};
  GrantTerms terms;
};

// Reserves the best execution of the lane for this worker; absent: there is no work.
struct ClaimForWorker {
  using Answer = std::optional<ClaimGrant>;
  std::string lane_id{"default"};
  std::optional<std::string> namespace_{};  // absent: any
  GrantTerms terms;
};

// How a granted execution is taken.
struct GrantUse {
  std::string worker_id{};
  std::string worker_instance_id{};       // = worker_id when empty
  std::string grant_key{};                // empty: whatever grant this worker holds
  std::optional<LeaseId> lease_id{};      // minted when absent
  std::int64_t lease_ttl_ms{30'000};      // 1 000–3 600 000
  std::optional<AttemptId> attempt_id{};  // of a new attempt; minted when absent
};

// Fresh work: a new attempt. Work that was interrupted answers `use_claim_resumed_execution`.
struct ClaimExecution {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  GrantUse use;
  std::optional<std::uint32_t> expected_attempt_index{};
};

// Work that was paused: the same attempt goes on.
struct ClaimResumedExecution {
  using Answer = ClaimedTask;
  ExecutionId execution_id;
  GrantUse use;
};

// Whatever the grant is for: fresh, resumed or reclaimed.
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

// Reserves an execution whose lease was lost. Its last reclaim used up: it fails for good.
struct IssueReclaimGrant {
  using Answer = ReclaimAnswer;
  ExecutionId execution_id;
  GrantTerms terms;
};

// Takes it: the interrupted attempt ends, a new one begins.
struct ReclaimExecution {
  using Answer = ReclaimAnswer;
  ExecutionId execution_id;
  GrantUse use;
  std::optional<std::uint32_t> max_reclaim_count{};  // counts when the policy gives none
};

}  // namespace flowfabric
