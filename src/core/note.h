// What operations tell about what they did, for those who count it. Kept with the operation's changes and
// undone with them; the engine counts when they are committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flowfabric::core {

enum class Noted : std::uint8_t {
  // An attempt ended; the label is its lane.
  attempt_ok,
  attempt_error,
  attempt_timeout,
  attempt_cancelled,
  attempt_retry,
  // An execution that was claimed before ended; the label is its lane, the amount the milliseconds since its
  // first claim.
  execution_success,
  execution_failed,
  execution_cancelled,
  execution_expired,
  // A claim was held back; the label is the dimension, or `rate` or `concurrency`.
  budget_hit,
  quota_hit,
  join_policy,             // was given to a join; the label is its kind
  sibling_dispatched,      // is to be cancelled; the label is why
  sibling_disposition,     // what became of it
  sibling_reconciliation,  // a join for which nothing has to be cancelled (any more)
  unblocked,               // the label is what it waited for
  budget_reset,
  frame,              // was appended; the label is its mode, the amount its bytes
  execution_created,  // the label is its lane
  budget_breach,      // the label is `hard` or `soft`
  warning,            // the label is what somebody should know although nothing failed; never a secret
};
inline constexpr std::size_t kNotedSize = static_cast<std::size_t>(Noted::warning) + 1;

struct Note {
  Noted what{};
  std::string label;
  std::int64_t amount{};
};

}  // namespace flowfabric::core
