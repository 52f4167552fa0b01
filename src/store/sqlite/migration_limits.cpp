// The tables of budgets and quota policies: one step of the schema (migrations.cpp).
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kLimitSchema = R"sql(
alter table ff_exec_core add column budget_ids text;       -- its own budgets, comma-joined
alter table ff_exec_core add column quota_policy_id blob;  -- its own quota policy
alter table ff_exec_core add column admitted_by text;      -- quota policies of which it holds a slot; b: before a budget's
alter table ff_exec_core add column blocked_on blob;       -- the budget or quota policy that holds it back
alter table ff_exec_core add column fair_key text;         -- of a lane that shares fairly
alter table ff_exec_core add column fair_rank integer;     -- its place in line there
alter table ff_lane_registry add column fair_by text;      -- what the key is: namespace, or tag:<key>
alter table ff_lane_registry add column max_concurrent_per_key integer default 0;
create index ff_exec_core_blocked_on on ff_exec_core (blocked_on, created_at_ms, partition_key, execution_id)
  where blocked_on is not null;
alter table ff_flow_core add column has_limits integer;    -- something is attached to it: ff_limit_attachment

-- Budgets, with what was spent of them.
create table ff_budget_policy (
  partition_key     integer,
  budget_id         blob,
  scope_type        text,
  scope_id          text,
  enforcement_mode  text,
  on_hard_limit     text,
  on_soft_limit     text,
  reset_interval_ms integer,
  hard_limits       text,
  soft_limits       text,
  current_usage     text,
  reserve_per_claim text,
  reserved          text,
  breach_count      integer,
  soft_breach_count integer,
  last_breach_at_ms integer,
  last_breach_dim   text,
  reset_count       integer,
  last_reset_at_ms  integer,
  next_reset_at_ms  integer,
  created_at_ms     integer,
  updated_at_ms     integer,
  has_blocked       integer,
  recheck_at_ms     integer,
  recheck_after_ms  integer,
  recheck_after_id  text,
  deleted_at_ms     integer,
  next_due_at_ms    integer,
  primary key (partition_key, budget_id)
);
create index ff_budget_policy_due on ff_budget_policy (next_due_at_ms)
  where next_due_at_ms is not null;

-- The latest reports over a limit.
create table ff_budget_breach (
  partition_key  integer,
  budget_id      blob,
  place          integer,
  breach_number  integer,
  occurred_at_ms integer,
  kind           text,
  dimension      text,
  reported       integer,
  counted        integer,
  limit_then     integer,
  execution      text,
  primary key (partition_key, budget_id, place)
) without rowid;

-- Keys of reports that were counted.
create table ff_budget_usage_dedup (
  partition_key  integer,
  budget_id      blob,
  dedup_key      text,
  applied_at_ms  integer,
  next_due_at_ms integer,
  primary key (partition_key, budget_id, dedup_key)
) without rowid;
create index ff_budget_usage_dedup_due on ff_budget_usage_dedup (next_due_at_ms)
  where next_due_at_ms is not null;

-- What executions have spent of budgets.
create table ff_budget_usage_by_exec (
  partition_key integer,
  execution_id  blob,
  budget_id     blob,
  reset_count   integer,
  spent         text,
  reserved      text,
  updated_at_ms integer,
  primary key (partition_key, execution_id, budget_id)
) without rowid;
create index ff_budget_usage_by_exec_budget on ff_budget_usage_by_exec (budget_id, partition_key, execution_id);

-- Quota policies, with what they have let through.
create table ff_quota_policy (
  partition_key               integer,
  quota_policy_id             blob,
  requests_per_window_seconds integer,
  max_requests_per_window     integer,
  active_concurrency_cap      integer,
  jitter_ms                   integer,
  active_concurrency          integer,
  window_count                integer,
  created_at_ms               integer,
  lane_id                     text,
  fair_key                    text,
  last_rank                   integer,
  has_blocked                 integer,
  recheck_at_ms               integer,
  recheck_after_ms            integer,
  recheck_after_id            text,
  is_deleted                  integer,
  reconcile_at_ms             integer,
  next_due_at_ms              integer,
  primary key (partition_key, quota_policy_id)
);
create index ff_quota_policy_due on ff_quota_policy (next_due_at_ms)
  where next_due_at_ms is not null;

-- Executions that a quota policy has let through: counted by its rate, or holding a slot.
create table ff_quota_admitted (
  partition_key       integer,
  quota_policy_id     blob,
  execution_partition integer,
  execution_id        blob,
  window_at_ms        integer,
  holds_slot          integer,
  primary key (partition_key, quota_policy_id, execution_partition, execution_id)
) without rowid;
create index ff_quota_admitted_window on ff_quota_admitted (quota_policy_id, window_at_ms)
  where window_at_ms is not null;

-- The virtual time of lanes that share fairly.
create table ff_lane_clock (
  lane_id      text,
  virtual_time integer,
  primary key (lane_id)
) without rowid;

-- What is attached to flows, lanes and tenants.
create table ff_limit_attachment (
  scope_type       text,
  scope_id         text,
  budget_ids       text,
  quota_policy_ids text,
  primary key (scope_type, scope_id)
) without rowid;
)sql";

}  // namespace flowfabric::store::sqlite
