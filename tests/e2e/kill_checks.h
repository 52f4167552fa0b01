// What must be true of a database after its process was killed.
#pragma once

#include <map>
#include <set>
#include <string>

#include "store/store.h"

namespace flowfabric::e2e {

// What was acknowledged for one execution, over all rounds.
struct Acknowledged {
  std::set<std::int64_t> leases;          // handed out
  std::int64_t ended_epoch{0};            // of the latest lease ended by a report
  std::set<std::int64_t> completed;       // by lease
  std::map<std::int64_t, bool> failures;  // by lease: whether another attempt was planned
  bool marked{false};
  bool may_run_again{false};  // a replay was asked for
  std::uint32_t replays{0};
};

struct Ledger {
  std::map<std::string, Acknowledged> executions;
  std::size_t lines{0};
  // Takes one line of the child; a complaint when it makes no sense.
  std::string note(const std::string& line);
};

// Adds a failure of the running test for everything that is not as it should be.
void check_acknowledged(store::Session& session, const Ledger& ledger);
void check_nothing_is_half_there(const std::string& database);
// The consistency check of the engine itself.
void check_store(const std::string& database);

}  // namespace flowfabric::e2e
