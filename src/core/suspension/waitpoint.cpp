#include "core/suspension/waitpoint.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/suspension/keystore.h"
#include "core/suspension/resume_condition.h"
#include "core/suspension/suspension.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

std::unexpected<Error> refuse(const std::string& rule, const std::string& advice) {
  return fail_with(ErrorCode::invalid_input, rule, advice);
}

// By any execution; the index does not know of what this batch has made and removed.
bool is_used(Unit& unit, const WaitpointId& id) {
  bool used = std::ranges::any_of(unit.ask(WaitpointsNamed{id}), [&](const WaitpointRecordKey& key) {
    return !unit.purged().contains(owner_of(key));
  });
  unit.for_each_dirty<Waitpoint>(
      [&](const Slot<Waitpoint>& slot) { used = used || (slot.current() && slot.key.waitpoint_id == id); });
  return used;
}

Result<Waitpoint> new_waitpoint(Unit& unit, const ExecutionId& id, std::uint32_t attempt_index,
                                const std::optional<WaitpointId>& wanted_id, const std::string& key,
                                Context& at) {
  const auto waitpoint_id = wanted_id ? *wanted_id : at.mint<WaitpointId>();
  // One that is minted is new: looking for it would cost a round trip.
  if (wanted_id && is_used(unit, waitpoint_id)) {
    return fail_with(ErrorCode::waitpoint_already_exists, waitpoint_id.to_string(),
                     "The id of a waitpoint is never used again: give another one, or none.");
  }
  auto token = sign(unit, id, waitpoint_id);
  if (!token) return std::unexpected(token.error());
  Waitpoint waitpoint{.partition_key = id.partition, .execution_id = id.uuid, .waitpoint_id = waitpoint_id};
  waitpoint.waitpoint_key = key.empty() ? "wpk:" + waitpoint_id.to_string() : key;
  waitpoint.attempt_index = attempt_index;
  waitpoint.token = *std::move(token);
  waitpoint.created_at_ms = at.now_ms;
  return waitpoint;
}

void activate(Waitpoint& waitpoint, const SuspensionDetails& details, const Context& at) {
  waitpoint.state = WaitpointState::active;
  waitpoint.suspension_id = details.suspension_id;
  waitpoint.activated_at_ms = at.now_ms;
  waitpoint.expires_at_ms = details.timeout_at_ms;
  waitpoint.required_signal_names = required_names(details.resume_condition, waitpoint.waitpoint_key);
  waitpoint.next_due_at_ms.reset();
}

Result<WaitpointRecordKey> bind_pending(Unit& unit, const Execution& execution,
                                        const WaitpointBinding& binding, SuspensionDetails& details,
                                        const Context& at) {
  const auto key = waitpoint_key(execution.key(), binding.waitpoint_id.value_or(WaitpointId{}));
  const auto* found = unit.find<Waitpoint>(key);
  if (!found && is_used(unit, key.waitpoint_id)) {
    return fail_with(ErrorCode::invalid_waitpoint_for_execution, key.waitpoint_id.to_string(),
                     "The waitpoint was made for another execution.");
  }
  if (!found) {
    return fail_with(ErrorCode::waitpoint_not_found, key.waitpoint_id.to_string(),
                     "No such waitpoint was made for this execution.");
  }
  if (found->state != WaitpointState::pending) {
    return fail_with(ErrorCode::waitpoint_not_pending, std::string(enum_name(found->state)),
                     "The waitpoint has been used, or closed.");
  }
  if (found->attempt_index != execution.attempt.attempt_index) {
    return fail_with(ErrorCode::invalid_waitpoint_for_execution, key.waitpoint_id.to_string(),
                     "The waitpoint was made by another attempt.");
  }
  if (has_expired(*found, at.now_ms)) {
    return fail_with(ErrorCode::pending_waitpoint_expired, key.waitpoint_id.to_string(),
                     "The waitpoint was not used in time: make a new one.");
  }
  if (found->token.empty()) {
    return fail_with(ErrorCode::waitpoint_not_token_bound, key.waitpoint_id.to_string(),
                     "The waitpoint has no token: make a new one.");
  }
  name_waitpoint(details.resume_condition, found->waitpoint_key);
  const auto named = keys_of(details.resume_condition);
  if (named.size() > 1 || (named.size() == 1 && named[0] != found->waitpoint_key)) {
    return refuse("waitpoint_key_mismatch", "The condition names another key than the waitpoint's.");
  }
  activate(unit.edit<Waitpoint>(key), details, at);
  return key;
}

}  // namespace

Result<const Execution*> check_holder(Unit& unit, const ExecutionId& id, const LeaseFence& fence,
                                      const std::optional<std::uint32_t>& attempt_index, ErrorCode mismatch,
                                      Context& at) {
  if (auto ok = check_fence_shape(fence, Unfenced::never, ""); !ok) return std::unexpected(ok.error());
  auto held = check_lease(unit, id, fence, OnExpiry::mark, at);
  if (!held) return held;
  if (attempt_index && *attempt_index != (*held)->attempt.attempt_index) {
    return fail_with(mismatch, std::to_string(*attempt_index),
                     "The attempt index is not that of the running attempt.");
  }
  return held;
}

Result<void> bind(Unit& unit, const Execution& execution, const std::vector<WaitpointBinding>& bindings,
                  SuspensionDetails& details, Context& at) {
  std::vector<WaitpointRecordKey> keys;
  std::vector<WaitpointsNamed> names;
  for (const auto& binding : bindings) {
    if (!binding.waitpoint_id) continue;
    if (binding.use_pending)
      keys.push_back(waitpoint_key(execution.key(), *binding.waitpoint_id));
    else
      names.push_back({*binding.waitpoint_id});
  }
  unit.fetch<Waitpoint>(keys);
  unit.fetch_answers(names);
  for (const auto& binding : bindings) {
    if (binding.use_pending) {
      auto key = bind_pending(unit, execution, binding, details, at);
      if (!key) return std::unexpected(key.error());
      details.waitpoint_ids.push_back(key->waitpoint_id.to_string());
      continue;
    }
    auto fresh = new_waitpoint(unit, execution.key(), execution.attempt.attempt_index, binding.waitpoint_id,
                               binding.waitpoint_key, at);
    if (!fresh) return std::unexpected(fresh.error());
    if (details.waitpoint_ids.empty()) name_waitpoint(details.resume_condition, fresh->waitpoint_key);
    activate(*fresh, details, at);
    details.waitpoint_ids.push_back(fresh->waitpoint_id.to_string());
    unit.insert(*std::move(fresh));
  }
  // A key that was filled in may be one that the condition names as well.
  return check(details.resume_condition);
}

Result<TokenedWaitpoint> apply(Unit& unit, const CreateWaitpoint& request, Context& at) {
  const auto& id = request.execution_id;
  if (request.waitpoint_key.size() > kMaxWaitpointKeyLength) {
    return refuse("waitpoint_key: longer than 256 bytes", "Use a shorter key.");
  }
  if (auto ok = check_text("waitpoint_key", request.waitpoint_key); !ok) return std::unexpected(ok.error());
  if (request.expires_in_ms < 0) {
    return refuse("expires_in_ms: negative", "Say for how long the waitpoint is kept.");
  }
  auto held = check_holder(unit, id, request.fence, request.attempt_index, ErrorCode::stale_lease, at);
  if (!held) return std::unexpected(held.error());
  auto fresh =
      new_waitpoint(unit, id, (*held)->attempt.attempt_index, std::nullopt, request.waitpoint_key, at);
  if (!fresh) return std::unexpected(fresh.error());
  fresh->state = WaitpointState::pending;
  fresh->expires_at_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(request.expires_in_ms));
  fresh->next_due_at_ms = fresh->expires_at_ms;
  suspension_row(unit, id);
  const auto& made = unit.insert(*std::move(fresh));
  return TokenedWaitpoint{made.waitpoint_id, made.waitpoint_key, made.token};
}

Result<WaitpointClosed> apply(Unit& unit, const CloseWaitpoint& request, Context& at) {
  if (auto ok = check_text("reason", request.reason, kMaxKeyBytes); !ok) return std::unexpected(ok.error());
  if (!unit.find<Execution>(request.execution_id)) return std::unexpected(not_found(request.execution_id));
  const auto key = waitpoint_key(request.execution_id, request.waitpoint_id);
  const auto* found = unit.find<Waitpoint>(key);
  if (!found) {
    return fail_with(ErrorCode::waitpoint_not_found, request.waitpoint_id.to_string(),
                     "The execution has no such waitpoint.");
  }
  if (found->state == WaitpointState::closed) return WaitpointClosed{.already_closed = true};
  close(unit.edit<Waitpoint>(key), request.reason.empty() ? "proactive_close" : request.reason, at);
  return WaitpointClosed{};
}

bool has_expired(const Waitpoint& waitpoint, std::int64_t now_ms) {
  return waitpoint.state == WaitpointState::pending && waitpoint.expires_at_ms &&
         *waitpoint.expires_at_ms <= now_ms;
}

Rule run_waitpoint_clock(Unit& unit, const WaitpointRecordKey& key, Context& at) {
  const auto* found = unit.find<Waitpoint>(key);
  if (!found || !found->next_due_at_ms) return Rule::none;
  if (!has_expired(*found, at.now_ms)) {
    const auto due_at = found->state == WaitpointState::pending ? found->expires_at_ms : std::nullopt;
    if (found->next_due_at_ms != due_at) unit.edit<Waitpoint>(key).next_due_at_ms = due_at;
    return Rule::none;
  }
  close(unit.edit<Waitpoint>(key), "never_committed", at);
  return Rule::pending_wp_expiry;
}

FLOWFABRIC_OPERATION(CreateWaitpoint)
FLOWFABRIC_OPERATION(CloseWaitpoint)

}  // namespace flowfabric::core
