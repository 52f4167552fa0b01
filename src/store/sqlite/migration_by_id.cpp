// Keys that begin with the id instead of the partition. Minted ids begin with the time, and those of a flow
// with the flow's: what is made and changed together lies together, and a commit writes fewer pages.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kByIdSchema = R"sql(
create table ff_exec_spec_by_id (
  partition_key    integer,
  execution_id     blob,
  execution_kind   text,
  creator_identity text,
  idempotency_key  text,
  policy           text,
  payload_encoding text,
  payload          blob,
  node_name        text,
  trace_context    text,
  primary key (execution_id, partition_key)
);
insert into ff_exec_spec_by_id select * from ff_exec_spec;
drop table ff_exec_spec;
alter table ff_exec_spec_by_id rename to ff_exec_spec;

create table ff_attempt_by_id (
  partition_key          integer,
  execution_id           blob,
  attempt_index          integer,
  attempt_id             blob,
  attempt_type           text,
  attempt_state          text,
  lease_id               blob,
  lease_epoch            integer,
  worker_id              text,
  worker_instance_id     text,
  started_at_ms          integer,
  resumed_at_ms          integer,
  terminal_at_ms         integer,
  failure_reason         text,
  failure_category       text,
  previous_attempt_index integer,
  lineage_reason         text,
  lineage_requested_by   text,
  result                 blob,
  fallback_tier          integer,
  primary key (execution_id, attempt_index, partition_key)
);
insert into ff_attempt_by_id select * from ff_attempt;
drop table ff_attempt;
alter table ff_attempt_by_id rename to ff_attempt;

create table ff_edge_by_id (
  partition_key    integer,
  flow_id          blob,
  edge_id          blob,
  upstream_eid     blob,
  downstream_eid   blob,
  data_passing_ref text,
  edge_state       text,
  dependency_state text,
  created_at_ms    integer,
  applied_at_ms    integer,
  resolved_at_ms   integer,
  primary key (flow_id, edge_id, partition_key)
) without rowid;
insert into ff_edge_by_id select * from ff_edge;
drop table ff_edge;
alter table ff_edge_by_id rename to ff_edge;
create index ff_edge_upstream on ff_edge (upstream_eid, partition_key, edge_id);
create index ff_edge_downstream on ff_edge (downstream_eid, partition_key, edge_id);

create table ff_edge_group_by_id (
  partition_key                integer,
  flow_id                      blob,
  downstream_eid               blob,
  policy_kind                  text,
  k_target                     integer,
  on_satisfied                 text,
  staged_count                 integer,
  edge_count                   integer,
  success_count                integer,
  fail_count                   integer,
  skip_count                   integer,
  group_state                  text,
  satisfied_at_ms              integer,
  cancel_siblings_pending_flag integer,
  cancel_siblings_reason       text,
  primary key (flow_id, downstream_eid, partition_key)
) without rowid;
insert into ff_edge_group_by_id select * from ff_edge_group;
drop table ff_edge_group;
alter table ff_edge_group_by_id rename to ff_edge_group;
)sql";

}  // namespace flowfabric::store::sqlite
