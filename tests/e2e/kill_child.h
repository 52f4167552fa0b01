// The process that is killed: an engine under load from several threads, which writes one line to a pipe for
// every operation that was acknowledged, after its answer arrived.
#pragma once

#include <cstdint>
#include <string>

namespace flowfabric::e2e {

inline constexpr const char* kChildArgument = "--child-of-kill-test";

// The lines: a letter, the execution's id, and what the answer said.
//   C id              created
//   M id              marked with the tag kMark, whose value is the id
//   T id epoch        taken (claimed)
//   D id epoch        done (completed), with result_of(id, epoch)
//   F id epoch retry  failed; retry is 1 when another attempt was planned
//   L id epoch        later (delayed)
//   A id              about to be replayed: it may run again from now on
//   R id              replayed
//   V id epoch        shown to a reader with this lease epoch (said by other children)
inline constexpr const char* kMark = "test.mark";
std::string result_of(const std::string& id, std::int64_t epoch);

// Runs until it is killed. Returns only when something is wrong, with a line that starts with `!`.
int run_child(const std::string& url, int round, int pipe);

}  // namespace flowfabric::e2e
