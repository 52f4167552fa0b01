// Who runs what: a worker that is taken out of the registry gives its leases back.
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kLeaseSchema = R"sql(
create index ff_exec_core_leases on ff_exec_core (worker_instance_id, partition_key, execution_id)
  where ownership_state='leased';

-- Workers that were taken out of the registry, until what they held is offered again.
create table ff_dead_worker (
  namespace text not null, -- of the registration
  worker_instance_id text not null, -- which one
  died_at_ms bigint not null, -- what it took up to then is offered again
  looked_up_to text, -- executions up to this one are done
  next_due_at_ms bigint, -- when to go on
  primary key (namespace, worker_instance_id)
);
create index ff_dead_worker_due on ff_dead_worker (next_due_at_ms) where next_due_at_ms is not null;
)sql";

}  // namespace flowfabric::store::postgres
