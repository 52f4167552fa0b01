// The tables of budgets and quota policies: one step of the schema (migrations.cpp).
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kLimitSchema = R"sql(
alter table ff_exec_core add column budget_ids text;
comment on column ff_exec_core.budget_ids is 'its own budgets, comma-joined';
alter table ff_exec_core add column quota_policy_id uuid;
comment on column ff_exec_core.quota_policy_id is 'its own quota policy';
alter table ff_exec_core add column admitted_by text;
comment on column ff_exec_core.admitted_by is 'quota policies of which it holds a slot, and budgets (b:) of which something is set aside for it';
alter table ff_exec_core add column blocked_on uuid;
comment on column ff_exec_core.blocked_on is 'the budget or quota policy that holds it back';
alter table ff_exec_core add column fair_key text;
comment on column ff_exec_core.fair_key is 'its key in a lane that shares fairly';
alter table ff_exec_core add column fair_rank bigint;
comment on column ff_exec_core.fair_rank is 'its place in line there';
alter table ff_lane_registry add column fair_by text;
comment on column ff_lane_registry.fair_by is 'what the key is: namespace, or tag:<key>';
alter table ff_lane_registry add column max_concurrent_per_key bigint not null default 0;
comment on column ff_lane_registry.max_concurrent_per_key is 'how many of one key may run at once; 0: any number';
create index ff_exec_core_blocked_on on ff_exec_core (blocked_on, created_at_ms, partition_key, execution_id)
  where blocked_on is not null;
alter table ff_flow_core add column has_limits boolean;
comment on column ff_flow_core.has_limits is 'something is attached to it (ff_limit_attachment)';

-- Budgets, with what was spent of them.
create table ff_budget_policy (
  partition_key integer not null, -- by the id
  budget_id uuid not null, -- chosen by the caller
  scope_type text not null, -- what it applies to
  scope_id text collate "C" not null, -- which one
  enforcement_mode text not null, -- strict, or advisory: it only counts
  on_hard_limit text not null, -- what else follows at a hard limit
  on_soft_limit text not null, -- and at a soft one
  reset_interval_ms bigint not null, -- 0: never
  hard_limits jsonb, -- by dimension; 0 is none
  soft_limits jsonb, -- by dimension; 0 is none
  current_usage jsonb, -- by dimension, since the last reset
  reserve_per_claim jsonb, -- what is set aside for what is handed out
  reserved jsonb, -- what is set aside now
  breach_count bigint not null, -- reports over a hard limit
  soft_breach_count bigint not null, -- reports over a soft limit
  last_breach_at_ms bigint, -- since the last reset
  last_breach_dim text, -- in which dimension
  reset_count bigint not null, -- resets so far
  last_reset_at_ms bigint, -- when
  next_reset_at_ms bigint, -- when next; null: never
  created_at_ms bigint not null, -- when it was made
  updated_at_ms bigint not null, -- when it was changed
  has_blocked boolean, -- something may be held back by it
  recheck_at_ms bigint, -- when to look at what it holds back
  recheck_after_ms bigint, -- where that look goes on: the last one seen was created then
  recheck_after_id text, -- and this was its id
  deleted_at_ms bigint, -- it only remembers that its id was in use
  next_due_at_ms bigint, -- the earlier of its reset and that look
  primary key (partition_key, budget_id)
);
create index ff_budget_policy_due on ff_budget_policy (next_due_at_ms)
  where next_due_at_ms is not null;

-- The latest reports over a limit.
create table ff_budget_breach (
  partition_key integer not null, -- of the budget
  budget_id uuid not null, -- ff_budget_policy
  place bigint not null, -- of a ring: the latest takes that of the oldest
  breach_number bigint not null, -- counted from 1
  occurred_at_ms bigint not null, -- when
  kind text not null, -- soft_breach or hard_breach
  dimension text not null, -- in which dimension
  reported bigint not null, -- what was spent, or would have been
  counted bigint not null, -- what was counted then
  limit_then bigint not null, -- the limit at that time
  execution text, -- who has spent it, if that was said
  primary key (partition_key, budget_id, place)
);

-- Keys of reports that were counted.
create table ff_budget_usage_dedup (
  partition_key integer not null, -- of the budget
  budget_id uuid not null, -- ff_budget_policy
  dedup_key text collate "C" not null, -- of the caller
  applied_at_ms bigint not null, -- when it was counted
  next_due_at_ms bigint, -- when the key is forgotten
  primary key (partition_key, budget_id, dedup_key)
);
create index ff_budget_usage_dedup_due on ff_budget_usage_dedup (next_due_at_ms)
  where next_due_at_ms is not null;

-- What executions have spent of budgets.
create table ff_budget_usage_by_exec (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  budget_id uuid not null, -- ff_budget_policy
  reset_count bigint not null, -- of the budget when it was spent; void after the next
  spent jsonb, -- by dimension
  reserved jsonb, -- set aside for it while it runs
  updated_at_ms bigint not null, -- when
  primary key (partition_key, execution_id, budget_id)
);
create index ff_budget_usage_by_exec_budget on ff_budget_usage_by_exec (budget_id, partition_key, execution_id);

-- Quota policies, with what they have let through.
create table ff_quota_policy (
  partition_key integer not null, -- by the id
  quota_policy_id uuid not null, -- chosen by the caller
  requests_per_window_seconds bigint not null, -- how long the window is
  max_requests_per_window bigint not null, -- 0: any number
  active_concurrency_cap bigint not null, -- 0: any number
  jitter_ms bigint not null, -- added at random to how long a refused one waits
  active_concurrency bigint not null, -- slots that are held
  window_count bigint not null, -- admissions that the rate counts
  created_at_ms bigint not null, -- when it was made
  lane_id text collate "C", -- of a policy that counts a key of a lane
  fair_key text collate "C", -- the key
  last_rank bigint, -- the last place in line that it gave
  has_blocked boolean, -- something may be held back by it
  recheck_at_ms bigint, -- when to look at what it holds back
  recheck_after_ms bigint, -- where that look goes on: the last one seen was created then
  recheck_after_id text, -- and this was its id
  is_deleted boolean, -- it lets everything through, and goes when it is empty
  reconcile_at_ms bigint, -- when the counts are compared with the admissions
  next_due_at_ms bigint, -- the earliest of its times
  primary key (partition_key, quota_policy_id)
);
create index ff_quota_policy_due on ff_quota_policy (next_due_at_ms)
  where next_due_at_ms is not null;

-- Executions that a quota policy has let through: counted by its rate, or holding a slot.
create table ff_quota_admitted (
  partition_key integer not null, -- of the policy
  quota_policy_id uuid not null, -- ff_quota_policy
  execution_partition integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  window_at_ms bigint, -- when the rate counted it, while it does
  holds_slot boolean, -- it is one of those that run
  primary key (partition_key, quota_policy_id, execution_partition, execution_id)
);
create index ff_quota_admitted_window on ff_quota_admitted (quota_policy_id, window_at_ms)
  where window_at_ms is not null;

-- The virtual time of lanes that share fairly.
create table ff_lane_clock (
  lane_id text collate "C" not null, -- ff_lane_registry
  virtual_time bigint not null, -- the rank of what was taken last
  primary key (lane_id)
);

-- What is attached to flows, lanes and tenants.
create table ff_limit_attachment (
  scope_type text collate "C" not null, -- what it is attached to
  scope_id text collate "C" not null, -- which one
  budget_ids jsonb, -- ff_budget_policy
  quota_policy_ids jsonb, -- ff_quota_policy
  primary key (scope_type, scope_id)
);
)sql";

}  // namespace flowfabric::store::postgres
