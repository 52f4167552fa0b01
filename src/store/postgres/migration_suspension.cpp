// The tables of suspensions: two steps of the schema (migrations.cpp).
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kSuspensionSchema = R"sql(
-- The latest suspension of each execution that had one, and what is counted over all.
create table ff_suspension_current (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  suspension_count bigint not null, -- suspensions so far
  signal_count bigint not null, -- signals so far
  last_hmac_validation_failed_at_ms bigint, -- when a token was refused last
  suspension_id uuid, -- chosen by the caller, or made by us; null: there was none yet
  attempt_index bigint not null, -- the attempt that was suspended
  waitpoint_ids jsonb, -- ff_waitpoint_pending, as bound; the first is the primary one
  reason_code text not null, -- why
  requested_by text not null, -- by whom
  suspended_at_ms bigint not null, -- when
  timeout_at_ms bigint, -- when waiting ends
  timeout_behavior text not null, -- and how
  timeout_signal_name text, -- the name of the signal that says so
  resume_condition jsonb, -- what it waits for
  resume_delay_ms bigint, -- how long it still waits once that has come
  continuation_metadata_pointer text, -- where the worker left its state
  satisfied_set jsonb, -- what has come: nodes of the condition, and by whom
  satisfier_signals jsonb, -- numbers of the signals (ff_signal) that counted
  last_signal_at_ms bigint, -- when the last signal came
  closed_at_ms bigint, -- when it ended; null: it is open
  close_reason text, -- how
  resume_trigger text not null, -- what resumed it
  resume_requested_by text, -- what an operator said
  next_due_at_ms bigint, -- the timeout, while it is open
  primary key (partition_key, execution_id)
);
create index ff_suspension_current_due on ff_suspension_current (next_due_at_ms)
  where next_due_at_ms is not null;
create index ff_suspension_current_open on ff_suspension_current (partition_key, suspended_at_ms, execution_id)
  where suspension_id is not null and closed_at_ms is null;

-- The suspensions before the latest.
create table ff_suspension_history (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  suspension_index bigint not null, -- from 0 on
  suspension_id uuid, -- chosen by the caller, or made by us; null: there was none yet
  attempt_index bigint not null, -- the attempt that was suspended
  waitpoint_ids jsonb, -- ff_waitpoint_pending, as bound; the first is the primary one
  reason_code text not null, -- why
  requested_by text not null, -- by whom
  suspended_at_ms bigint not null, -- when
  timeout_at_ms bigint, -- when waiting ends
  timeout_behavior text not null, -- and how
  timeout_signal_name text, -- the name of the signal that says so
  resume_condition jsonb, -- what it waits for
  resume_delay_ms bigint, -- how long it still waits once that has come
  continuation_metadata_pointer text, -- where the worker left its state
  satisfied_set jsonb, -- what has come: nodes of the condition, and by whom
  satisfier_signals jsonb, -- numbers of the signals (ff_signal) that counted
  last_signal_at_ms bigint, -- when the last signal came
  closed_at_ms bigint, -- when it ended; null: it is open
  close_reason text, -- how
  resume_trigger text not null, -- what resumed it
  resume_requested_by text, -- what an operator said
  primary key (partition_key, execution_id, suspension_index)
);

-- Waitpoints: where signals arrive. Their tokens are secret.
create table ff_waitpoint_pending (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  waitpoint_id uuid not null, -- never used again
  waitpoint_key text, -- its name in the condition
  attempt_index bigint not null, -- the attempt that made it
  suspension_id uuid, -- null: nobody was suspended on it yet
  token text, -- opens it: secret
  state text not null, -- pending, active or closed
  required_signal_names jsonb, -- null: any
  created_at_ms bigint not null, -- when it was made
  activated_at_ms bigint, -- when an execution was suspended on it
  satisfied_at_ms bigint, -- when that was resumed by a signal
  closed_at_ms bigint, -- when it stopped taking signals
  expires_at_ms bigint, -- when it will
  close_reason text, -- why
  signal_count bigint not null, -- signals that it took
  matched_signal_count bigint not null, -- of them, those the condition asked for
  last_signal_at_ms bigint, -- when the last one came
  buffered_signals jsonb, -- numbers of the signals (ff_signal) that came before the suspension
  next_due_at_ms bigint, -- when it expires, while pending
  primary key (partition_key, execution_id, waitpoint_id)
);
create index ff_waitpoint_pending_due on ff_waitpoint_pending (next_due_at_ms)
  where next_due_at_ms is not null;

-- Every signal that was accepted: the audit trail.
create table ff_signal (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  signal_index bigint not null, -- in the order of acceptance
  signal_id uuid not null, -- chosen by the sender, or made by us
  waitpoint_id uuid not null, -- ff_waitpoint_pending
  target_scope text, -- the senders word
  signal_name text, -- what conditions match
  signal_category text, -- the senders word
  source_type text, -- what kind of sender
  source_identity text, -- who
  correlation_id text, -- the senders word
  idempotency_key text, -- makes a repeated delivery one
  payload_encoding text, -- how to read the payload
  has_payload boolean, -- an empty payload is one
  payload bytea, -- any bytes
  created_at_ms bigint not null, -- by the senders clock, if it said
  accepted_at_ms bigint not null, -- when it came
  observed_effect text not null, -- what it did
  primary key (partition_key, execution_id, signal_index)
);

-- Idempotency keys of signals.
create table ff_signal_dedup (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  waitpoint_id uuid not null, -- ff_waitpoint_pending
  idempotency_key text collate "C" not null, -- of the sender
  signal_id uuid not null, -- the first signal with this key
  expires_at_ms bigint not null, -- until when the key counts
  primary key (partition_key, execution_id, waitpoint_id, idempotency_key)
);

-- Idempotency keys of suspensions.
create table ff_suspend_dedup (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  idempotency_key text collate "C" not null, -- of the worker
  suspension_index bigint not null, -- the suspension it made
  already_satisfied boolean, -- it needed not wait
  expires_at_ms bigint not null, -- until when the key counts
  primary key (partition_key, execution_id, idempotency_key)
);

-- The secrets that waitpoint tokens are signed with.
create table ff_waitpoint_hmac (
  kid text collate "C" not null, -- its name, in front of every token
  secret bytea, -- secret
  rotated_at_ms bigint not null, -- since when
  active boolean, -- new tokens are signed with it
  expires_at_ms bigint, -- of a retired one: until when its tokens are accepted
  previous_kid text, -- the one before
  primary key (kid)
);

-- Which secret new tokens are signed with: one row.
create table ff_waitpoint_keystore (
  keystore_id integer not null, -- 1
  active_kid text, -- ff_waitpoint_hmac
  primary key (keystore_id)
);

-- Signals that were delivered, for subscribers.
create table ff_signal_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  signal_id uuid not null, -- ff_signal
  waitpoint_id uuid not null, -- ff_waitpoint_pending
  source_identity text, -- who sent it
  effect text, -- what it did
  occurred_at_ms bigint not null, -- when
  namespace text collate "C", -- the tenant
  instance_tag text, -- of the execution
  tags jsonb -- of the execution
);
)sql";

// The id of a waitpoint is never used again, by any execution.
const char* const kWaitpointIdSchema = R"sql(
create index ff_waitpoint_pending_id on ff_waitpoint_pending (waitpoint_id);
)sql";

}  // namespace flowfabric::store::postgres
