// Routes and groups that nothing needs any more are removed. Those that are there are looked at once, and
// then from day to day.
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kRegistrationSchema = R"sql(
alter table ff_route add column purge_at_ms bigint not null default 0;
comment on column ff_route.purge_at_ms is 'when to look whether it is still needed';
alter table ff_exec_group add column route_id bigint, add column purge_at_ms bigint not null default 0;
comment on column ff_exec_group.route_id is 'ff_route: of its executions; null: of any, made before step 12';
comment on column ff_exec_group.purge_at_ms is 'when to look whether it is still needed';
update ff_route set purge_at_ms=(extract(epoch from clock_timestamp())*1000)::bigint;
update ff_exec_group set purge_at_ms=(extract(epoch from clock_timestamp())*1000)::bigint;
create index ff_route_purge on ff_route (purge_at_ms);
create index ff_exec_group_purge on ff_exec_group (purge_at_ms);
create index ff_exec_group_route on ff_exec_group (route_id);
comment on table ff_exec_group is 'The distinct combinations of route (lane, namespace, required capabilities) and kind: what listings walk.';
)sql";

}  // namespace flowfabric::store::postgres
