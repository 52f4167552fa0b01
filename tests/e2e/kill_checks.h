// Checks of a database after its process was killed, or after other trouble.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "store/store.h"

namespace flowfabric::e2e {

// The acknowledged operations of one execution, over all rounds.
struct Acknowledged {
  std::set<std::int64_t> leases;          // handed out
  std::int64_t ended_epoch{0};            // of the latest lease ended by a report
  std::int64_t shown_epoch{0};            // that a reader was shown
  std::set<std::int64_t> completed;       // by lease
  std::map<std::int64_t, bool> failures;  // by lease: whether another attempt was planned
  bool marked{false};
  bool may_run_again{false};  // a replay was asked for
  std::uint32_t replays{0};
};

struct Ledger {
  std::map<std::string, Acknowledged> executions;
  std::size_t lines{0};
  std::size_t completions{0};
  // Takes one line of the child; a complaint when it makes no sense.
  std::string note(const std::string& line);
};
// Takes whole lines, and adds a failure of the running test for each that makes no sense.
void note_lines(const std::string& lines, Ledger& ledger);

// The number that a query gives.
using Number = std::function<std::int64_t(const std::string& sql)>;

// Adds a failure of the running test for every row of the query.
void expect_none(const Number& number, const char* what, const std::string& query);

// Adds a failure of the running test for everything that is not as it should be.
void check_acknowledged(const std::string& url, const Ledger& ledger);
void check_nothing_is_half_there(const Number& number);
// The consistency check of the engine itself.
void check_store(const std::string& url);

}  // namespace flowfabric::e2e
