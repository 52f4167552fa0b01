// The schema, as versioned migrations that are part of the program.
#pragma once

#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/files.h"

namespace flowfabric::store::sqlite {

struct Migration {
  int version;
  const char* name;
  const char* sql;
};
const std::vector<Migration>& migrations();
extern const char* const kSuspensionSchema;
extern const char* const kLimitSchema;
extern const char* const kStreamSchema;
extern const char* const kWaitpointIdSchema;
extern const char* const kPauseSchema;
extern const char* const kByIdSchema;
extern const char* const kRedoSchema;
extern const char* const kPastRedoSchema;
extern const char* const kLeaseSchema;
extern const char* const kUpkeepSchema;
extern const char* const kRegistrationSchema;

// Refuses a file of another program before anything touches it.
void check_file(const File& file);
// Refuses a database of another program, and a schema newer than this program.
void check_schema(Connection& connection);

// Brings the database up to date and says which migrations ran. Refuses partition counts other than those the
// store was made with. To be committed by the caller.
std::vector<std::string> migrate(Connection& connection, const StoreOptions& options);

}  // namespace flowfabric::store::sqlite
