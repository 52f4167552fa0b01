// The process that is killed in the middle of a flow: it lets one of many siblings win, and ends a member
// that many others wait for.
#pragma once

#include <string>

namespace flowfabric::e2e {

inline constexpr const char* kFlowArgument = "--child-of-flow-test";
// Siblings in the race, and dependents of the one node: more than one transaction takes care of.
inline constexpr int kSiblings = 1000;
inline constexpr int kDependents = 1000;

// Says `race <id>` and `wide <id>` when the flows are there and their first nodes run, `widened` and `won`
// when the calls that end them were answered. Then it waits to be killed.
int run_flows(const std::string& url, int pipe);

}  // namespace flowfabric::e2e
