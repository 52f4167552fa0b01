// Suspension: a worker stops, somebody outside signals, and a worker continues the same attempt.
//
//   auto stopped = engine.call(SuspendExecution{.execution_id = task.execution_id, .fence = task.fence,
//       .resume_condition = {SingleSignal{"approval", {"approved"}}}});
//   // give stopped->waitpoints[0].token to those who may answer; later, with that token:
//   engine.call(DeliverSignal{.execution_id = …, .waitpoint_id = …, .waitpoint_token = …,
//                             .signal_name = "approved", .payload = "{…}"});
//
// Signals arrive at a waitpoint. Delivering one takes the waitpoint's token, which only `SuspendExecution`
// and `CreateWaitpoint` return.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/handle.h"
#include "flowfabric/operations.h"
#include "flowfabric/resume_condition.h"

namespace flowfabric {

enum class SuspensionReason : std::uint8_t {
  waiting_for_signal,
  waiting_for_approval,
  waiting_for_callback,
  waiting_for_tool_result,
  waiting_for_operator_review,
  paused_by_policy,
  paused_by_budget,
  step_boundary,
  manual_pause
};
BOOST_DESCRIBE_ENUM(SuspensionReason, waiting_for_signal, waiting_for_approval, waiting_for_callback,
                    waiting_for_tool_result, waiting_for_operator_review, paused_by_policy, paused_by_budget,
                    step_boundary, manual_pause)

enum class SuspensionRequester : std::uint8_t { worker, operator_, policy, system_timeout_policy };
BOOST_DESCRIBE_ENUM(SuspensionRequester, worker, operator_, policy, system_timeout_policy)

// `auto_resume_with_timeout_signal`: the execution resumes with a signal that reports the timeout.
// `auto_resume`: it resumes without one. `escalate`: it stays suspended, and an operator must decide.
enum class TimeoutBehavior : std::uint8_t {
  fail,
  cancel,
  expire,
  auto_resume_with_timeout_signal,
  escalate,
  auto_resume
};
BOOST_DESCRIBE_ENUM(TimeoutBehavior, fail, cancel, expire, auto_resume_with_timeout_signal, escalate,
                    auto_resume)

enum class ResumeTrigger : std::uint8_t { none, signal, operator_, timeout };
BOOST_DESCRIBE_ENUM(ResumeTrigger, none, signal, operator_, timeout)

enum class WaitpointState : std::uint8_t { pending, active, closed };
BOOST_DESCRIBE_ENUM(WaitpointState, pending, active, closed)

enum class SignalEffect : std::uint8_t {
  resume_condition_satisfied,
  appended_to_waitpoint,
  appended_to_waitpoint_duplicate,
  signal_ignored_not_in_condition,
  signal_ignored_matcher_failed,
  no_op,
  buffered_for_pending_waitpoint
};
BOOST_DESCRIBE_ENUM(SignalEffect, resume_condition_satisfied, appended_to_waitpoint,
                    appended_to_waitpoint_duplicate, signal_ignored_not_in_condition,
                    signal_ignored_matcher_failed, no_op, buffered_for_pending_waitpoint)

// ---- suspending ----------------------------------------------------------------------------------------

// A new waitpoint, or an existing one of `CreateWaitpoint`.
struct WaitpointBinding {
  std::optional<WaitpointId> waitpoint_id{};  // minted when absent
  std::string waitpoint_key{};                // of a new one; empty: the condition's key, or minted
  bool use_pending{false};
};

struct ResumePolicy {
  std::optional<std::int64_t> resume_delay_ms{};
  // Only the defaults are supported; other values are refused.
  bool consume_matched_signals{true};
  bool retain_signal_buffer_until_closed{false};
  bool close_waitpoint_on_resume{true};
};

// A waitpoint with its token. Give the token to those who may signal, and to nobody else.
struct TokenedWaitpoint {
  WaitpointId waitpoint_id;
  std::string waitpoint_key;
  std::string waitpoint_token;
  bool operator==(const TokenedWaitpoint&) const = default;
};
// Shows of the token only its kid and length.
std::ostream& operator<<(std::ostream& out, const TokenedWaitpoint& waitpoint);

struct Suspended {
  // Earlier signals met the condition: the lease continues, and nothing is suspended.
  bool already_satisfied{false};
  SuspensionId suspension_id;
  std::vector<TokenedWaitpoint> waitpoints;  // as bound
  std::vector<ResumeSignal> signals;         // the earlier signals, if already satisfied
  std::optional<OpaqueHandle>
      handle;  // of kind `suspended`, if a handle was given and the execution is suspended
  bool operator==(const Suspended&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Suspended& suspended);
struct SuspendExecution {
  using Answer = Suspended;
  ExecutionId execution_id;
  LeaseFence fence;
  std::optional<std::uint32_t> attempt_index{};  // checked when given
  std::optional<SuspensionId> suspension_id{};   // minted when absent
  // Empty: one new waitpoint for each key of the condition, or a single one if it names none.
  std::vector<WaitpointBinding> waitpoints{};
  ResumeCondition resume_condition{};  // by default any signal at the first waitpoint
  ResumePolicy resume_policy{};
  SuspensionReason reason_code{SuspensionReason::waiting_for_signal};
  SuspensionRequester requested_by{SuspensionRequester::worker};
  // Absent: the timeout of the execution's `suspension_policy`, or none.
  std::optional<std::int64_t> timeout_at{};
  std::optional<std::uint64_t> timeout_ms{};  // instead of `timeout_at`: from now on, by the store's clock
  std::optional<TimeoutBehavior> timeout_behavior{};
  std::string timeout_signal_name{"timeout"};
  std::string continuation_metadata_pointer{};
  std::optional<std::int64_t> now{};  // the caller's clock: a timeout may lie ten minutes before it
  std::string idempotency_key{};
  // Refuses with `already_satisfied`, and changes nothing, where the answer would otherwise say so.
  bool strict{false};
  // Replaces the execution's id, the fence and the attempt index.
  std::optional<OpaqueHandle> handle{};
};

// Creates a waitpoint before its execution suspends, so that its token can be given out early. Signals are
// buffered until the execution suspends on it.
struct CreateWaitpoint {
  using Answer = TokenedWaitpoint;
  ExecutionId execution_id;
  LeaseFence fence;
  std::optional<std::uint32_t> attempt_index{};
  std::string waitpoint_key{};  // empty: `wpk:<id>`
  std::int64_t expires_in_ms{3'600'000};
};

struct WaitpointClosed {
  bool already_closed{false};
  bool operator==(const WaitpointClosed&) const = default;
};
struct CloseWaitpoint {
  using Answer = WaitpointClosed;
  ExecutionId execution_id;
  WaitpointId waitpoint_id;
  std::string reason{"proactive_close"};
};

// ---- signals -------------------------------------------------------------------------------------------

struct SignalDelivered {
  bool duplicate{
      false};  // the idempotency key was used before; the id is that of the first signal, and nothing changed
  SignalId signal_id;
  std::optional<SignalEffect> effect;  // absent for a duplicate
  bool operator==(const SignalDelivered&) const = default;
};
struct DeliverSignal {
  using Answer = SignalDelivered;
  ExecutionId execution_id;
  WaitpointId waitpoint_id;
  std::string waitpoint_token;
  std::optional<SignalId> signal_id{};  // minted when absent
  std::string signal_name;
  std::string signal_category{"default"};
  std::string source_type{"external"};
  std::string source_identity{};
  std::string target_scope{"execution"};
  std::optional<std::string> payload{};  // any bytes, up to 64 KiB
  std::string payload_encoding{"json"};
  std::string correlation_id{};
  std::string idempotency_key{};
  std::int64_t dedup_ttl_ms{86'400'000};  // 0: duplicates are not detected
  std::optional<std::int64_t> resume_delay_ms{};
  std::optional<std::int64_t> created_at{};
  std::optional<std::uint32_t> max_signals_per_execution{};  // can only lower the policy's
  // The number of signals that a pending waitpoint buffers, the newest: 1 000 to 10 000.
  std::uint32_t signal_maxlen{1000};
};
// Shows of the token only its kid and length, and of the payload its size.
std::ostream& operator<<(std::ostream& out, const DeliverSignal& signal);

// A signal of an operator, who needs no token.
struct DeliverApprovalSignal {
  using Answer = SignalDelivered;
  ExecutionId execution_id;
  std::string lane_id;
  WaitpointId waitpoint_id;
  std::string signal_name;  // by convention `approved` or `rejected`
  std::string idempotency_suffix{};
  std::int64_t signal_dedup_ttl_ms{86'400'000};
  std::optional<std::uint32_t> max_signals_per_execution{};
  std::uint32_t maxlen{1000};  // see `signal_maxlen`
};

struct Resumed {
  PublicState public_state{};  // waiting, or delayed
  bool operator==(const Resumed&) const = default;
};
// An operator resumes the execution, whatever it waits for.
struct ResumeExecution {
  using Answer = Resumed;
  ExecutionId execution_id;
  std::string trigger_type{"operator"};  // for the record only
  std::int64_t resume_delay_ms{0};
};

// ---- secrets -------------------------------------------------------------------------------------------

// Installs the first secret. `same_secret` is absent when it was installed now.
struct SecretSeeded {
  std::string kid;
  std::optional<bool> same_secret;
  bool operator==(const SecretSeeded&) const = default;
};
struct SeedWaitpointSecret {
  using Answer = SecretSeeded;
  std::string kid{"k1"};
  std::string secret_hex;  // 64 hex digits
};

struct SecretRotated {
  bool noop{false};  // this kid has this secret already
  std::string new_kid;
  std::optional<std::string> previous_kid;
  std::uint32_t gc_count{};  // kids whose grace was over
  bool operator==(const SecretRotated&) const = default;
};
// Tokens of the previous kid are accepted for `grace_ms` more.
struct RotateWaitpointSecret {
  using Answer = SecretRotated;
  std::string new_kid;
  std::string new_secret_hex;
  std::int64_t grace_ms{86'400'000};
};

struct WaitpointKids {
  struct Verifying {
    std::string kid;
    std::int64_t expires_at_ms{};
    bool operator==(const Verifying&) const = default;
  };
  std::optional<std::string> current_kid;
  std::vector<Verifying> verifying;  // retired, and accepted for a while
  bool operator==(const WaitpointKids&) const = default;
};
struct ListWaitpointKids {
  using Answer = WaitpointKids;
};

// ---- reads ---------------------------------------------------------------------------------------------

struct WaitpointView {
  WaitpointId waitpoint_id;
  std::string waitpoint_key;
  WaitpointState state{};
  std::vector<std::string> required_signal_names;  // empty: any
  std::int64_t created_at{};
  std::optional<std::int64_t> activated_at;
  std::optional<std::int64_t> expires_at;
  ExecutionId execution_id;
  std::string token_kid;
  std::string token_fingerprint;
  std::uint32_t signal_count{};
  std::uint32_t matched_signal_count{};
  std::string close_reason;  // empty: not closed
  bool operator==(const WaitpointView&) const = default;
};
struct WaitpointPage {
  std::vector<WaitpointView> waitpoints;
  std::optional<WaitpointId> next_cursor;
  bool operator==(const WaitpointPage&) const = default;
};
// Pending and active waitpoints, by id, without their tokens.
struct ListPendingWaitpoints {
  using Answer = WaitpointPage;
  ExecutionId execution_id;
  std::optional<WaitpointId> after{};
  std::uint32_t limit{100};  // brought to 1–1000
};

// The token of a pending or active waitpoint; absent if there is no such waitpoint.
struct ReadWaitpointToken {
  using Answer = std::optional<std::string>;
  ExecutionId execution_id;
  WaitpointId waitpoint_id;
};

struct SignalView {
  ResumeSignal signal;
  SignalEffect observed_effect{};
  bool operator==(const SignalView&) const = default;
};
struct SuspensionView {
  SuspensionId suspension_id;
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
  SuspensionReason reason_code{};
  SuspensionRequester requested_by{};
  std::int64_t suspended_at{};
  std::optional<std::int64_t> timeout_at;
  std::optional<TimeoutBehavior> timeout_behavior;  // absent: escalated, or set to escalate without a timeout
  ResumeCondition resume_condition;
  std::optional<std::int64_t> resume_delay_ms;  // once it is closed: the delay that applied
  std::string continuation_metadata_pointer;
  std::vector<std::string> satisfied;  // "members[0] leaf": the nodes met so far, and by whom
  std::optional<std::int64_t> last_signal_at;
  std::optional<std::int64_t> last_hmac_validation_failed_at;  // a wrong token was refused
  std::optional<std::int64_t> closed_at;
  std::string close_reason;
  ResumeTrigger resume_trigger{};
  std::optional<SignalId> closer_signal_id;
  std::vector<WaitpointView> waitpoints;
  std::vector<SignalView> signals;  // the newest 100 of the execution, oldest first
  bool operator==(const SuspensionView&) const = default;
};
// The latest suspension of an execution, open or closed; `suspension_not_found` if there was none.
struct DescribeSuspension {
  using Answer = SuspensionView;
  ExecutionId execution_id;
};

struct SuspendedEntry {
  ExecutionId execution_id;
  std::string namespace_;
  std::string lane_id;
  std::int64_t suspended_at_ms{};
  std::optional<std::int64_t> timeout_at;
  SuspensionReason reason{};  // `waiting_for_operator_review` also after an escalation
  std::vector<WaitpointId> waitpoint_ids;
  bool operator==(const SuspendedEntry&) const = default;
};
struct SuspendedPage {
  std::vector<SuspendedEntry> suspended;
  std::optional<ExecutionId> next_cursor;
  bool operator==(const SuspendedPage&) const = default;
};
// The open suspensions, oldest first.
struct ListSuspended {
  using Answer = SuspendedPage;
  std::optional<std::uint16_t> partition{};  // absent: of all
  std::optional<ExecutionId> cursor{};
  // The time of the cursor's suspension, as it was listed; absent: as its record says now.
  std::optional<std::int64_t> cursor_suspended_at_ms{};
  std::uint32_t limit{100};
};

struct SignalEventView {
  std::int64_t event_id{};
  ExecutionId execution_id;
  SignalId signal_id;
  WaitpointId waitpoint_id;
  std::string source_identity;
  std::string effect;  // satisfied, buffered, deduped, or the effect's own name
  std::string namespace_;
  Tags tags;
  std::int64_t occurred_at{};
  bool operator==(const SignalEventView&) const = default;
};
struct ReadSignalEvents {
  using Answer = std::vector<SignalEventView>;
  std::int64_t after{0};
  std::uint32_t limit{256};
};

// The signals that resumed this attempt, in the order of acceptance; none if no signal did.
struct ObserveSignals {
  using Answer = std::vector<ResumeSignal>;
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
};

}  // namespace flowfabric
