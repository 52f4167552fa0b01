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

}  // namespace flowfabric::store::sqlite
