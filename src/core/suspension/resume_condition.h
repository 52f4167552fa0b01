// The evaluation of resume conditions: pure functions of the tree, what has arrived so far, and a signal.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"
#include "flowfabric/suspension.h"

namespace flowfabric::core {

// What a waitpoint shows for a condition that no signal meets; no signal may be named like these.
inline constexpr const char* kOperatorOnlyName = "__operator_only__";
inline constexpr const char* kTimeoutOnlyName = "__timeout_only__";

// Refused with `invalid_input`: too deep, too large, empty where it may not be, or a count that cannot be
// reached.
Result<void> check(const ResumeCondition& condition);

// The keys of the waitpoints it names, in the order of a walk through the tree, each once.
std::vector<std::string> keys_of(const ResumeCondition& condition);
// Gives the key to every node that names none.
void name_waitpoint(ResumeCondition& condition, const std::string& key);
bool needs_deadline(const ResumeCondition& condition);  // it says TimeoutOnly somewhere

// The names that signals on this waitpoint may have; empty: any. Or what is shown in their place.
std::vector<std::string> required_names(const ResumeCondition& condition, const std::string& key);

// The signal as far as conditions look at it.
struct ArrivedSignal {
  SignalId signal_id;
  WaitpointId waitpoint_id;
  std::string waitpoint_key;
  std::string signal_name;
  std::string source_type;
  std::string source_identity;
};

// Who has met which node: "members[0].members[1]" and `leaf`, `wp:…`, `sig:…`, `src:…`. Per node, so that two
// counts of one kind do not fill each other.
struct Satisfier {
  std::string path;
  std::string who;
  auto operator<=>(const Satisfier&) const = default;
};
using Satisfied = std::set<Satisfier>;

// What the signal changes, added to `satisfied`.
SignalEffect deliver(const ResumeCondition& condition, Satisfied& satisfied, const ArrivedSignal& signal);
// It counts among the matched signals of its waitpoint; a duplicate does, too.
bool is_matched(SignalEffect effect);
// It has added something, and is one of those the resumed worker gets to see.
bool is_satisfier(SignalEffect effect);

}  // namespace flowfabric::core
