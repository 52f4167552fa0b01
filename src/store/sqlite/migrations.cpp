// The schema, step by step. A step that was released is never changed; what comes later is a step of its own.
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

namespace {

// Times are milliseconds since the epoch, ids 16-byte blobs, states the words of the specification.
// Null means "none": an empty text, a default policy and no tags are stored as null.
constexpr const char* kFoundations = R"sql(
-- The hot row of an execution: everything that changes while it lives.
create table ff_exec_core (
  partition_key            integer,
  execution_id             blob,
  lane_id                  text,
  namespace                text,
  route_id                 integer,  -- ff_route: where it is offered
  created_at_ms            integer,
  max_reclaim_count        integer,
  lifecycle_phase          text,
  ownership_state          text,
  eligibility_state        text,
  blocking_reason          text,
  terminal_outcome         text,
  attempt_state            text,
  public_state             text,     -- derived from the six before it
  blocking_detail          text,
  flow_id                  blob,
  priority                 integer,
  offer_order              integer,  -- smaller is taken first; null: not offered to workers
  next_due_at_ms           integer,  -- the earliest of its clocks; may be early, never late
  attempt_index            integer,
  attempt_id               blob,
  attempt_type             text,
  attempt_started_at_ms    integer,
  attempt_resumed_at_ms    integer,
  attempt_suspended_at_ms  integer,
  attempt_suspension       text,
  attempt_timeout_at_ms    integer,
  attempt_timeout_left_ms  integer,
  previous_attempt_index   integer,
  lineage_reason           text,
  lineage_requested_by     text,
  total_attempt_count      integer,
  retry_count              integer,
  replay_count             integer,
  lease_reclaim_count      integer,
  lease_epoch              integer,  -- +1 for every lease, never reset
  lease_id                 blob,
  worker_id                text,
  worker_instance_id       text,
  lease_acquired_at_ms     integer,
  lease_expires_at_ms      integer,
  lease_last_renewed_at_ms integer,
  lease_renewal_deadline_ms integer,
  lease_expired_at_ms      integer,
  lease_revoked_at_ms      integer,
  lease_revoke_reason      text,
  ended_by                 text,     -- the call that ended the last lease, and what it was answered
  ended_lease_id           blob,
  ended_lease_epoch        integer,
  ended_attempt_id         blob,
  ended_delay_until_ms     integer,
  ended_next_attempt_index integer,
  delay_until_ms           integer,
  deadline_at_ms           integer,
  started_at_ms            integer,
  terminal_at_ms           integer,
  last_transition_at_ms    integer,
  last_mutation_at_ms      integer,
  failure_reason           text,
  last_failure_message     text,
  cancellation_reason      text,
  cancelled_by             text,
  progress_pct             integer,
  progress_message         text,
  progress_updated_at_ms   integer,
  tags                     text,     -- JSON object
  primary key (partition_key, execution_id)
);
create index ff_exec_core_offers on ff_exec_core (route_id, offer_order, partition_key, execution_id)
  where offer_order is not null;
create index ff_exec_core_due on ff_exec_core (next_due_at_ms) where next_due_at_ms is not null;

-- What was submitted; never changes.
create table ff_exec_spec (
  partition_key    integer,
  execution_id     blob,
  execution_kind   text,
  creator_identity text,
  idempotency_key  text,
  policy           text,  -- JSON; null: the default policy
  payload_encoding text,
  payload          blob,
  primary key (partition_key, execution_id)
);

-- One row per ended attempt, with its result. The attempt in progress is on ff_exec_core.
create table ff_attempt (
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
  primary key (partition_key, execution_id, attempt_index)
);

create table ff_lane_registry (
  lane_id          text primary key,
  registered_at_ms integer,
  registered_by    text
) without rowid;

-- The distinct combinations of lane, namespace and required capabilities.
create table ff_route (
  route_id              integer primary key,
  lane_id               text,
  namespace             text,
  required_capabilities text  -- sorted, comma-joined
);
create index ff_route_lane on ff_route (lane_id);

-- Idempotency keys inside their window.
create table ff_create_dedup (
  namespace       text,
  idempotency_key text,
  partition_key   integer,
  execution_id    blob,
  next_due_at_ms  integer,  -- when the window ends
  primary key (namespace, idempotency_key)
) without rowid;
create index ff_create_dedup_due on ff_create_dedup (next_due_at_ms) where next_due_at_ms is not null;

-- Event logs: appended in the transaction of the change they tell of, numbered in commit order by the one
-- writer. The newest row of each log is never removed: it is where the numbering goes on.
create table ff_lease_event (
  event_id           integer primary key,
  partition_key      integer,
  execution_id       blob,
  event_type         text,
  lease_id           blob,
  lease_epoch        integer,
  attempt_id         blob,
  attempt_index      integer,
  worker_id          text,
  worker_instance_id text,
  reason             text,
  occurred_at_ms     integer,
  namespace          text,
  instance_tag       text,
  tags               text
);

create table ff_completion_event (
  event_id       integer primary key,
  partition_key  integer,
  execution_id   blob,
  flow_id        blob,
  outcome        text,
  occurred_at_ms integer,
  namespace      text,
  instance_tag   text,
  tags           text
);

-- How many executions of each state a lane holds; kept by deltas.
create table ff_lane_count (
  lane_id      text,
  public_state text,
  executions   integer,
  primary key (lane_id, public_state)
) without rowid;

create table ff_partition_config (
  singleton_lock        integer primary key check (singleton_lock = 1),
  num_flow_partitions   integer,
  num_budget_partitions integer,
  num_quota_partitions  integer,
  ff_version            text
);

create table ff_migration_annotation (
  version             integer primary key,
  name                text,
  applied_at_ms       integer,
  backward_compatible integer
);
)sql";

constexpr const char* kExecutions = R"sql(
alter table ff_exec_core add column group_id integer;              -- ff_exec_group: where listings find it
alter table ff_exec_core add column retention_ms integer;          -- of the policy; null: the default
alter table ff_exec_core add column grant_expires_at_ms integer;   -- reserved by a grant until then
alter table ff_exec_core add column purge_at_ms integer;           -- when it is removed, once it has ended
alter table ff_exec_core add column fallback_tier integer;         -- of the policy, by its place in the list
alter table ff_exec_core add column last_capability_mismatch_at_ms integer;
alter table ff_attempt add column fallback_tier integer;
alter table ff_lane_registry add column state text default 'active';
alter table ff_route add column next_due_at_ms integer;  -- when to look for a worker for what is blocked on it
create index ff_route_due on ff_route (next_due_at_ms) where next_due_at_ms is not null;

-- The distinct combinations of lane, namespace and kind.
create table ff_exec_group (
  group_id       integer primary key,
  lane_id        text,
  namespace      text,
  execution_kind text
);
create index ff_exec_group_lane on ff_exec_group (lane_id);
insert into ff_exec_group
  select row_number() over (), lane_id, namespace, execution_kind from (
    select distinct c.lane_id, c.namespace, s.execution_kind
    from ff_exec_core c join ff_exec_spec s using (partition_key, execution_id));
update ff_exec_core set group_id = (
  select g.group_id from ff_exec_group g, ff_exec_spec s
  where s.partition_key = ff_exec_core.partition_key and s.execution_id = ff_exec_core.execution_id
    and g.lane_id = ff_exec_core.lane_id and g.namespace is ff_exec_core.namespace
    and g.execution_kind is s.execution_kind);

-- Until now nothing was removed.
update ff_exec_core set retention_ms = (
  select json_extract(s.policy, '$.stream_policy.retention_ttl_ms') from ff_exec_spec s
  where s.partition_key = ff_exec_core.partition_key and s.execution_id = ff_exec_core.execution_id);
update ff_exec_core set purge_at_ms = terminal_at_ms + coalesce(retention_ms, 86400000)
  where lifecycle_phase = 'terminal';
create index ff_exec_core_purge on ff_exec_core (purge_at_ms) where purge_at_ms is not null;

-- Listings: everything by age, the executions of a group and state by age, those of a flow by age.
create index ff_exec_core_age on ff_exec_core (created_at_ms, partition_key, execution_id);
create index ff_exec_core_listing on ff_exec_core
  (group_id, public_state, created_at_ms, partition_key, execution_id);
create index ff_exec_core_flow on ff_exec_core (flow_id, created_at_ms, partition_key, execution_id)
  where flow_id is not null;
create index ff_exec_core_expired on ff_exec_core (lease_expires_at_ms, partition_key, execution_id)
  where ownership_state = 'lease_expired_reclaimable';
create index ff_exec_core_blocked on ff_exec_core (route_id, created_at_ms, partition_key, execution_id)
  where eligibility_state = 'blocked_by_route';

-- The tags of executions, to find them by; ff_exec_core.tags says the same.
create table ff_exec_tag (
  tag_key       text,
  tag_value     text,
  created_at_ms integer,  -- of the execution
  partition_key integer,
  execution_id  blob,
  primary key (tag_key, tag_value, created_at_ms, partition_key, execution_id)
) without rowid;
insert into ff_exec_tag
  select t.key, t.value, c.created_at_ms, c.partition_key, c.execution_id
  from ff_exec_core c, json_each(c.tags) t where c.tags is not null;

-- The live grant of an execution: a short reservation for one worker.
create table ff_claim_grant (
  partition_key       integer,
  execution_id        blob,
  grant_id            blob,
  kind                text,
  worker_id           text,
  worker_instance_id  text,
  lane_id             text,
  worker_capabilities text,  -- sorted, comma-joined
  capability_hash     text,
  route_snapshot_json text,
  admission_summary   text,
  issued_at_ms        integer,
  expires_at_ms       integer,
  primary key (partition_key, execution_id)
) without rowid;

create table ff_worker_registry (
  namespace          text,
  worker_instance_id text,
  worker_id          text,
  lanes              text,  -- JSON array, sorted
  capabilities_csv   text,
  last_heartbeat_ms  integer,
  liveness_ttl_ms    integer,
  registered_at_ms   integer,
  next_due_at_ms     integer,  -- when it is swept, unless it is heard of again
  primary key (namespace, worker_instance_id)
) without rowid;
create index ff_worker_registry_due on ff_worker_registry (next_due_at_ms) where next_due_at_ms is not null;

-- Bulk operations, and how far they have come.
create table ff_bulk_operation (
  operation_id             blob primary key,
  action                   text,
  state                    text,
  filter_lane              text,
  filter_states            text,  -- comma-joined
  filter_namespace         text,
  filter_kind              text,
  filter_flow_id           blob,
  filter_tags              text,  -- JSON object
  filter_created_after_ms  integer,
  filter_created_before_ms integer,
  reason                   text,
  new_priority             integer,
  rate_per_second          integer,
  cursor                   text,  -- everything before it is done
  matched                  integer,
  done                     integer,
  failed                   integer,
  last_error               text,
  created_at_ms            integer,
  ended_at_ms              integer,
  next_due_at_ms           integer
) without rowid;
create index ff_bulk_operation_due on ff_bulk_operation (next_due_at_ms) where next_due_at_ms is not null;

create table ff_operator_event (
  event_id       integer primary key,
  partition_key  integer,
  execution_id   blob,
  event_type     text,
  details        text,  -- JSON object
  occurred_at_ms integer,
  namespace      text,
  instance_tag   text,
  tags           text
);

create table ff_worker_registry_event (
  event_id           integer primary key,
  namespace          text,
  worker_instance_id text,
  worker_id          text,
  event_kind         text,
  reason             text,
  occurred_at_ms     integer
);
)sql";

constexpr const char* kFlows = R"sql(
alter table ff_exec_core add column dependencies_pending integer;  -- 1: its join is undecided
alter table ff_exec_spec add column node_name text;  -- in a flow that was submitted as a whole

create table ff_flow_core (
  partition_key       integer,
  flow_id             blob,
  flow_kind           text,
  namespace           text,
  failure_policy      text,
  graph_revision      integer,
  node_count          integer,
  edge_count          integer,
  removed_count       integer,  -- members that retention has removed
  public_flow_state   text,
  created_at_ms       integer,
  last_mutation_at_ms integer,
  cancelled_at_ms     integer,
  cancel_reason       text,
  cancellation_policy text,
  tags                text,  -- JSON object
  primary key (partition_key, flow_id)
) without rowid;
create index ff_flow_core_age on ff_flow_core (created_at_ms, partition_key, flow_id);

-- Who waits for whom.
create table ff_edge (
  partition_key    integer,
  flow_id          blob,
  edge_id          blob,
  upstream_eid     blob,
  downstream_eid   blob,
  data_passing_ref text,
  edge_state       text,
  dependency_state text,  -- an edge counts once
  created_at_ms    integer,
  applied_at_ms    integer,
  resolved_at_ms   integer,
  primary key (partition_key, flow_id, edge_id)
);
create index ff_edge_upstream on ff_edge (upstream_eid, partition_key, edge_id);
create index ff_edge_downstream on ff_edge (downstream_eid, partition_key, edge_id);

-- Joins: for each downstream its policy, and how many of its upstreams have ended how.
create table ff_edge_group (
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
  primary key (partition_key, flow_id, downstream_eid)
);

-- Decided joins whose losing siblings are still to be cancelled.
create table ff_pending_cancel_groups (
  partition_key  integer,
  flow_id        blob,
  downstream_eid blob,
  reason         text,
  enqueued_at_ms integer,
  after_edge_id  blob,
  next_due_at_ms integer,
  primary key (partition_key, flow_id, downstream_eid)
) without rowid;
create index ff_pending_cancel_groups_due on ff_pending_cancel_groups (next_due_at_ms)
  where next_due_at_ms is not null;

-- Cancelled flows with members that are still to be cancelled, and these members.
create table ff_cancel_backlog (
  partition_key       integer,
  flow_id             blob,
  requested_at_ms     integer,
  reason              text,
  cancellation_policy text,
  status              text,
  parked_up_to        blob,
  next_due_at_ms      integer,
  primary key (partition_key, flow_id)
) without rowid;
create index ff_cancel_backlog_due on ff_cancel_backlog (next_due_at_ms) where next_due_at_ms is not null;
create table ff_cancel_backlog_member (
  partition_key integer,
  flow_id       blob,
  execution_id  blob,
  primary key (partition_key, flow_id, execution_id)
) without rowid;

-- Members that have ended and have more dependents than one transaction should touch: the rest.
create table ff_dependency_dispatch (
  partition_key  integer,
  execution_id   blob,
  after_edge_id  blob,
  next_due_at_ms integer,
  primary key (partition_key, execution_id)
) without rowid;
create index ff_dependency_dispatch_due on ff_dependency_dispatch (next_due_at_ms)
  where next_due_at_ms is not null;
)sql";

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> all{{1, "foundations", kFoundations},
                                          {2, "executions", kExecutions},
                                          {3, "flows", kFlows},
                                          {4, "suspension", kSuspensionSchema},
                                          {5, "limits", kLimitSchema},
                                          {6, "streams", kStreamSchema},
                                          {7, "waitpoint ids", kWaitpointIdSchema},
                                          {8, "pauses", kPauseSchema},
                                          {9, "keys by id", kByIdSchema},
                                          {10, "redo log", kRedoSchema},
                                          {11, "past redo logs", kPastRedoSchema},
                                          {12, "leases by worker", kLeaseSchema},
                                          {13, "upkeep", kUpkeepSchema},
                                          {14, "unused routes and groups", kRegistrationSchema}};
  return all;
}

}  // namespace flowfabric::store::sqlite
