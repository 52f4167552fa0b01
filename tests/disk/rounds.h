// Recordings of the load: several processes in turn on one folder, some killed, some ended in order.
#pragma once

#include <random>
#include <string>

#include "disk/cuts.h"
#include "disk/recording.h"
#include "disk/state_checks.h"

namespace flowfabric::disk {

// The events that recordings contained. Each must have happened; otherwise the states say nothing about it.
struct Seen {
  std::size_t kills{0};
  std::size_t orderly_ends{0};
  std::size_t redo_turns{0};   // a file of the redo log began
  std::size_t wal_starts{0};   // a write-ahead log began
  std::size_t checkpoints{0};  // runs of writes into the database
  std::size_t shown{0};        // to readers
  std::size_t acknowledged{0};

  void add(const Trace& trace);
  std::string to_string() const;
};

void run_rounds(Recording& recording, Promise promise, unsigned seed, int rounds, Seen& seen,
                const Settings& settings = {});

// Another disk, which holds what the first one held when its power was cut; all that had been said is still
// said.
std::unique_ptr<Recording> after_cut(const Trace& before, const Cut& cut);

}  // namespace flowfabric::disk
