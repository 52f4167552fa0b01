// Quota policies: how often a scope may start work, and how many executions it may run at once. They are
// checked when work is handed out. Refused work waits; a quota policy never stops running work.
#pragma once

#include "flowfabric/budgets.h"

namespace flowfabric {

inline constexpr std::uint64_t kDefaultWindowSeconds = 60;

struct QuotaCreation {
  QuotaPolicyId quota_policy_id;
  bool created{false};  // false: it exists already and is unchanged
  bool operator==(const QuotaCreation&) const = default;
};
struct CreateQuotaPolicy {
  using Answer = QuotaCreation;
  QuotaPolicyId quota_policy_id;
  std::uint64_t window_seconds{kDefaultWindowSeconds};  // 0: the default
  std::uint64_t max_requests_per_window{0};             // 0: any number
  std::uint64_t max_concurrent{0};                      // 0: any number
  std::uint64_t jitter_ms{0};                           // random addition to the wait of a refused execution
};

struct QuotaStatus {
  QuotaPolicyId quota_policy_id;
  std::uint64_t window_seconds{};
  std::uint64_t max_requests_per_window{};
  std::uint64_t max_concurrent{};
  std::uint64_t jitter_ms{};
  std::uint64_t admitted_in_window{};
  std::uint64_t active{};  // executions that hold a slot
  std::int64_t created_at{};
  bool operator==(const QuotaStatus&) const = default;
};
struct ReadQuotaPolicy {
  using Answer = QuotaStatus;
  QuotaPolicyId quota_policy_id;
};
struct QuotaPage {
  std::vector<QuotaStatus> policies;
  std::optional<QuotaPolicyId> next_cursor;
  bool operator==(const QuotaPage&) const = default;
};
// In the store's own order.
struct ListQuotaPolicies {
  using Answer = QuotaPage;
  std::optional<QuotaPolicyId> cursor{};
  std::uint32_t limit{100};  // up to 1 000
};
struct QuotaPolicyDeleted {
  bool operator==(const QuotaPolicyDeleted&) const = default;
};
// Executions that it holds back are released. Its id may be used again when none of its admissions is left.
struct DeleteQuotaPolicy {
  using Answer = QuotaPolicyDeleted;
  QuotaPolicyId quota_policy_id;
};

enum class AdmissionOutcome : std::uint8_t {
  admitted,
  already_admitted,
  rate_exceeded,
  concurrency_exceeded
};
BOOST_DESCRIBE_ENUM(AdmissionOutcome, admitted, already_admitted, rate_exceeded, concurrency_exceeded)
struct Admission {
  AdmissionOutcome outcome{};
  std::uint64_t retry_after_ms{};  // of a rate that was exceeded
  bool operator==(const Admission&) const = default;
};
// Checks and records an admission, as every claim does for the policies of its candidate.
struct CheckAdmission {
  using Answer = Admission;
  QuotaPolicyId quota_policy_id;
  ExecutionId execution_id;
};
struct AdmissionReleased {
  bool operator==(const AdmissionReleased&) const = default;
};
// Takes an admission back because no work was handed out: frees the slot, and removes it from the rate.
struct ReleaseAdmission {
  using Answer = AdmissionReleased;
  QuotaPolicyId quota_policy_id;
  ExecutionId execution_id;
};

struct AttachQuotaPolicy {
  using Answer = Attachment;
  QuotaPolicyId quota_policy_id;
  std::string scope_type{};
  std::string scope_id{};
};
struct DetachQuotaPolicy {
  using Answer = Attachment;
  QuotaPolicyId quota_policy_id;
  std::string scope_type{};
  std::string scope_id{};
};

}  // namespace flowfabric
