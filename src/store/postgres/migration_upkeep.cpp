// Clocks that keep to a namespace pass over what belongs to others without looking at its rows.
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kUpkeepSchema = R"sql(
drop index ff_exec_core_due;
create index ff_exec_core_due on ff_exec_core (next_due_at_ms, namespace) where next_due_at_ms is not null;
drop index ff_exec_core_purge;
create index ff_exec_core_purge on ff_exec_core (purge_at_ms, namespace) where purge_at_ms is not null;
)sql";

}  // namespace flowfabric::store::postgres
