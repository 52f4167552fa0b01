// Fair sharing of a lane between keys (tenants, or the values of a tag), and a limit for each.
//
// A lane that shares fairly gives every execution a rank when it becomes eligible: the virtual time at which
// it would start if all keys with waiting work took turns. The rank takes the place of age in the order of
// offers, so that a claim costs nothing more. Virtual time is the rank of what was taken last; a key that
// was idle starts there, and one with a long backlog stands as far ahead as it has work.
//
// A key is counted by a quota policy of its own, whose id follows from lane and key.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<LaneFairness> apply(Unit& unit, const SetLaneFairness& request, Context& at);

QuotaPolicyKey key_policy(const std::string& lane, const std::string& fair_key, const Context& at);

// Gives a rank to what is going to be offered and has none.
void give_rank(Unit& unit, Execution& execution, const Context& at);
// It was taken: virtual time moves on.
void pass_rank(Unit& unit, Execution& execution, const Context& at);

// The policy of its key, if the lane limits keys; with the lane's limit.
std::optional<QuotaPolicyKey> limit_of_key(Unit& unit, const Execution& execution, const Context& at);
void apply_limit_of_lane(Unit& unit, const QuotaPolicyKey& key);

// Nobody waits or runs under this key, and it has no lead: its record says nothing.
bool is_forgettable(Unit& unit, const QuotaPolicy& policy);

}  // namespace flowfabric::core
