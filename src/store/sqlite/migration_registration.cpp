// Routes and groups that nothing needs any more are removed. Those that are there are looked at once, and
// then from day to day.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kRegistrationSchema = R"sql(
alter table ff_route add column purge_at_ms integer default 0;       -- when to look whether it is still needed
alter table ff_exec_group add column route_id integer;               -- ff_route: of its executions; null: of any
alter table ff_exec_group add column purge_at_ms integer default 0;  -- when to look whether it is still needed
update ff_route set purge_at_ms=1000*strftime('%s','now');
update ff_exec_group set purge_at_ms=1000*strftime('%s','now');
create index ff_route_purge on ff_route (purge_at_ms);
create index ff_exec_group_purge on ff_exec_group (purge_at_ms);
create index ff_exec_group_route on ff_exec_group (route_id);
)sql";

}  // namespace flowfabric::store::sqlite
