// Who runs what: a worker that is taken out of the registry gives its leases back.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kLeaseSchema = R"sql(
create index ff_exec_core_leases on ff_exec_core (worker_instance_id, partition_key, execution_id)
  where ownership_state='leased';

-- Workers that were taken out of the registry, until what they held is offered again.
create table ff_dead_worker (
  namespace          text,
  worker_instance_id text,
  died_at_ms         integer,
  looked_up_to       text,  -- executions up to this one are done
  next_due_at_ms     integer,
  primary key (namespace, worker_instance_id)
) without rowid;
create index ff_dead_worker_due on ff_dead_worker (next_due_at_ms) where next_due_at_ms is not null;
)sql";

}  // namespace flowfabric::store::sqlite
