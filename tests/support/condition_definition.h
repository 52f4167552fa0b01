// The literal definition of a resume condition, slow and simple, with which the evaluator is compared.
#pragma once

#include <algorithm>
#include <set>

#include "core/suspension/resume_condition.h"

namespace flowfabric::tests {

inline bool passes(const SignalMatcher& matcher, const core::ArrivedSignal& arrived) {
  return !matcher.name || *matcher.name == arrived.signal_name;
}

inline bool holds(const ResumeCondition& condition, const std::vector<core::ArrivedSignal>& history) {
  if (const auto* all = std::get_if<AllOf>(&condition.node)) {
    return std::ranges::all_of(all->members, [&](const auto& member) { return holds(member, history); });
  }
  if (const auto* one = std::get_if<SingleSignal>(&condition.node)) {
    return std::ranges::any_of(history, [&](const auto& arrived) {
      return arrived.waitpoint_key == one->waitpoint_key && passes(one->matcher, arrived);
    });
  }
  const auto* counted = std::get_if<CountOf>(&condition.node);
  if (!counted) return false;
  std::set<std::pair<std::string, std::string>> different;
  for (const auto& arrived : history) {
    const bool listed =
        std::ranges::find(counted->waitpoints, arrived.waitpoint_key) != counted->waitpoints.end();
    if (!listed || !passes(counted->matcher, arrived)) continue;
    switch (counted->count_kind) {
      case CountKind::distinct_waitpoints:
        different.emplace(arrived.waitpoint_key, "");
        break;
      case CountKind::distinct_signals:
        different.emplace(arrived.signal_id.to_string(), "");
        break;
      case CountKind::distinct_sources:
        different.emplace(arrived.source_type, arrived.source_identity);
        break;
    }
  }
  return different.size() >= counted->n;
}

}  // namespace flowfabric::tests
