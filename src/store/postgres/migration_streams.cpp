// The tables of output streams, and what subscribers filter events by: one step of the schema
// (migrations.cpp).
#include "store/postgres/schema.h"

namespace flowfabric::store::postgres {

const char* const kStreamSchema = R"sql(
-- Output streams of attempts that have written something.
create table ff_stream_meta (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  attempt_index bigint not null, -- which attempt
  created_at_ms bigint not null, -- when the first frame came
  retention_maxlen bigint not null, -- how many durable frames are kept, from the policy
  last_ms bigint not null, -- of the last frame's id
  last_seq bigint not null, -- of the last frame's id
  frame_count bigint not null, -- frames so far
  frames_kept bigint not null, -- frames that are still there
  total_bytes bigint not null, -- of their payloads, so far
  last_frame_at_ms bigint not null, -- when the last frame came
  last_caller_seq bigint, -- the largest number that the caller has given a frame
  has_durable_frame boolean, -- so that its frames do not expire
  ema_rate_micro_hz bigint not null, -- how often best-effort frames come, in millionths of a frame per second
  last_append_ts_ms bigint, -- when the last best-effort frame came
  maxlen_applied_last bigint not null, -- how many frames were kept then
  expires_at_ms bigint, -- when its frames are gone
  next_due_at_ms bigint, -- when that is looked at; may be early, never late
  primary key (partition_key, execution_id, attempt_index)
);
create index ff_stream_meta_due on ff_stream_meta (next_due_at_ms) where next_due_at_ms is not null;

-- Their frames.
create table ff_stream_frame (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  attempt_index bigint not null, -- which attempt
  frame_ms bigint not null, -- of the id: when it was appended
  frame_seq bigint not null, -- of the id: how many were before it in that millisecond
  frame_type text, -- the writer's word for what it is
  ts_ms bigint not null, -- when it was produced
  source text, -- worker, system or operator
  mode text not null, -- durable, summary or best_effort
  correlation_id text, -- the writer's
  summary_version bigint, -- of the document that it has made
  ttl_ms bigint, -- how long it is worth something
  payload bytea, -- what it says
  primary key (partition_key, execution_id, attempt_index, frame_ms, frame_seq)
);

-- The documents that summary frames have made.
create table ff_stream_summary (
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  attempt_index bigint not null, -- which attempt
  document_json text, -- as it is now
  version bigint not null, -- how many patches have made it
  patch_kind text, -- json-merge-patch
  first_applied_ms bigint not null, -- when it was made
  last_updated_ms bigint not null, -- when it was changed
  primary key (partition_key, execution_id, attempt_index)
);

-- How far each event log was trimmed: a reader that is not as far has missed something.
create table ff_event_horizon (
  family text primary key, -- which log
  trimmed_up_to bigint not null -- the last event that was removed
);

-- Tags that executions were given, and lost.
create table ff_instance_tag_event (
  event_id bigint primary key default nextval('ff_event_id_seq'), -- grows; readers go by it
  partition_key integer not null, -- ff_exec_core
  execution_id uuid not null, -- ff_exec_core
  event_type text not null, -- attached or cleared
  tag text, -- which
  value text, -- that it has, or had
  occurred_at_ms bigint not null, -- when
  namespace text collate "C", -- the tenant
  instance_tag text, -- of the execution
  tags jsonb, -- of the execution, with it or without
  lane_id text collate "C", -- of the execution
  flow_id uuid -- of the execution
);

create index ff_operator_event_execution on ff_operator_event (partition_key, execution_id);
alter table ff_exec_spec add column trace_context text;
comment on column ff_exec_spec.trace_context is 'a W3C traceparent, for whoever works on it';
alter table ff_lease_event add column lane_id text collate "C";
comment on column ff_lease_event.lane_id is 'of the execution';
alter table ff_lease_event add column flow_id uuid;
comment on column ff_lease_event.flow_id is 'of the execution';
alter table ff_completion_event add column lane_id text collate "C";
comment on column ff_completion_event.lane_id is 'of the execution';
alter table ff_operator_event add column lane_id text collate "C";
comment on column ff_operator_event.lane_id is 'of the execution';
alter table ff_operator_event add column flow_id uuid;
comment on column ff_operator_event.flow_id is 'of the execution';
alter table ff_signal_event add column raw_effect text;
comment on column ff_signal_event.raw_effect is 'what it did, in the words of the delivery';
alter table ff_signal_event add column lane_id text collate "C";
comment on column ff_signal_event.lane_id is 'of the execution';
alter table ff_signal_event add column flow_id uuid;
comment on column ff_signal_event.flow_id is 'of the execution';
)sql";

// Of lease events, only those that an execution's history is told by: most are none of these, and cost
// nothing.
const char* const kPauseSchema = R"sql(
create index ff_lease_event_pauses on ff_lease_event (partition_key, execution_id, event_id)
  where (reason='worker_delay' or reason='waiting_children' or reason='paused_by_budget' or
    reason='claim_resumed' or reason='issue_grant_and_claim_resumed');
)sql";

}  // namespace flowfabric::store::postgres
