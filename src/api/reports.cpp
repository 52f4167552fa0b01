#include "api/reports.h"

#include "api/shapes.h"
#include "model/condition_json.h"

namespace flowfabric::api {

namespace {

struct Report {
  Engine& engine;
  const Fields& fields;
  ExecutionId execution_id;
  std::optional<ExecutionId> in_order_with;
  ReportAnswer answer;

  LeaseFence fence() const { return read_fence(fields.object("lease")); }

  // Asks the engine; `write` writes the members of the `ok` object.
  template <class Request, class Write>
  void send(Request request, Write write) const {
    auto reply = [answer = answer, write](Result<typename Request::Answer> result) {
      if (!result) return answer(std::unexpected(result.error()));
      JsonWriter out;
      out.object();
      write(out, *result);
      answer(out.end().take());
    };
    engine.post(std::move(request), std::move(reply), in_order_with);
  }
};

void complete(const Report& report) {
  auto result = report.fields.payload("result", "result_base64");
  report.send(CompleteExecution{.execution_id = report.execution_id,
                                .fence = report.fence(),
                                .result = std::move(result.bytes).value_or("")},
              [](JsonWriter& out, const Completed&) { out.field("outcome", "completed"); });
}

void fail(const Report& report) {
  report.send(FailExecution{.execution_id = report.execution_id,
                            .fence = report.fence(),
                            .reason = report.fields.text_or("reason", ""),
                            .category = report.fields.text_or("category", "transient")},
              [](JsonWriter& out, const Failed& failed) {
                if (!failed.retry_scheduled) {
                  out.field("outcome", "failed");
                  return;
                }
                out.field("outcome", "retry_scheduled")
                    .field("delay_until", failed.delay_until)
                    .field("next_attempt_index", failed.next_attempt_index);
              });
}

void cancel(const Report& report) {
  report.send(CancelExecution{.execution_id = report.execution_id,
                              .reason = report.fields.text_or("reason", ""),
                              .source = kLeaseHolder,
                              .fence = report.fence()},
              [](JsonWriter& out, const Cancelled&) { out.field("outcome", "cancelled"); });
}

void renew(const Report& report) {
  report.send(RenewLease{.execution_id = report.execution_id,
                         .fence = report.fence(),
                         .lease_ttl_ms = report.fields.maybe_number<std::int64_t>("lease_ttl_ms")},
              [](JsonWriter& out, const Renewal& renewal) {
                out.field("expires_at", renewal.expires_at).field("lease_epoch", renewal.lease_epoch);
              });
}

void progress(const Report& report) {
  report.send(UpdateProgress{.execution_id = report.execution_id,
                             .fence = report.fence(),
                             .percent = report.fields.maybe_number<std::int32_t>("percent"),
                             .message = report.fields.maybe_text("message")},
              [](JsonWriter&, const ProgressUpdated&) {});
}

void delay(const Report& report) {
  const auto until = report.fields.maybe_number<std::int64_t>("delay_until");
  const auto by = report.fields.maybe_number<std::int64_t>("delay_ms");
  if (until.has_value() == by.has_value()) {
    refuse_shape("Give " + report.fields.named("delay_until") + " or " + report.fields.named("delay_ms") +
                 ".");
  }
  report.send(DelayExecution{.execution_id = report.execution_id,
                             .fence = report.fence(),
                             .delay_until = until.value_or(0),
                             .delay_ms = by},
              [](JsonWriter& out, const Delayed& delayed) {
                out.field("outcome", "delayed").field("delay_until", delayed.delay_until);
              });
}

void wait_children(const Report& report) {
  report.send(WaitForChildren{.execution_id = report.execution_id, .fence = report.fence()},
              [](JsonWriter& out, const WaitingForChildren&) { out.field("outcome", "waiting_children"); });
}

// ---- suspending -------------------------------------------------------------------------------------------

void write_tokened(JsonWriter& out, const TokenedWaitpoint& waitpoint) {
  out.field("waitpoint_id", waitpoint.waitpoint_id)
      .field("waitpoint_key", waitpoint.waitpoint_key)
      .field("token", waitpoint.waitpoint_token);
}

// `{"Fresh":{…}}`, `{"UsePending":{…}}`, also in snake_case; or the keys of a fresh one.
WaitpointBinding read_binding(const Fields& fields) {
  for (const std::string_view name : {"UsePending", "use_pending"}) {
    if (const auto pending = fields.maybe_object(name)) {
      return {.waitpoint_id = pending->id<WaitpointId>("waitpoint_id"), .use_pending = true};
    }
  }
  const auto fresh = [](const Fields& keys) {
    return WaitpointBinding{.waitpoint_id = keys.maybe_id<WaitpointId>("waitpoint_id"),
                            .waitpoint_key = keys.text_or("waitpoint_key", "")};
  };
  for (const std::string_view name : {"Fresh", "fresh"}) {
    if (const auto keys = fields.maybe_object(name)) return fresh(*keys);
  }
  return fresh(fields);
}

ResumePolicy read_resume_policy(const Fields& fields) {
  ResumePolicy policy;
  policy.resume_delay_ms = fields.maybe_number<std::int64_t>("resume_delay_ms");
  policy.consume_matched_signals = fields.flag_or("consume_matched_signals", policy.consume_matched_signals);
  policy.retain_signal_buffer_until_closed =
      fields.flag_or("retain_signal_buffer_until_closed", policy.retain_signal_buffer_until_closed);
  policy.close_waitpoint_on_resume =
      fields.flag_or("close_waitpoint_on_resume", policy.close_waitpoint_on_resume);
  if (const auto target = fields.maybe_text("resume_target");
      target && Fields::to_snake_case(*target) != "runnable") {
    refuse_input("resume_target: only Runnable is supported", "Leave resume_target out.");
  }
  return policy;
}

void suspend(const Report& report) {
  const auto& fields = report.fields;
  SuspendExecution request{.execution_id = report.execution_id, .fence = report.fence()};
  request.suspension_id = fields.maybe_id<SuspensionId>("suspension_id");
  if (fields.has("waitpoints")) {
    for (const auto item : fields.array("waitpoints")) {
      const auto place = "waitpoints[" + std::to_string(request.waitpoints.size()) + "]";
      request.waitpoints.push_back(read_binding(Fields(item, fields.named(place))));
    }
    if (request.waitpoints.empty()) {
      refuse({ErrorCode::invalid_input, "waitpoints_empty",
              "Give at least one waitpoint, or leave the key out."});
    }
  }
  if (const auto condition = fields.find("resume_condition"))
    request.resume_condition = unwrap(condition_from_json(condition->compact()));
  else if (request.waitpoints.size() > 1)
    refuse_shape("resume_condition is missing: it may be left out with one waitpoint only.");
  if (const auto policy = fields.maybe_object("resume_policy")) {
    request.resume_policy = read_resume_policy(*policy);
  }
  request.reason_code = fields.maybe_word<SuspensionReason>("reason_code").value_or(request.reason_code);
  request.requested_by =
      fields.maybe_word<SuspensionRequester>("requested_by").value_or(request.requested_by);
  request.timeout_at = fields.maybe_number<std::int64_t>("timeout_at");
  request.timeout_ms = fields.maybe_number<std::uint64_t>("timeout_ms");
  if (request.timeout_at && request.timeout_ms) refuse_shape("Give timeout_at or timeout_ms, not both.");
  request.timeout_behavior = fields.maybe_word<TimeoutBehavior>("timeout_behavior");
  request.timeout_signal_name = fields.text_or("timeout_signal_name", request.timeout_signal_name);
  request.continuation_metadata_pointer = fields.text_or("continuation_metadata_pointer", "");
  request.now = fields.maybe_number<std::int64_t>("now");
  request.idempotency_key = fields.text_or("idempotency_key", "");
  request.strict = fields.flag_or("strict", false);
  report.send(std::move(request), [](JsonWriter& out, const Suspended& suspended) {
    out.field("outcome", suspended.already_satisfied ? "already_satisfied" : "suspended")
        .field("suspension_id", suspended.suspension_id)
        .key("waitpoints")
        .array();
    for (const auto& waitpoint : suspended.waitpoints) {
      out.object();
      write_tokened(out, waitpoint);
      out.end();
    }
    out.end();
    if (!suspended.already_satisfied) return;
    out.key("signals").array();
    for (const auto& signal : suspended.signals) write_resume_signal(out, signal);
    out.end();
  });
}

void create_waitpoint(const Report& report) {
  CreateWaitpoint request{.execution_id = report.execution_id,
                          .fence = report.fence(),
                          .waitpoint_key = report.fields.text_or("waitpoint_key", "")};
  request.expires_in_ms = report.fields.number_or<std::int64_t>("expires_in_ms", request.expires_in_ms);
  report.send(std::move(request),
              [](JsonWriter& out, const TokenedWaitpoint& waitpoint) { write_tokened(out, waitpoint); });
}

// ---- output and spending ----------------------------------------------------------------------------------

void append(const Report& report) {
  const auto& fields = report.fields;
  AppendFrame request{.execution_id = report.execution_id, .fence = report.fence()};
  request.frame_type = fields.text_or("frame_type", "");
  const auto text = fields.maybe_text("text");
  auto payload = fields.payload("payload", "payload_base64");
  if (text && payload.bytes) {
    refuse_shape("Give one of " + fields.named("text") + ", " + fields.named("payload") + " and " +
                 fields.named("payload_base64") + ".");
  }
  request.payload = text ? *text : std::move(payload.bytes).value_or("");
  request.mode = fields.maybe_word<FrameMode>("mode").value_or(FrameMode::durable);
  request.patch_kind = fields.text_or("patch_kind", request.patch_kind);
  if (const auto ttl = fields.maybe_number<std::uint64_t>("ttl_ms")) request.best_effort.ttl_ms = *ttl;
  request.correlation_id = fields.maybe_text("correlation_id");
  request.seq = fields.maybe_number<std::uint64_t>("seq");
  request.ts = fields.maybe_number<std::int64_t>("ts");
  report.send(std::move(request), [](JsonWriter& out, const FrameAppended& appended) {
    out.field("frame_id", appended.stream_id)
        .field("frame_count", appended.frame_count)
        .field_if("summary_version", appended.summary_version);
  });
}

// Accepted whatever became of the lease, because the amounts are spent.
void usage(const Report& report) {
  ReportUsage request{.budget_id = report.fields.id<BudgetId>("budget_id"),
                      .dedup_key = report.fields.text_or("dedup_key", ""),
                      .execution_id = report.execution_id};
  report.fields.require("dimensions");
  for (const auto& [name, delta] : report.fields.number_map<std::uint64_t>("dimensions")) {
    request.dimensions.push_back(name);
    request.deltas.push_back(delta);
  }
  report.send(std::move(request), [](JsonWriter& out, const UsageReport& used) { write_usage(out, used); });
}

using Send = void (*)(const Report&);

Send sender_of(std::string_view op) {
  static const std::map<std::string_view, Send> senders{{"complete", complete},
                                                        {"fail", fail},
                                                        {"cancel", cancel},
                                                        {"renew", renew},
                                                        {"progress", progress},
                                                        {"delay", delay},
                                                        {"wait_children", wait_children},
                                                        {"suspend", suspend},
                                                        {"create_waitpoint", create_waitpoint},
                                                        {"append", append},
                                                        {"usage", usage}};
  const auto found = senders.find(op);
  return found == senders.end() ? nullptr : found->second;
}

}  // namespace

void send_report(Engine& engine, const Fields& report, std::string_view op, ReportAnswer answer,
                 const std::optional<ExecutionId>& in_order_with) {
  const auto named = op.empty() ? report.text("op") : report.text_or("op", op);
  if (!op.empty() && named != op)
    refuse_input("op in the path and in the body differ", "Leave op out of the body.");
  const auto send = sender_of(named);
  if (!send) {
    refuse_input(report.named("op") +
                     ": must be complete, fail, cancel, renew, progress, delay, wait_children, suspend, "
                     "create_waitpoint, append or usage",
                 "Give one of them.");
  }
  const auto id = report.id<ExecutionId>("execution_id");
  send(Report{engine, report, id, in_order_with, std::move(answer)});
}

void write_task(JsonWriter& out, const ClaimedTask& task) {
  out.object()
      .field("execution_id", task.execution_id)
      .field("execution_kind", task.execution_kind)
      .field("namespace", task.namespace_)
      .field("lane_id", task.lane_id)
      .field("flow_id", task.flow_id)
      .field("attempt_index", task.attempt_index);
  write_word(out, "attempt_type", task.attempt_type);
  write_word(out, "claim", task.claim);
  out.key("lease")
      .object()
      .field("lease_id", task.fence.lease_id)
      .field("lease_epoch", task.fence.lease_epoch)
      .field("attempt_id", task.fence.attempt_id)
      .field("expires_at", task.lease_expires_at)
      .end();
  write_payload(out, "input", task.input);
  out.field("payload_encoding", task.payload_encoding)
      .field("tags", task.tags)
      .field("priority", task.priority)
      .field("deadline_at", task.deadline_at)
      .field("attempt_timeout_at", task.attempt_timeout_at)
      .key("resume_signals")
      .array();
  for (const auto& signal : task.resume_signals) write_resume_signal(out, signal);
  out.end().key("steps").array().end().key("fallback");
  if (task.fallback) {
    out.object()
        .field("tier", task.fallback->tier)
        .field("provider", task.fallback->provider)
        .field("model", task.fallback->model)
        .end();
  } else {
    out.null();
  }
  write_text_or_null(out, "traceparent", task.trace_context);
  out.end();
}

}  // namespace flowfabric::api
