// The records of suspensions: the latest of an execution and those before it, its waitpoints and signals,
// the keys that make calls repeatable, and the secrets that tokens are signed with. All but the secrets are
// kept under the key of their execution, whose lock guards them, and removed with it.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/suspension.h"
#include "model/execution_records.h"

namespace flowfabric {

struct SuspensionDetails {
  std::optional<SuspensionId> suspension_id;  // absent: there has been none yet
  std::uint32_t attempt_index{};
  // In the order in which they were bound; the first is the primary one.
  std::vector<std::string> waitpoint_ids;
  SuspensionReason reason_code{};
  SuspensionRequester requested_by{};
  std::int64_t suspended_at_ms{};
  std::optional<std::int64_t> timeout_at_ms;
  TimeoutBehavior timeout_behavior{};
  std::string timeout_signal_name;
  ResumeCondition resume_condition;
  std::optional<std::int64_t> resume_delay_ms;
  std::string continuation_metadata_pointer;
  // "<path of the node> <who has met it>"; empty once it is closed.
  std::vector<std::string> satisfied_set;
  // Numbers of the signals that have added to it, in the order of their acceptance.
  std::vector<std::string> satisfier_signals;
  std::optional<std::int64_t> last_signal_at_ms;
  std::optional<std::int64_t> closed_at_ms;
  std::string close_reason;
  ResumeTrigger resume_trigger{ResumeTrigger::none};
  std::string resume_requested_by;
  bool operator==(const SuspensionDetails&) const = default;
};
BOOST_DESCRIBE_STRUCT(SuspensionDetails, (),
                      (suspension_id, attempt_index, waitpoint_ids, reason_code, requested_by,
                       suspended_at_ms, timeout_at_ms, timeout_behavior, timeout_signal_name,
                       resume_condition, resume_delay_ms, continuation_metadata_pointer, satisfied_set,
                       satisfier_signals, last_signal_at_ms, closed_at_ms, close_reason, resume_trigger,
                       resume_requested_by))

struct SuspensionKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  auto operator<=>(const SuspensionKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(SuspensionKey, (), (partition_key, execution_id))

// The latest suspension of an execution, and what is counted over all of them. There from its first
// suspension, pending waitpoint or refused token on.
struct Suspension {
  static constexpr const char* table = "ff_suspension_current";
  using Key = SuspensionKey;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t suspension_count{};  // this one included
  std::uint32_t signal_count{};      // of all waitpoints
  std::optional<std::int64_t> last_hmac_validation_failed_at_ms;
  SuspensionDetails details;
  std::optional<std::int64_t> next_due_at_ms;  // the timeout, while it is open
  bool operator==(const Suspension&) const = default;

  ExecutionId owner() const { return {partition_key, execution_id}; }
};
BOOST_DESCRIBE_STRUCT(Suspension, (),
                      (partition_key, execution_id, suspension_count, signal_count,
                       last_hmac_validation_failed_at_ms, details, next_due_at_ms))

struct PastSuspensionKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t suspension_index{};  // from 0 on
  auto operator<=>(const PastSuspensionKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(PastSuspensionKey, (), (partition_key, execution_id, suspension_index))

struct PastSuspension {
  static constexpr const char* table = "ff_suspension_history";
  using Key = PastSuspensionKey;
  Key key() const { return {partition_key, execution_id, suspension_index}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t suspension_index{};
  SuspensionDetails details;
  bool operator==(const PastSuspension&) const = default;
};
BOOST_DESCRIBE_STRUCT(PastSuspension, (), (partition_key, execution_id, suspension_index, details))

struct WaitpointRecordKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  WaitpointId waitpoint_id;
  auto operator<=>(const WaitpointRecordKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(WaitpointRecordKey, (), (partition_key, execution_id, waitpoint_id))

// Where signals arrive. Its token never changes; it stays, closed, as long as its execution.
struct Waitpoint {
  static constexpr const char* table = "ff_waitpoint_pending";
  using Key = WaitpointRecordKey;
  Key key() const { return {partition_key, execution_id, waitpoint_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  WaitpointId waitpoint_id;
  std::string waitpoint_key;
  std::uint32_t attempt_index{};
  std::optional<SuspensionId> suspension_id;  // absent while pending
  std::string token;                          // secret
  WaitpointState state{};
  std::vector<std::string> required_signal_names;
  std::int64_t created_at_ms{};
  std::optional<std::int64_t> activated_at_ms;
  std::optional<std::int64_t> satisfied_at_ms;
  std::optional<std::int64_t> closed_at_ms;
  std::optional<std::int64_t> expires_at_ms;
  std::string close_reason;
  std::uint32_t signal_count{};
  std::uint32_t matched_signal_count{};
  std::optional<std::int64_t> last_signal_at_ms;
  // Numbers of the signals that came while it was pending.
  std::vector<std::string> buffered_signals;
  std::optional<std::int64_t> next_due_at_ms;  // when it expires, while pending
  bool operator==(const Waitpoint&) const = default;

  ExecutionId owner() const { return {partition_key, execution_id}; }
};
BOOST_DESCRIBE_STRUCT(Waitpoint, (),
                      (partition_key, execution_id, waitpoint_id, waitpoint_key, attempt_index, suspension_id,
                       token, state, required_signal_names, created_at_ms, activated_at_ms, satisfied_at_ms,
                       closed_at_ms, expires_at_ms, close_reason, signal_count, matched_signal_count,
                       last_signal_at_ms, buffered_signals, next_due_at_ms))

struct SignalKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t signal_index{};  // in the order of acceptance, from 0 on
  auto operator<=>(const SignalKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(SignalKey, (), (partition_key, execution_id, signal_index))

// The audit trail: every signal that was accepted.
struct Signal {
  static constexpr const char* table = "ff_signal";
  using Key = SignalKey;
  Key key() const { return {partition_key, execution_id, signal_index}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t signal_index{};
  SignalId signal_id;
  WaitpointId waitpoint_id;
  std::string target_scope;
  std::string signal_name;
  std::string signal_category;
  std::string source_type;
  std::string source_identity;
  std::string correlation_id;
  std::string idempotency_key;
  std::string payload_encoding;
  bool has_payload{false};
  Bytes payload;
  std::int64_t created_at_ms{};
  std::int64_t accepted_at_ms{};
  SignalEffect observed_effect{};
  bool operator==(const Signal&) const = default;
};
BOOST_DESCRIBE_STRUCT(Signal, (),
                      (partition_key, execution_id, signal_index, signal_id, waitpoint_id, target_scope,
                       signal_name, signal_category, source_type, source_identity, correlation_id,
                       idempotency_key, payload_encoding, has_payload, payload, created_at_ms, accepted_at_ms,
                       observed_effect))

struct SignalDedupKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  WaitpointId waitpoint_id;
  std::string idempotency_key;
  auto operator<=>(const SignalDedupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(SignalDedupKey, (), (partition_key, execution_id, waitpoint_id, idempotency_key))

struct SignalDedup {
  static constexpr const char* table = "ff_signal_dedup";
  using Key = SignalDedupKey;
  Key key() const { return {partition_key, execution_id, waitpoint_id, idempotency_key}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  WaitpointId waitpoint_id;
  std::string idempotency_key;
  SignalId signal_id;
  std::int64_t expires_at_ms{};
  bool operator==(const SignalDedup&) const = default;
};
BOOST_DESCRIBE_STRUCT(SignalDedup, (),
                      (partition_key, execution_id, waitpoint_id, idempotency_key, signal_id, expires_at_ms))

struct SuspendDedupKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string idempotency_key;
  auto operator<=>(const SuspendDedupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(SuspendDedupKey, (), (partition_key, execution_id, idempotency_key))

// Which suspension a key has made; the answer is read from that one.
struct SuspendDedup {
  static constexpr const char* table = "ff_suspend_dedup";
  using Key = SuspendDedupKey;
  Key key() const { return {partition_key, execution_id, idempotency_key}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string idempotency_key;
  std::uint32_t suspension_index{};
  bool already_satisfied{false};
  std::int64_t expires_at_ms{};
  bool operator==(const SuspendDedup&) const = default;
};
BOOST_DESCRIBE_STRUCT(SuspendDedup, (),
                      (partition_key, execution_id, idempotency_key, suspension_index, already_satisfied,
                       expires_at_ms))

struct HmacKeyKey {
  std::string kid;
  auto operator<=>(const HmacKeyKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(HmacKeyKey, (), (kid))

// A secret that tokens are signed with, or were.
struct HmacKey {
  static constexpr const char* table = "ff_waitpoint_hmac";
  using Key = HmacKeyKey;
  Key key() const { return {kid}; }

  std::string kid;
  Bytes secret;
  std::int64_t rotated_at_ms{};
  bool active{false};
  std::optional<std::int64_t> expires_at_ms;  // of a retired one: until when its tokens are accepted
  std::string previous_kid;
  bool operator==(const HmacKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(HmacKey, (), (kid, secret, rotated_at_ms, active, expires_at_ms, previous_kid))

struct KeystoreKey {
  std::int32_t keystore_id{1};
  auto operator<=>(const KeystoreKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(KeystoreKey, (), (keystore_id))

// Which secret new tokens are signed with. There is one.
struct Keystore {
  static constexpr const char* table = "ff_waitpoint_keystore";
  using Key = KeystoreKey;
  Key key() const { return {keystore_id}; }

  std::int32_t keystore_id{1};
  std::string active_kid;
  bool operator==(const Keystore&) const = default;
};
BOOST_DESCRIBE_STRUCT(Keystore, (), (keystore_id, active_kid))

}  // namespace flowfabric
