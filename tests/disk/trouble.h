// One disk error: a process meets it and ends, and another one continues from the remaining state.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "disk/recording.h"
#include "disk/rounds.h"

namespace flowfabric::disk {

inline constexpr std::uint64_t kForEver = 1'000'000'000;  // calls in a row

struct Experiment {
  Failing failing;
  bool is_restart{false};  // the process that meets it begins with what a killed one has left
  unsigned seed{};
  std::size_t states{3};  // how many are looked at
};

struct Outcome {
  bool was_met{false};  // the call that was to fail was made
  std::string what;     // failed: which call on which file
  std::size_t states{0};
  std::vector<std::string> broken_rules;  // of how an engine behaves on a bad disk
  std::string trace;                      // where it is kept: of the first that breaks a rule
  std::vector<std::string> bad_states;    // where something is missing, or made up
};

Outcome run(const Experiment& experiment);

// A short run without any error: how many calls there were that can fail, and which sites of syncs.
struct Probe {
  std::uint64_t calls[kCalls]{};
  std::map<std::string, std::uint64_t> syncs_of_site;
  Seen seen;
};
Probe probe(bool is_restart, unsigned seed);

std::string site_text(std::uint64_t number);

}  // namespace flowfabric::disk
