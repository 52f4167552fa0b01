// The secrets behind waitpoint tokens (specification 03 §3).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// When an engine opens a store, it brings a secret for this kid, or makes one.
inline constexpr const char* kFirstKid = "k1";
enum class SecretFrom { caller, engine };
enum class SecretAtOpen {
  in_force,  // or was, and others came after it
  installed,
  put_back,           // the store had the kid without its secret
  another_is_stored,  // and stays
};
SecretAtOpen install_secret(Unit& unit, const std::string& secret, SecretFrom whom, Context& at);

Result<SecretSeeded> apply(Unit& unit, const SeedWaitpointSecret& request, Context& at);
Result<SecretRotated> apply(Unit& unit, const RotateWaitpointSecret& request, Context& at);

// Tokens of this one are still accepted.
bool is_accepted(const HmacKey& key, std::int64_t now_ms);

// A token by the secret in force.
Result<std::string> sign(Unit& unit, const ExecutionId& execution_id, const WaitpointId& waitpoint_id);

// Whether the token opens the waitpoint. Says the same of a waitpoint that is not there as of a wrong token,
// and that a token has expired only to who holds a genuine one.
Result<void> verify(Unit& unit, const WaitpointRecordKey& key, const std::string& token, const Context& at);

}  // namespace flowfabric::core
