// Cuts the power at many points of a recording, and checks what the disk may hold then.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "disk/recording.h"
#include "disk/state_checks.h"
#include "disk/states.h"

namespace flowfabric::disk {

struct Cut {
  std::size_t event;  // the first one that does not happen
  Choice choice;
};

// In the order of the trace. Most are where something is at stake: behind an answer, within a sync, where
// names change.
// None is before the event `from`.
std::vector<Cut> choose_cuts(const Trace& trace, std::size_t count, std::mt19937& random,
                             std::size_t from = 0);

// By the event with which a process begins: the executions that are on disk for certain by then. Only for
// `normal`: in full, every answered operation must be there anyway.
using Stored = std::map<std::size_t, std::set<std::string>>;
Stored stored_at_starts(const Trace& trace, Promise promise);

struct BadState {
  Cut cut;
  std::vector<std::string> complaints;
};

// Tells `told` of each bad state, which says whether to go on. Returns how many were looked at. What is
// `stored` when a process begins must be there ever after.
std::size_t check_cuts(const Trace& trace, Promise promise, const std::vector<Cut>& cuts,
                       const std::function<bool(const BadState&)>& told, const Stored& stored = {});

// Keeps the files needed to examine the state again, and says how (FF_DISK_REPEAT).
std::string keep(const Trace& trace, Promise promise, const BadState& bad);
// Fails the running test, and keeps the state.
void report(const Trace& trace, Promise promise, const BadState& bad, const std::string& where_from);

}  // namespace flowfabric::disk
