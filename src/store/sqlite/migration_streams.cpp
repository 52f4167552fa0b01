// The tables of output streams, and what subscribers filter events by: one step of the schema
// (migrations.cpp).
#include "store/sqlite/schema.h"

namespace flowfabric::store::sqlite {

const char* const kStreamSchema = R"sql(
-- Output streams of attempts that have written something.
create table ff_stream_meta (
  partition_key       integer,
  execution_id        blob,
  attempt_index       integer,
  created_at_ms       integer,
  retention_maxlen    integer,
  last_ms             integer,
  last_seq            integer,
  frame_count         integer,
  frames_kept         integer,
  total_bytes         integer,
  last_frame_at_ms    integer,
  last_caller_seq     integer,
  has_durable_frame   integer,
  ema_rate_micro_hz   integer,
  last_append_ts_ms   integer,
  maxlen_applied_last integer,
  expires_at_ms       integer,
  next_due_at_ms      integer,
  primary key (partition_key, execution_id, attempt_index)
);
create index ff_stream_meta_due on ff_stream_meta (next_due_at_ms) where next_due_at_ms is not null;

-- Their frames.
create table ff_stream_frame (
  partition_key   integer,
  execution_id    blob,
  attempt_index   integer,
  frame_ms        integer,
  frame_seq       integer,
  frame_type      text,
  ts_ms           integer,
  source          text,
  mode            text,
  correlation_id  text,
  summary_version integer,
  ttl_ms          integer,
  payload         blob,
  primary key (partition_key, execution_id, attempt_index, frame_ms, frame_seq)
);

-- The documents that summary frames have made.
create table ff_stream_summary (
  partition_key    integer,
  execution_id     blob,
  attempt_index    integer,
  document_json    text,
  version          integer,
  patch_kind       text,
  first_applied_ms integer,
  last_updated_ms  integer,
  primary key (partition_key, execution_id, attempt_index)
);

-- Tags that executions were given, and lost.
create table ff_instance_tag_event (
  event_id       integer primary key,
  partition_key  integer,
  execution_id   blob,
  event_type     text,
  tag            text,
  value          text,
  occurred_at_ms integer,
  namespace      text,
  instance_tag   text,
  tags           text,
  lane_id        text,
  flow_id        blob
);

create index ff_operator_event_execution on ff_operator_event (partition_key, execution_id);
alter table ff_exec_spec add column trace_context text;
alter table ff_lease_event add column lane_id text;
alter table ff_lease_event add column flow_id blob;
alter table ff_completion_event add column lane_id text;
alter table ff_operator_event add column lane_id text;
alter table ff_operator_event add column flow_id blob;
alter table ff_signal_event add column raw_effect text;
alter table ff_signal_event add column lane_id text;
alter table ff_signal_event add column flow_id blob;
)sql";

// Of lease events, only those that an execution's history is told by: most are none of these, and cost
// nothing.
const char* const kPauseSchema = R"sql(
create index ff_lease_event_pauses on ff_lease_event (partition_key, execution_id)
  where (reason='worker_delay' or reason='waiting_children' or reason='paused_by_budget' or
    reason='claim_resumed' or reason='issue_grant_and_claim_resumed');
)sql";

}  // namespace flowfabric::store::sqlite
