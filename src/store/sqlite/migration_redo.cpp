// How far the redo log (redo_log.h) is in the tables, and which log is this database's.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kRedoSchema = R"sql(
create table ff_redo (
  id      integer primary key,  -- 1
  log_id  integer,
  applied integer  -- the number of the last entry
);
insert into ff_redo values (1, random(), 0);
)sql";

const char* const kPastRedoSchema = R"sql(
-- The logs that the database had before: all that was in them is in the tables. Files of theirs may come back when the
-- power fails.
create table ff_redo_past (
  opening integer primary key,
  log_id  integer
);
)sql";

}  // namespace flowfabric::store::sqlite
