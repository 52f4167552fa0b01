#include "flowfabric/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/describe.h"

namespace flowfabric {
namespace {

constexpr std::size_t kCodes = static_cast<std::size_t>(ErrorCode::timeout) + 1;

std::vector<std::string> words(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

// The specification's entry for a group of codes. An empty kind stands for none, `=` for the code itself.
struct Group {
  ErrorKind kind;
  int status;
  std::string http_kind;
  std::optional<bool> retryable;
  const char* codes;
};

const std::vector<Group> kGroups = {
    {ErrorKind::not_found, 404, "", std::nullopt,
     "execution_not_found flow_not_found attempt_not_found budget_not_found quota_policy_not_found "
     "stream_not_found suspension_not_found worker_not_found operation_not_found edge_not_found "
     "unknown_waitpoint"},
    {ErrorKind::validation, 400, "", std::nullopt,
     "invalid_input capability_mismatch invalid_capabilities invalid_policy_json payload_too_large "
     "signal_limit_exceeded invalid_waitpoint_key invalid_token waitpoint_not_token_bound "
     "retention_limit_exceeded invalid_lease_for_suspend invalid_dependency invalid_waitpoint_for_execution "
     "invalid_blocking_reason invalid_offset unauthorized invalid_budget_scope budget_override_not_allowed "
     "invalid_quota_spec invalid_kid invalid_secret_hex invalid_grace_ms invalid_tag_key invalid_frame_type "
     "corruption handle_from_other_backend token_expired missing_token fence_required partial_fence_triple"},
    {ErrorKind::conflict, 409, "=", false,
     "dependency_already_exists cycle_detected self_referencing_edge execution_already_in_flow "
     "waitpoint_already_exists budget_attach_conflict quota_attach_conflict rotation_conflict "
     "active_attempt_exists"},
    {ErrorKind::contention, 409, "contention", true,
     "use_claim_resumed_execution not_a_resumed_execution execution_not_leaseable lease_conflict "
     "invalid_claim_grant claim_grant_expired no_eligible_execution waitpoint_not_found "
     "waitpoint_pending_use_buffer_script stale_graph_revision execution_not_active execution_not_eligible "
     "execution_not_in_eligible_set execution_not_reclaimable no_active_lease"},
    {ErrorKind::contention, 429, "=", true, "rate_limit_exceeded concurrency_limit_exceeded"},
    {ErrorKind::contention, 500, "retry_exhausted", false, "retry_exhausted"},
    {ErrorKind::state, 409, "=", false,
     "execution_not_terminal max_replays_exhausted replay_not_allowed not_runnable terminal "
     "flow_already_terminal group_already_terminal budget_exceeded budget_soft_exceeded lane_not_accepting"},
    {ErrorKind::state, 409, "already_satisfied", false,
     "already_satisfied duplicate_signal ok_already_applied attempt_already_terminal stream_already_closed "
     "lease_expired lease_revoked"},
    {ErrorKind::state, 409, "state_conflict", false,
     "stale_lease execution_not_suspended already_suspended waitpoint_closed target_not_signalable "
     "resume_condition_not_met waitpoint_not_pending pending_waitpoint_expired waitpoint_not_open "
     "stream_closed stale_owner_cannot_append grant_already_exists execution_not_in_flow deps_not_satisfied "
     "not_blocked_by_deps attempt_not_started execution_not_eligible_for_attempt max_retries_exhausted "
     "max_reclaims_exceeded stream_disconnected"},
    {ErrorKind::bug, 500, "", false, "attempt_not_in_created_state invariant_violation invalid_secret"},
    {ErrorKind::bug, 503, "", false, "hmac_secret_not_initialized"},
    {ErrorKind::transport, 500, "transport", true, "transport"},
    {ErrorKind::unavailable, 503, "unavailable", false, "unavailable"},
    {ErrorKind::resource_exhausted, 429, "resource_exhausted", true, "resource_exhausted"},
    {ErrorKind::timeout, 500, "", false, "timeout"},
};

TEST(ErrorTable, EveryCodeIsShownAsTheSpecificationSays) {
  std::map<std::string, int> seen;
  for (const Group& group : kGroups) {
    for (const std::string& name : words(group.codes)) {
      ++seen[name];
      const auto code = error_from_name(name);
      ASSERT_TRUE(code) << name;
      const ErrorInfo& info = error_info(*code);
      EXPECT_EQ(info.code, *code) << name;
      EXPECT_EQ(info.kind, group.kind) << name;
      EXPECT_EQ(info.http_status, group.status) << name;
      EXPECT_EQ(info.http_kind, group.http_kind == "=" ? name : group.http_kind) << name;
      EXPECT_EQ(info.http_retryable, group.retryable) << name;
    }
  }
  EXPECT_EQ(seen.size(), kCodes);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& entry) { return entry.second == 1; }));
}

TEST(ErrorTable, EveryCodeHasItsClass) {
  const auto informational = words(
      "execution_not_suspended already_suspended already_satisfied waitpoint_closed waitpoint_not_pending "
      "pending_waitpoint_expired waitpoint_not_open duplicate_signal stream_already_closed "
      "ok_already_applied attempt_already_terminal grant_already_exists deps_not_satisfied "
      "not_blocked_by_deps budget_soft_exceeded");
  const auto expected_class = [&](const ErrorInfo& info) {
    if (std::ranges::find(informational, info.name) != informational.end()) return ErrorClass::informational;
    if (info.name == "budget_exceeded") return ErrorClass::cooperative;
    switch (info.kind) {
      case ErrorKind::contention:
      case ErrorKind::transport:
      case ErrorKind::resource_exhausted:
        return ErrorClass::retryable;
      case ErrorKind::bug:
        return ErrorClass::bug;
      default:
        return ErrorClass::terminal;
    }
  };
  for (std::size_t i = 0; i < kCodes; ++i) {
    const ErrorInfo& info = error_info(static_cast<ErrorCode>(i));
    EXPECT_EQ(enum_name(info.error_class), enum_name(expected_class(info))) << info.name;
  }
}

// "… [with flowfabric::ErrorCode code = flowfabric::ErrorCode::stale_lease; …]"
template <ErrorCode code>
std::string_view enumerator_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.rfind("ErrorCode::") + std::string_view("ErrorCode::").size());
  return text.substr(0, text.find_first_of(";]"));
}

TEST(ErrorTable, NamesAreTheEnumerators) {
  const auto enumerators = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return std::vector<std::string_view>{enumerator_name<static_cast<ErrorCode>(Index)>()...};
  }
  (std::make_index_sequence<kCodes>());
  for (std::size_t i = 0; i < kCodes; ++i) EXPECT_EQ(error_name(static_cast<ErrorCode>(i)), enumerators[i]);
}

TEST(ErrorTable, NamesAreFoundAgain) {
  for (std::size_t i = 0; i < kCodes; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_from_name(error_name(code)), code);
  }
  EXPECT_EQ(error_from_name(""), std::nullopt);
  EXPECT_EQ(error_from_name("Stale_Lease"), std::nullopt);
}

TEST(ErrorText, CodeDetailAdvice) {
  EXPECT_EQ((Error{ErrorCode::stale_lease, "", ""}).to_string(), "stale_lease");
  EXPECT_EQ((Error{ErrorCode::invalid_input, "lane_id: empty", ""}).to_string(),
            "invalid_input: lane_id: empty");
  EXPECT_EQ((Error{ErrorCode::stale_lease, "", "Stop working."}).to_string(), "stale_lease: Stop working.");
  EXPECT_EQ((Error{ErrorCode::invalid_input, "lane_id: empty", "Name a lane."}).to_string(),
            "invalid_input: lane_id: empty — Name a lane.");
}

TEST(ErrorText, NotActiveShowsItsFourDetails) {
  const NotActiveDetails details{LifecyclePhase::terminal, TerminalOutcome::success, 3, "a-1"};
  EXPECT_EQ((Error{ErrorCode::execution_not_active, "", "", details}).to_string(),
            "execution_not_active [terminal_outcome=success, lease_epoch=3, lifecycle_phase=terminal, "
            "attempt_id=a-1]");
}

TEST(ErrorText, FailWithFillsAResult) {
  const Result<int> result = fail_with(ErrorCode::lease_expired, "detail", "advice");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{ErrorCode::lease_expired, "detail", "advice", std::nullopt}));
}

}  // namespace
}  // namespace flowfabric
