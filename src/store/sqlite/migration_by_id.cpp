// Keys that begin with the id instead of the partition. Minted ids begin with the time, and those of a flow
// with the flow's: what is made and changed together lies together, and a commit writes a fifth fewer pages.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kByIdSchema = R"sql(
create table ff_exec_core_by_id (
  partition_key                  integer,
  execution_id                   blob,
  lane_id                        text,
  namespace                      text,
  route_id                       integer,
  created_at_ms                  integer,
  max_reclaim_count              integer,
  lifecycle_phase                text,
  ownership_state                text,
  eligibility_state              text,
  blocking_reason                text,
  terminal_outcome               text,
  attempt_state                  text,
  public_state                   text,
  blocking_detail                text,
  flow_id                        blob,
  priority                       integer,
  offer_order                    integer,
  next_due_at_ms                 integer,
  attempt_index                  integer,
  attempt_id                     blob,
  attempt_type                   text,
  attempt_started_at_ms          integer,
  attempt_resumed_at_ms          integer,
  attempt_suspended_at_ms        integer,
  attempt_suspension             text,
  attempt_timeout_at_ms          integer,
  attempt_timeout_left_ms        integer,
  previous_attempt_index         integer,
  lineage_reason                 text,
  lineage_requested_by           text,
  total_attempt_count            integer,
  retry_count                    integer,
  replay_count                   integer,
  lease_reclaim_count            integer,
  lease_epoch                    integer,
  lease_id                       blob,
  worker_id                      text,
  worker_instance_id             text,
  lease_acquired_at_ms           integer,
  lease_expires_at_ms            integer,
  lease_last_renewed_at_ms       integer,
  lease_renewal_deadline_ms      integer,
  lease_expired_at_ms            integer,
  lease_revoked_at_ms            integer,
  lease_revoke_reason            text,
  ended_by                       text,
  ended_lease_id                 blob,
  ended_lease_epoch              integer,
  ended_attempt_id               blob,
  ended_delay_until_ms           integer,
  ended_next_attempt_index       integer,
  delay_until_ms                 integer,
  deadline_at_ms                 integer,
  started_at_ms                  integer,
  terminal_at_ms                 integer,
  last_transition_at_ms          integer,
  last_mutation_at_ms            integer,
  failure_reason                 text,
  last_failure_message           text,
  cancellation_reason            text,
  cancelled_by                   text,
  progress_pct                   integer,
  progress_message               text,
  progress_updated_at_ms         integer,
  tags                           text,
  group_id                       integer,
  retention_ms                   integer,
  grant_expires_at_ms            integer,
  purge_at_ms                    integer,
  fallback_tier                  integer,
  last_capability_mismatch_at_ms integer,
  dependencies_pending           integer,
  budget_ids                     text,
  quota_policy_id                blob,
  admitted_by                    text,
  blocked_on                     blob,
  fair_key                       text,
  fair_rank                      integer,
  primary key (execution_id, partition_key)
);
insert into ff_exec_core_by_id select * from ff_exec_core;
drop table ff_exec_core;
alter table ff_exec_core_by_id rename to ff_exec_core;
create index ff_exec_core_offers on ff_exec_core (route_id, offer_order, partition_key, execution_id)
  where offer_order is not null;
create index ff_exec_core_due on ff_exec_core (next_due_at_ms) where next_due_at_ms is not null;
create index ff_exec_core_purge on ff_exec_core (purge_at_ms) where purge_at_ms is not null;
create index ff_exec_core_age on ff_exec_core (created_at_ms, partition_key, execution_id);
create index ff_exec_core_listing on ff_exec_core
  (group_id, public_state, created_at_ms, partition_key, execution_id);
create index ff_exec_core_flow on ff_exec_core (flow_id, created_at_ms, partition_key, execution_id)
  where flow_id is not null;
create index ff_exec_core_expired on ff_exec_core (lease_expires_at_ms, partition_key, execution_id)
  where ownership_state = 'lease_expired_reclaimable';
create index ff_exec_core_blocked on ff_exec_core (route_id, created_at_ms, partition_key, execution_id)
  where eligibility_state = 'blocked_by_route';
create index ff_exec_core_blocked_on on ff_exec_core (blocked_on, created_at_ms, partition_key, execution_id)
  where blocked_on is not null;

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
