// Runs what the redo log holds and the database does not: what the last process has acknowledged and not got
// round to writing. Before the schema is brought up to date, for its statements are those of the version
// that wrote them.
#pragma once

#include "store/sqlite/database.h"

namespace flowfabric::store::sqlite {

// Afterwards there is no redo log. Refuses one that is another database's, or that has a part missing.
void replay_redo_log(Connection& connection);

}  // namespace flowfabric::store::sqlite
