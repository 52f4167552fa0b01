// The schema, as versioned migrations that are part of the program.
#pragma once

#include <string>
#include <vector>

#include "store/postgres/connection.h"

namespace flowfabric::store::postgres {

struct Migration {
  int version;
  const char* name;
  const char* sql;  // statements; the comments in it become comments of the tables and columns
  bool backward_compatible{true};
};
const std::vector<Migration>& migrations();
extern const char* const kSuspensionSchema;
extern const char* const kLimitSchema;
extern const char* const kStreamSchema;
extern const char* const kWaitpointIdSchema;
extern const char* const kPauseSchema;
extern const char* const kLeaseSchema;
extern const char* const kUpkeepSchema;
extern const char* const kRegistrationSchema;

// The statements of a migration, those that comment on its tables and columns included.
std::vector<std::string> statements_of(const Migration& migration);

// Brings the schema up to date in one transaction and says what was done. Refuses a schema newer than this
// program, and partition counts other than those it was made with.
std::string migrate(Connection& connection, const PartitionCounts& partitions);

// The SQL that it would run.
std::string plan_migration(Connection& connection, const PartitionCounts& partitions);

// Refuses a schema that is missing, older or newer, other partition counts, and a database that cannot be
// written to.
void check_schema(Connection& connection, const PartitionCounts& partitions);

}  // namespace flowfabric::store::postgres
