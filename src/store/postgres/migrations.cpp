// The schema, step by step. A step that was released is never changed; what comes later is a step of its own.
//
// The comments in the SQL are comments in the database, too (schema.cpp): `\d+ ff_exec_core` shows them.
// A comment before a table is the table's, one behind a column is the column's.
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

namespace {

// Times are milliseconds since the epoch; states are the words of the specification. Null means "none": an
// empty text, a default policy and no tags are stored as null. Text is compared byte by byte, so that every
// database orders it alike.
constexpr const char* kFoundations = R"sql(
-- Executions, as they change while they live: state, lease, running attempt, clocks. What was submitted is in ff_exec_spec.
create table ff_exec_core (
  partition_key integer not null, -- of the id {fp:N}:uuid, the N
  execution_id uuid not null, -- of the id {fp:N}:uuid, the uuid
  lane_id text collate "C" not null, -- ff_lane_registry
  namespace text collate "C", -- the tenant
  route_id bigint not null, -- ff_route: where it is offered to workers
  group_id bigint not null, -- ff_exec_group: where listings find it
  created_at_ms bigint not null, -- when it was submitted
  max_reclaim_count bigint not null, -- how many lost leases it may survive, from its policy
  retention_ms bigint, -- how long it is kept after its end, from its policy; null: the server's default
  lifecycle_phase text not null, -- submitted, runnable, active, suspended or terminal
  ownership_state text not null, -- whether a worker holds it, and how it was lost
  eligibility_state text not null, -- whether it may be claimed, and what keeps it back
  blocking_reason text not null, -- what it waits for
  terminal_outcome text not null, -- how it ended
  attempt_state text not null, -- where its current attempt stands
  public_state text collate "C" not null, -- one word for people, derived from the six before it
  blocking_detail text, -- a sentence about what it waits for
  flow_id uuid, -- the flow it belongs to
  priority integer not null, -- larger goes first
  offer_order bigint, -- workers take the smallest first; null: not offered
  grant_expires_at_ms bigint, -- reserved by a grant (ff_claim_grant) until then
  next_due_at_ms bigint, -- the earliest of its clocks; may be early, never late
  purge_at_ms bigint, -- when it is removed, once it has ended
  attempt_index bigint not null, -- of the attempt in progress, or of the last one
  attempt_id uuid, -- of the attempt in progress
  attempt_type text not null, -- initial, retry, reclaim, replay or fallback
  attempt_started_at_ms bigint, -- when the attempt was claimed
  attempt_resumed_at_ms bigint, -- when it went on after a pause
  attempt_suspended_at_ms bigint, -- when it was paused
  attempt_suspension text, -- the suspension it is paused by, or worker_delay
  attempt_timeout_at_ms bigint, -- when it runs out of time, while it runs
  attempt_timeout_left_ms bigint, -- how much time is left, while it is paused
  fallback_tier bigint, -- of the policy, by its place in the list; null: the work as submitted
  previous_attempt_index bigint, -- the attempt that this one follows
  lineage_reason text, -- why the next attempt will be, or this one was, made
  lineage_requested_by text, -- who asked for it
  total_attempt_count bigint not null, -- attempts so far
  retry_count bigint not null, -- failures that were followed by another try
  replay_count bigint not null, -- how often it was started again after its end
  lease_reclaim_count bigint not null, -- leases that were lost and taken over
  lease_epoch bigint not null, -- +1 for every lease, never reset: the fence
  lease_id uuid, -- of the lease in force
  worker_id text, -- who holds it
  worker_instance_id text, -- which process of that worker
  lease_acquired_at_ms bigint, -- when the lease began
  lease_expires_at_ms bigint, -- when it ends unless it is renewed
  lease_last_renewed_at_ms bigint, -- when it was renewed last
  lease_renewal_deadline_ms bigint, -- when it should be renewed
  lease_expired_at_ms bigint, -- when it was found expired
  lease_revoked_at_ms bigint, -- when an operator took it away
  lease_revoke_reason text, -- why
  ended_by text not null, -- the call that ended the last lease
  ended_lease_id uuid, -- that lease
  ended_lease_epoch bigint not null, -- its epoch
  ended_attempt_id uuid, -- its attempt
  ended_delay_until_ms bigint, -- what that call was answered, for whoever repeats it
  ended_next_attempt_index bigint, -- what that call was answered, for whoever repeats it
  delay_until_ms bigint, -- not before
  deadline_at_ms bigint, -- expires then, whatever happens
  started_at_ms bigint, -- when it was first claimed
  terminal_at_ms bigint, -- when it ended
  last_transition_at_ms bigint not null, -- when its state changed last
  last_mutation_at_ms bigint not null, -- when anything of it changed last
  failure_reason text, -- why it failed in the end
  last_failure_message text, -- what the last failed attempt said
  cancellation_reason text, -- why it was cancelled
  cancelled_by text, -- who cancelled it
  last_capability_mismatch_at_ms bigint, -- when a worker lacked a capability for it
  progress_pct integer, -- as the worker reported it
  progress_message text, -- as the worker reported it
  progress_updated_at_ms bigint, -- when the worker reported it
  tags jsonb, -- an object of strings
  primary key (partition_key, execution_id)
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
create index ff_exec_core_offers on ff_exec_core (route_id, offer_order, partition_key, execution_id)
  where offer_order is not null;
create index ff_exec_core_due on ff_exec_core (next_due_at_ms) where next_due_at_ms is not null;
create index ff_exec_core_purge on ff_exec_core (purge_at_ms) where purge_at_ms is not null;
create index ff_exec_core_listing
  on ff_exec_core (group_id, public_state, created_at_ms, partition_key, execution_id);
create index ff_exec_core_flow on ff_exec_core (flow_id, created_at_ms, partition_key, execution_id)
  where flow_id is not null;
create index ff_exec_core_expired on ff_exec_core (partition_key, execution_id)
  where ownership_state = 'lease_expired_reclaimable';
create index ff_exec_core_blocked on ff_exec_core (route_id, created_at_ms, partition_key, execution_id)
  where eligibility_state = 'blocked_by_route';

-- What was submitted; never changes.
create table ff_exec_spec (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  execution_kind text, -- what the work is, for the worker
  creator_identity text, -- who submitted it
  idempotency_key text, -- ff_create_dedup
  policy jsonb, -- retries, timeouts, routing and so on; null: the default policy
  payload_encoding text, -- how to read the payload
  payload bytea, -- the input, as it came
  primary key (partition_key, execution_id)
);

-- Ended attempts, each with its result. The attempt in progress is on ff_exec_core.
create table ff_attempt (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  attempt_index bigint not null, -- counts from 0
  attempt_id uuid not null, -- part of the fence
  attempt_type text not null, -- initial, retry, reclaim, replay or fallback
  attempt_state text not null, -- how it ended
  lease_id uuid, -- its last lease
  lease_epoch bigint not null, -- of that lease
  worker_id text, -- who ran it
  worker_instance_id text, -- in which process
  started_at_ms bigint not null, -- when it was claimed
  resumed_at_ms bigint, -- when it went on after a pause
  terminal_at_ms bigint not null, -- when it ended
  failure_reason text, -- why it failed
  failure_category text, -- what kind of failure that was
  fallback_tier bigint, -- of the policy; null: the work as submitted
  previous_attempt_index bigint, -- the attempt that it follows
  lineage_reason text, -- why it was made
  lineage_requested_by text, -- who asked for it
  result bytea, -- the output, as it came
  primary key (partition_key, execution_id, attempt_index)
);

-- The tags of executions, to find them by; ff_exec_core.tags says the same.
create table ff_exec_tag (
  tag_key text collate "C" not null, -- caller.field
  tag_value text collate "C" not null, -- its value
  created_at_ms bigint not null, -- of the execution
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  primary key (tag_key, tag_value, created_at_ms, partition_key, execution_id)
);

-- Live grants: short reservations of one execution for one worker.
create table ff_claim_grant (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  grant_id uuid not null, -- what the worker shows
  kind text not null, -- claim or reclaim
  worker_id text, -- for whom
  worker_instance_id text, -- for which process
  lane_id text collate "C", -- where it was found
  worker_capabilities text, -- of the worker: sorted, comma-joined
  capability_hash text, -- of the worker, as it gave it
  route_snapshot_json text, -- as the scheduler gave it
  admission_summary text, -- as the scheduler gave it
  issued_at_ms bigint not null, -- from
  expires_at_ms bigint not null, -- until
  primary key (partition_key, execution_id)
);

-- Lanes: the queues that executions are submitted to.
create table ff_lane_registry (
  lane_id text collate "C" primary key, -- its name
  registered_at_ms bigint not null, -- when it was first seen
  registered_by text, -- by which call
  state text not null -- active, paused, draining or disabled
);

-- The distinct combinations of lane, namespace and required capabilities: what work is offered on.
create table ff_route (
  route_id bigint primary key, -- a hash of the rest
  lane_id text collate "C" not null, -- ff_lane_registry
  namespace text collate "C", -- the tenant
  required_capabilities text, -- sorted, comma-joined
  next_due_at_ms bigint -- when to look for a worker for what is blocked on it
);
create index ff_route_lane on ff_route (lane_id);
create index ff_route_due on ff_route (next_due_at_ms) where next_due_at_ms is not null;

-- The distinct combinations of lane, namespace and kind: what listings walk.
create table ff_exec_group (
  group_id bigint primary key, -- a hash of the rest
  lane_id text collate "C" not null, -- ff_lane_registry
  namespace text collate "C", -- the tenant
  execution_kind text -- what the work is
);
create index ff_exec_group_lane on ff_exec_group (lane_id);

-- Idempotency keys inside their window.
create table ff_create_dedup (
  namespace text collate "C" not null, -- the tenant
  idempotency_key text collate "C" not null, -- as the caller gave it
  partition_key integer not null, -- ff_exec_core: what it made
  execution_id uuid not null, -- ff_exec_core: what it made
  next_due_at_ms bigint, -- when the window ends
  primary key (namespace, idempotency_key)
);
create index ff_create_dedup_due on ff_create_dedup (next_due_at_ms) where next_due_at_ms is not null;

-- Registered workers.
create table ff_worker_registry (
  namespace text collate "C" not null, -- the tenant
  worker_instance_id text collate "C" not null, -- the process
  worker_id text, -- the worker
  lanes jsonb, -- an array of lanes, sorted
  capabilities_csv text, -- sorted, comma-joined
  last_heartbeat_ms bigint not null, -- when it was heard of last
  liveness_ttl_ms bigint not null, -- how long it counts as alive after that
  registered_at_ms bigint not null, -- since when
  next_due_at_ms bigint, -- when it is swept, unless it is heard of again
  primary key (namespace, worker_instance_id)
) with (fillfactor = 50);
create index ff_worker_registry_due on ff_worker_registry (next_due_at_ms) where next_due_at_ms is not null;

-- Bulk operations, and how far they have come.
create table ff_bulk_operation (
  operation_id uuid primary key, -- what its starter got
  action text not null, -- cancel, replay, change_priority and so on
  state text not null, -- running, completed or cancelled
  filter_lane text collate "C", -- what it applies to: a lane
  filter_states text, -- what it applies to: public states, comma-joined
  filter_namespace text collate "C", -- what it applies to: a tenant
  filter_kind text, -- what it applies to: a kind
  filter_flow_id uuid, -- what it applies to: a flow
  filter_tags jsonb, -- what it applies to: tags
  filter_created_after_ms bigint, -- what it applies to: submitted after
  filter_created_before_ms bigint, -- what it applies to: submitted before
  reason text, -- why
  new_priority integer not null, -- of change_priority
  rate_per_second bigint, -- at most so many
  cursor text, -- everything before it is done
  matched bigint not null, -- looked at so far
  done bigint not null, -- changed so far
  failed bigint not null, -- refused so far
  last_error text, -- of the last refusal
  created_at_ms bigint not null, -- when it was started
  ended_at_ms bigint, -- when it ended
  next_due_at_ms bigint -- of its next step, while it runs; of its removal afterwards
);
create index ff_bulk_operation_due on ff_bulk_operation (next_due_at_ms) where next_due_at_ms is not null;

-- How many executions of each state a lane holds: the sum over the writers, who each keep their own row.
create table ff_lane_count (
  lane_id text collate "C" not null, -- ff_lane_registry
  public_state text collate "C" not null, -- as in ff_exec_core
  writer integer not null, -- so that writers do not wait for each other
  executions bigint not null, -- may be negative, the sum is not
  primary key (lane_id, public_state, writer)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Numbers the events of all logs. An id is drawn after every lock of its transaction was taken, so the events of one execution are numbered in their order.
create sequence ff_event_id_seq;

-- What happened to leases.
create table ff_lease_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  event_type text not null, -- acquired, renewed, expired and so on
  lease_id uuid not null, -- the lease
  lease_epoch bigint not null, -- its epoch
  attempt_id uuid not null, -- its attempt
  attempt_index bigint not null, -- of its attempt
  worker_id text, -- who held it
  worker_instance_id text, -- which process
  reason text, -- why
  occurred_at_ms bigint not null, -- when
  namespace text collate "C", -- the tenant
  instance_tag text, -- of the execution's tags, the one subscribers filter by
  tags jsonb -- of the execution
);

-- How executions ended.
create table ff_completion_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  flow_id uuid, -- the flow it belongs to
  outcome text not null, -- how it ended
  occurred_at_ms bigint not null, -- when
  namespace text collate "C", -- the tenant
  instance_tag text, -- of the execution's tags, the one subscribers filter by
  tags jsonb -- of the execution
);

-- What operators did to executions.
create table ff_operator_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  event_type text not null, -- what was done
  details jsonb, -- with which arguments
  occurred_at_ms bigint not null, -- when
  namespace text collate "C", -- the tenant
  instance_tag text, -- of the execution's tags, the one subscribers filter by
  tags jsonb -- of the execution
);

-- Workers that came and went.
create table ff_worker_registry_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  namespace text collate "C", -- the tenant
  worker_instance_id text, -- the process
  worker_id text, -- the worker
  event_kind text not null, -- what happened
  reason text, -- why
  occurred_at_ms bigint not null -- when
);

-- The partition counts that ids were made with; they cannot be changed.
create table ff_partition_config (
  singleton_lock boolean primary key default true check (singleton_lock), -- there is one row
  num_flow_partitions integer not null, -- of executions and flows
  num_budget_partitions integer not null, -- of budgets
  num_quota_partitions integer not null, -- of quotas
  ff_version text not null -- of the program that made it
);

-- The migrations that were applied.
create table ff_migration_annotation (
  version integer primary key, -- counts from 1
  name text not null, -- what it is about
  applied_at_ms bigint not null, -- when
  backward_compatible boolean not null -- whether the program before it can still work
);
)sql";

constexpr const char* kFlows = R"sql(
alter table ff_exec_core add column dependencies_pending boolean;
comment on column ff_exec_core.dependencies_pending is 'its join (ff_edge_group) is undecided: it is not offered before that';
alter table ff_exec_spec add column node_name text;
comment on column ff_exec_spec.node_name is 'its name in the flow, if that was submitted as a whole';

-- Flows: containers of executions that depend on each other.
create table ff_flow_core (
  partition_key integer not null, -- of the flow and of all its members
  flow_id uuid not null, -- chosen by the caller, or made by us
  flow_kind text collate "C" not null, -- what it is, for people
  namespace text collate "C", -- the tenant
  failure_policy text not null, -- what a member's failure does to the rest
  graph_revision bigint not null, -- +1 for every member and every edge
  node_count bigint not null, -- members so far
  edge_count bigint not null, -- edges so far
  removed_count bigint not null, -- members that retention has removed
  public_flow_state text not null, -- open, cancelled or failed: whether it may be changed
  created_at_ms bigint not null, -- when it was created
  last_mutation_at_ms bigint not null, -- when it was changed last
  cancelled_at_ms bigint, -- when it was cancelled
  cancel_reason text, -- why
  cancellation_policy text, -- which of its members that cancels
  tags jsonb, -- an object of strings
  primary key (partition_key, flow_id)
) with (fillfactor = 75);
create index ff_flow_core_age on ff_flow_core (created_at_ms, partition_key, flow_id);

-- Who waits for whom.
create table ff_edge (
  partition_key integer not null, -- ff_flow_core
  flow_id uuid not null, -- ff_flow_core
  edge_id uuid not null, -- chosen by the caller, or made by us
  upstream_eid uuid not null, -- ff_exec_core: who must end first
  downstream_eid uuid not null, -- ff_exec_core: who waits
  data_passing_ref text, -- not null: the result of the one becomes the input of the other
  edge_state text not null, -- pending, or applied: in force
  dependency_state text not null, -- whether the upstream has ended, and how; an edge counts once
  created_at_ms bigint not null, -- when it was staged
  applied_at_ms bigint, -- when it came into force
  resolved_at_ms bigint, -- when its upstream ended
  primary key (partition_key, flow_id, edge_id)
) with (fillfactor = 80);
create index ff_edge_upstream on ff_edge (partition_key, upstream_eid, edge_id);
create index ff_edge_downstream on ff_edge (partition_key, downstream_eid, edge_id);

-- Joins: for each downstream its policy, and how many of its upstreams have ended how.
create table ff_edge_group (
  partition_key integer not null, -- ff_flow_core
  flow_id uuid not null, -- ff_flow_core
  downstream_eid uuid not null, -- ff_exec_core
  policy_kind text not null, -- all_of, any_of or quorum
  k_target bigint not null, -- of a quorum: how many must succeed
  on_satisfied text, -- what becomes of the others
  staged_count bigint not null, -- edges, applied or not; the first fixes the policy
  edge_count bigint not null, -- edges in force
  success_count bigint not null, -- of them, ended by success
  fail_count bigint not null, -- of them, failed, cancelled or expired
  skip_count bigint not null, -- of them, skipped
  group_state text not null, -- pending, satisfied or impossible; decided once
  satisfied_at_ms bigint, -- when
  cancel_siblings_pending_flag boolean, -- whether siblings are still owed a cancel
  cancel_siblings_reason text, -- why they were cancelled
  primary key (partition_key, flow_id, downstream_eid)
) with (fillfactor = 75);

-- Decided joins whose losing siblings are still to be cancelled.
create table ff_pending_cancel_groups (
  partition_key integer not null, -- ff_edge_group
  flow_id uuid not null, -- ff_edge_group
  downstream_eid uuid not null, -- ff_edge_group
  reason text, -- of the cancels
  enqueued_at_ms bigint not null, -- when the join was decided
  after_edge_id uuid, -- siblings up to this edge are done
  next_due_at_ms bigint, -- when to go on
  primary key (partition_key, flow_id, downstream_eid)
);
create index ff_pending_cancel_groups_due on ff_pending_cancel_groups (next_due_at_ms)
  where next_due_at_ms is not null;

-- Cancelled flows with members that are still to be cancelled.
create table ff_cancel_backlog (
  partition_key integer not null, -- ff_flow_core
  flow_id uuid not null, -- ff_flow_core
  requested_at_ms bigint not null, -- when
  reason text, -- of the cancels
  cancellation_policy text not null, -- which members
  status text not null, -- parking, waiting_for_active or cancelling
  parked_up_to uuid, -- members up to this one are out of the line
  next_due_at_ms bigint, -- when to go on
  primary key (partition_key, flow_id)
);
create index ff_cancel_backlog_due on ff_cancel_backlog (next_due_at_ms) where next_due_at_ms is not null;

-- Members of cancelled flows that are still owed their cancel.
create table ff_cancel_backlog_member (
  partition_key integer not null, -- ff_cancel_backlog
  flow_id uuid not null, -- ff_cancel_backlog
  execution_id uuid not null, -- ff_exec_core
  primary key (partition_key, flow_id, execution_id)
);

-- Members that have ended and have more dependents than one transaction should touch: the rest.
create table ff_dependency_dispatch (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  after_edge_id uuid, -- dependents up to this edge are done
  next_due_at_ms bigint, -- when to go on
  primary key (partition_key, execution_id)
);
create index ff_dependency_dispatch_due on ff_dependency_dispatch (next_due_at_ms)
  where next_due_at_ms is not null;
)sql";

// Every change of an execution writes all indexes of its row anew. Members of a flow are seldom looked for,
// and who they are hardly ever changes.
constexpr const char* kFlowMembers = R"sql(
-- The members of flows, to find them by; ff_exec_core.flow_id says the same.
create table ff_flow_member (
  flow_id uuid not null, -- ff_flow_core
  created_at_ms bigint not null, -- of the execution
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  primary key (flow_id, created_at_ms, partition_key, execution_id)
);
insert into ff_flow_member (flow_id, created_at_ms, partition_key, execution_id)
  select flow_id, created_at_ms, partition_key, execution_id from ff_exec_core where flow_id is not null;
drop index ff_exec_core_flow;
)sql";

// Ids begin with the time, or with their flow's id. In an index that begins with them, what is made together
// lies together, and one comparison finds it.
constexpr const char* kById = R"sql(
alter table ff_exec_spec drop constraint ff_exec_spec_pkey, add primary key (execution_id, partition_key);
alter table ff_attempt drop constraint ff_attempt_pkey, add primary key (execution_id, attempt_index, partition_key);
alter table ff_edge drop constraint ff_edge_pkey, add primary key (flow_id, edge_id, partition_key);
drop index ff_edge_upstream;
drop index ff_edge_downstream;
create index ff_edge_upstream on ff_edge (upstream_eid, partition_key, edge_id);
create index ff_edge_downstream on ff_edge (downstream_eid, partition_key, edge_id);
alter table ff_edge_group drop constraint ff_edge_group_pkey, add primary key (flow_id, downstream_eid, partition_key);
)sql";

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> all{{1, "foundations", kFoundations},
                                          {2, "flows", kFlows},
                                          {3, "suspension", kSuspensionSchema},
                                          {4, "limits", kLimitSchema},
                                          {5, "streams", kStreamSchema},
                                          {6, "waitpoint ids", kWaitpointIdSchema},
                                          {7, "pauses", kPauseSchema},
                                          {8, "flow members", kFlowMembers, false},
                                          {9, "keys by id", kById},
                                          {10, "leases by worker", kLeaseSchema},
                                          {11, "upkeep", kUpkeepSchema},
                                          {12, "unused routes and groups", kRegistrationSchema, false}};
  return all;
}

}  // namespace flowfabric::store::postgres
