// Quota policies: how often, and how many at once, a scope may start work. Checked when work is handed out;
// what is refused waits, and nothing is ever stopped by one.
#pragma once

#include "flowfabric/budgets.h"

namespace flowfabric {

inline constexpr std::uint64_t kDefaultWindowSeconds = 60;

struct QuotaCreation {
  QuotaPolicyId quota_policy_id;
  bool created{false};  // false: it was there, and has not been changed
  bool operator==(const QuotaCreation&) const = default;
};
struct CreateQuotaPolicy {
  using Answer = QuotaCreation;
  QuotaPolicyId quota_policy_id;
  std::uint64_t window_seconds{kDefaultWindowSeconds};  // 0: the default
  std::uint64_t max_requests_per_window{0};             // 0: any number
  std::uint64_t max_concurrent{0};                      // 0: any number
  std::uint64_t jitter_ms{0};                           // added at random to how long a refused one waits
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
// In an order of the store's own.
struct ListQuotaPolicies {
  using Answer = QuotaPage;
  std::optional<QuotaPolicyId> cursor{};
  std::uint32_t limit{100};  // up to 1 000
};
struct QuotaPolicyDeleted {
  bool operator==(const QuotaPolicyDeleted&) const = default;
};
// What it holds back is let go. Its id may be used again when nothing that it has let through is left.
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
// What every claim does for the policies of its candidate: checks, and records what it has let through.
struct CheckAdmission {
  using Answer = Admission;
  QuotaPolicyId quota_policy_id;
  ExecutionId execution_id;
};
struct AdmissionReleased {
  bool operator==(const AdmissionReleased&) const = default;
};
// No work was handed out after all: the slot is free again, and the rate does not count it.
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
