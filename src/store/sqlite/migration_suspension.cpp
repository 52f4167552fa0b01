// The tables of suspensions: two steps of the schema (migrations.cpp).
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kSuspensionSchema = R"sql(
-- The latest suspension of each execution that had one, and what is counted over all.
create table ff_suspension_current (
  partition_key                     integer,
  execution_id                      blob,
  suspension_count                  integer,
  signal_count                      integer,
  last_hmac_validation_failed_at_ms integer,
  suspension_id                     blob,
  attempt_index                     integer,
  waitpoint_ids                     text,
  reason_code                       text,
  requested_by                      text,
  suspended_at_ms                   integer,
  timeout_at_ms                     integer,
  timeout_behavior                  text,
  timeout_signal_name               text,
  resume_condition                  text,
  resume_delay_ms                   integer,
  continuation_metadata_pointer     text,
  satisfied_set                     text,
  satisfier_signals                 text,
  last_signal_at_ms                 integer,
  closed_at_ms                      integer,
  close_reason                      text,
  resume_trigger                    text,
  resume_requested_by               text,
  next_due_at_ms                    integer,
  primary key (partition_key, execution_id)
);
create index ff_suspension_current_due on ff_suspension_current (next_due_at_ms)
  where next_due_at_ms is not null;
create index ff_suspension_current_open on ff_suspension_current (partition_key, suspended_at_ms, execution_id)
  where suspension_id is not null and closed_at_ms is null;

-- The suspensions before the latest.
create table ff_suspension_history (
  partition_key                 integer,
  execution_id                  blob,
  suspension_index              integer,
  suspension_id                 blob,
  attempt_index                 integer,
  waitpoint_ids                 text,
  reason_code                   text,
  requested_by                  text,
  suspended_at_ms               integer,
  timeout_at_ms                 integer,
  timeout_behavior              text,
  timeout_signal_name           text,
  resume_condition              text,
  resume_delay_ms               integer,
  continuation_metadata_pointer text,
  satisfied_set                 text,
  satisfier_signals             text,
  last_signal_at_ms             integer,
  closed_at_ms                  integer,
  close_reason                  text,
  resume_trigger                text,
  resume_requested_by           text,
  primary key (partition_key, execution_id, suspension_index)
);

-- Waitpoints: where signals arrive. Their tokens are secret.
create table ff_waitpoint_pending (
  partition_key         integer,
  execution_id          blob,
  waitpoint_id          blob,
  waitpoint_key         text,
  attempt_index         integer,
  suspension_id         blob,
  token                 text,
  state                 text,
  required_signal_names text,
  created_at_ms         integer,
  activated_at_ms       integer,
  satisfied_at_ms       integer,
  closed_at_ms          integer,
  expires_at_ms         integer,
  close_reason          text,
  signal_count          integer,
  matched_signal_count  integer,
  last_signal_at_ms     integer,
  buffered_signals      text,
  next_due_at_ms        integer,
  primary key (partition_key, execution_id, waitpoint_id)
);
create index ff_waitpoint_pending_due on ff_waitpoint_pending (next_due_at_ms)
  where next_due_at_ms is not null;

-- Every signal that was accepted: the audit trail.
create table ff_signal (
  partition_key    integer,
  execution_id     blob,
  signal_index     integer,
  signal_id        blob,
  waitpoint_id     blob,
  target_scope     text,
  signal_name      text,
  signal_category  text,
  source_type      text,
  source_identity  text,
  correlation_id   text,
  idempotency_key  text,
  payload_encoding text,
  has_payload      integer,
  payload          blob,
  created_at_ms    integer,
  accepted_at_ms   integer,
  observed_effect  text,
  primary key (partition_key, execution_id, signal_index)
);

-- Idempotency keys of signals.
create table ff_signal_dedup (
  partition_key   integer,
  execution_id    blob,
  waitpoint_id    blob,
  idempotency_key text,
  signal_id       blob,
  expires_at_ms   integer,
  primary key (partition_key, execution_id, waitpoint_id, idempotency_key)
);

-- Idempotency keys of suspensions.
create table ff_suspend_dedup (
  partition_key     integer,
  execution_id      blob,
  idempotency_key   text,
  suspension_index  integer,
  already_satisfied integer,
  expires_at_ms     integer,
  primary key (partition_key, execution_id, idempotency_key)
);

-- The secrets that waitpoint tokens are signed with.
create table ff_waitpoint_hmac (
  kid           text,
  secret        blob,
  rotated_at_ms integer,
  active        integer,
  expires_at_ms integer,
  previous_kid  text,
  primary key (kid)
);

-- Which secret new tokens are signed with: one row.
create table ff_waitpoint_keystore (
  keystore_id integer,
  active_kid  text,
  primary key (keystore_id)
);

-- Signals that were delivered, for subscribers.
create table ff_signal_event (
  event_id        integer primary key,
  partition_key   integer,
  execution_id    blob,
  signal_id       blob,
  waitpoint_id    blob,
  source_identity text,
  effect          text,
  occurred_at_ms  integer,
  namespace       text,
  instance_tag    text,
  tags            text
);
)sql";

// The id of a waitpoint is never used again, by any execution.
const char* const kWaitpointIdSchema = R"sql(
create index ff_waitpoint_pending_id on ff_waitpoint_pending (waitpoint_id);
)sql";

}  // namespace flowfabric::store::sqlite
