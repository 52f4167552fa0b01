// Suspension: waitpoints and their tokens, signals, suspended executions, and the secrets that sign tokens.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <future>

#include "api/routes.h"
#include "api/shapes.h"
#include "model/condition_json.h"
#include "model/waitpoint_token.h"

namespace flowfabric::api {

namespace {

ExecutionId id_of(const CallPtr& call) {
  return path_id<ExecutionId>("execution_id", call->segments[0]);
}

void list_waitpoints(const CallPtr& call) {
  const auto after = call->query.id<WaitpointId>("after");
  const auto limit = call->query.number<std::uint32_t>("limit").value_or(100);
  const auto id = id_of(call);
  call->read(ListPendingWaitpoints{.execution_id = id, .after = after, .limit = limit},
             [id, limit](Call& self, const WaitpointPage& page) {
               JsonWriter out;
               out.array();
               for (const auto& waitpoint : page.waitpoints) write_waitpoint(out, waitpoint);
               http::Response response{.content_type = "application/json", .body = out.end().take()};
               if (page.next_cursor) {
                 response.headers.emplace_back(
                     "link",
                     fmt::format("</v1/executions/%7Bfp:{}%7D:{}/pending-waitpoints?after={}&limit={}>; "
                                 "rel=\"next\"",
                                 id.partition, id.uuid.to_string(), page.next_cursor->to_string(), limit));
               }
               self.reply(std::move(response));
             });
}

void reply_unstored(Call& self, int status, std::string json) {
  self.reply(http::Response{.status = status,
                            .content_type = "application/json",
                            .body = std::move(json),
                            .headers = {{"cache-control", "no-store"}}});
}

void read_token(const CallPtr& call) {
  const auto id = id_of(call);
  const auto waitpoint_id = path_id<WaitpointId>("waitpoint_id", call->segments[1]);
  auto self = call;
  call->services.readers.run([self, id, waitpoint_id] {
    const auto token = self->engine().call(ReadWaitpointToken{id, waitpoint_id});
    const bool missing = token ? !*token : error_info(token.error().code).kind == ErrorKind::not_found;
    if (missing) {
      const Refusal refusal{404, "unknown_waitpoint",
                            "waitpoint token not found (consumed, expired, or unknown id)",
                            "No waitpoint of this execution with this id takes signals now."};
      return reply_unstored(*self, 404, error_body(refusal, self->request_id));
    }
    if (!token) return self->reply(token.error());
    JsonWriter out;
    reply_unstored(*self, 200, out.object().field("token", **token).end().take());
  });
}

void reply_delivery(Call& self, const SignalDelivered& delivered) {
  JsonWriter out;
  out.object();
  if (delivered.duplicate) {
    out.key("Duplicate").object().field("existing_signal_id", delivered.signal_id);
  } else {
    out.key("Accepted").object().field("signal_id", delivered.signal_id);
    write_word(out, "effect", delivered.effect);
  }
  self.reply(200, out.end().end().take());
}

// A caller without a genuine token must not learn what exists.
bool is_before_token(ErrorCode code) {
  switch (code) {
    case ErrorCode::execution_not_found:
    case ErrorCode::invalid_token:
    case ErrorCode::missing_token:
    case ErrorCode::token_expired:
    case ErrorCode::hmac_secret_not_initialized:
    case ErrorCode::invalid_secret:
      return true;
    default:
      return error_info(code).kind == ErrorKind::not_found;
  }
}

void deliver(const CallPtr& call) {
  const auto fields = call->fields();
  const auto named = fields.maybe_id<ExecutionId>("execution_id");
  DeliverSignal request;
  request.waitpoint_id = fields.id<WaitpointId>("waitpoint_id");
  request.waitpoint_token = fields.text("waitpoint_token");
  request.signal_id = fields.maybe_id<SignalId>("signal_id");
  request.signal_name = fields.text("signal_name");
  request.signal_category = fields.text_or("signal_category", request.signal_category);
  request.source_type = fields.text_or("source_type", request.source_type);
  request.source_identity = fields.text_or("source_identity", "");
  request.target_scope = fields.text_or("target_scope", request.target_scope);
  auto payload = read_payload(fields, "payload", "payload_json", "payload_base64");
  request.payload = std::move(payload.bytes);
  request.payload_encoding = fields.text_or("payload_encoding", request.payload_encoding);
  request.correlation_id = fields.text_or("correlation_id", "");
  request.idempotency_key = fields.text_or("idempotency_key", "");
  request.created_at = fields.maybe_number<std::int64_t>("created_at");
  const auto at_most = [&](std::string_view key, auto otherwise) {
    using Number = decltype(otherwise);
    const auto given = fields.maybe_number<std::uint64_t>(key);
    return given ? static_cast<Number>(std::min<std::uint64_t>(*given, std::numeric_limits<Number>::max()))
                 : otherwise;
  };
  request.dedup_ttl_ms = at_most("dedup_ttl_ms", request.dedup_ttl_ms);
  if (fields.has("resume_delay_ms")) request.resume_delay_ms = at_most("resume_delay_ms", std::int64_t{0});
  if (fields.has("max_signals_per_execution")) {
    request.max_signals_per_execution = at_most("max_signals_per_execution", std::uint32_t{0});
  }
  request.signal_maxlen = at_most("signal_maxlen", request.signal_maxlen);
  fields.maybe_number<std::int64_t>("now");
  request.execution_id = id_of(call);
  if (named && *named != request.execution_id)
    refuse_input("path execution_id does not match body execution_id", kPathAdvice);
  if (!call->is_outsider) return call->run(std::move(request), reply_delivery);
  call->engine().post(std::move(request), [self = call](Result<SignalDelivered> delivered) {
    if (!delivered && is_before_token(delivered.error().code)) return self->reply(unauthorized());
    if (!delivered) return self->reply(delivered.error());
    reply_delivery(*self, *delivered);
  });
}

// A signal of an operator, without a token; by convention `approved` or `rejected`.
void approve(const CallPtr& call) {
  const auto fields = call->fields();
  auto request = std::make_shared<DeliverApprovalSignal>();
  request->waitpoint_id = fields.id<WaitpointId>("waitpoint_id");
  request->signal_name = fields.text_or("signal_name", "approved");
  request->idempotency_suffix = fields.text_or("idempotency_suffix", "");
  request->execution_id = id_of(call);
  if (const auto lane = fields.maybe_text("lane_id")) {
    request->lane_id = *lane;
    return call->run(std::move(*request), reply_delivery);
  }
  const DescribeExecution which{request->execution_id};
  call->read(which, [request](Call& self, const ExecutionSnapshot& execution) {
    request->lane_id = execution.lane_id;
    self.run(std::move(*request), reply_delivery);
  });
}

void close_waitpoint(const CallPtr& call) {
  CloseWaitpoint request;
  if (call->has_body()) request.reason = call->fields().text_or("reason", request.reason);
  request.execution_id = id_of(call);
  request.waitpoint_id = path_id<WaitpointId>("waitpoint_id", call->segments[1]);
  call->run(std::move(request), [](Call& self, const WaitpointClosed& closed) {
    JsonWriter out;
    out.object().field("outcome", closed.already_closed ? "already_closed" : "closed").end();
    self.reply(200, out.take());
  });
}

// ---- suspensions ------------------------------------------------------------------------------------------

void read_suspension(const CallPtr& call) {
  const auto id = id_of(call);
  call->read(DescribeSuspension{id}, [](Call& self, const SuspensionView& suspension) {
    if (suspension.closed_at) {
      return self.reply(Error{ErrorCode::suspension_not_found, "", "The execution is not suspended now."});
    }
    JsonWriter out;
    out.object().field("suspension_id", suspension.suspension_id);
    write_word(out, "reason_code", suspension.reason_code);
    write_word(out, "requested_by", suspension.requested_by);
    out.field("attempt_index", suspension.attempt_index)
        .field("suspended_at", suspension.suspended_at)
        .field("timeout_at", suspension.timeout_at);
    write_word(out, "timeout_behavior", suspension.timeout_behavior);
    out.key("resume_condition").raw(to_json(suspension.resume_condition));
    out.field("satisfied", suspension.satisfied)
        .field("last_signal_at", suspension.last_signal_at)
        .field("last_hmac_validation_failed_at", suspension.last_hmac_validation_failed_at);
    out.key("waitpoints").array();
    for (const auto& waitpoint : suspension.waitpoints) write_waitpoint(out, waitpoint);
    out.end().key("signals").array();
    for (const auto& signal : suspension.signals) {
      write_resume_signal(out, signal.signal, signal.observed_effect);
    }
    self.reply(200, out.end().end().take());
  });
}

// "<when it was suspended>:<execution id>": the next page does not depend on the later fate of that
// execution.
void read_cursor(const std::string& cursor, ListSuspended& request) {
  const auto colon = cursor.find(':');
  if (colon == std::string::npos) refuse_input("cursor: not one of this list", kCursorAdvice);
  const auto* const end = cursor.data() + colon;
  std::int64_t suspended_at = 0;
  const auto [last, failure] = std::from_chars(cursor.data(), end, suspended_at);
  request.cursor = ExecutionId::parse(cursor.substr(colon + 1));
  request.cursor_suspended_at_ms = suspended_at;
  if (failure != std::errc() || last != end || !request.cursor)
    refuse_input("cursor: not one of this list", kCursorAdvice);
}

void list_suspensions(const CallPtr& call) {
  ListSuspended request;
  request.limit = read_limit(call->query, 100, 1, 1000);
  const auto cursor = call->query.text("cursor").value_or("");
  if (!cursor.empty()) read_cursor(cursor, request);
  call->read(request, [](Call& self, const SuspendedPage& page) {
    JsonWriter out;
    out.object().key("suspensions").array();
    for (const auto& each : page.suspended) {
      out.object()
          .field("execution_id", each.execution_id)
          .field("namespace", each.namespace_)
          .field("lane_id", each.lane_id);
      write_word(out, "reason_code", each.reason);
      out.field("suspended_at", each.suspended_at_ms)
          .field("timeout_at", each.timeout_at)
          .field("waitpoint_ids", each.waitpoint_ids)
          .end();
    }
    std::optional<std::string> next;
    if (page.next_cursor) {
      next = fmt::format("{}:{}", page.suspended.back().suspended_at_ms, page.next_cursor->to_string());
    }
    self.reply(200, out.end().field("next_cursor", next).end().take());
  });
}

void resume(const CallPtr& call) {
  ResumeExecution request;
  if (call->has_body()) {
    const auto fields = call->fields();
    request.resume_delay_ms = fields.number_or<std::int64_t>("resume_delay_ms", 0);
    request.trigger_type = fields.maybe_text("reason").value_or(request.trigger_type);
  }
  const auto id = request.execution_id = id_of(call);
  call->run(std::move(request), [id](Call& self, const Resumed& resumed) {
    JsonWriter out;
    out.object().field("execution_id", id);
    write_word(out, "public_state", resumed.public_state);
    self.reply(200, out.end().take());
  });
}

// ---- secrets ----------------------------------------------------------------------------------------------

void audit(Services& services, const std::function<void(JsonWriter&)>& write) {
  if (!services.options.audit_log) return;
  JsonWriter out;
  write(out.object().field("log", "audit"));
  services.options.audit_log(out.end().take());
}

// There is one keystore; where partitions are counted, it is partition 0.
void audit(Services& services, const std::string& kid, const Result<SecretRotated>& rotated) {
  audit(services, [&](JsonWriter& out) {
    if (rotated) {
      out.field("event", "waitpoint_hmac_rotation_complete")
          .field("new_kid", kid)
          .field("total_partitions", 1)
          .field("rotated", 1)
          .field("failed_count", 0);
    } else {
      out.field("event", "waitpoint_hmac_rotation_failed")
          .field("new_kid", kid)
          .field("partition", 0)
          .field("err", error_name(rotated.error().code));
    }
  });
}

// The rotation continues, and its outcome is audited when it is known.
void reply_too_late(Call& self, const std::string& kid) {
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(self.services.options.rotation_timeout).count();
  audit(self.services, [&](JsonWriter& out) {
    out.field("event", "waitpoint_hmac_rotation_timeout_http_504")
        .field("new_kid", kid)
        .field("timeout_s", static_cast<std::int64_t>(seconds));
  });
  self.reply(Refusal{.status = 504,
                     .code = "timeout",
                     .error = "timeout: rotate_waitpoint_secret",
                     .detail = fmt::format("It has taken longer than {} seconds, and may yet take effect: "
                                           "repeat the call, which is safe.",
                                           seconds),
                     .retryable = true});
}

// Answered once: by the engine, or by the timeout, whichever comes first.
struct Rotation {
  std::promise<void> ended{};
  std::atomic<bool> is_answered{false};
};

void reply_rotated(Call& self, const std::string& kid, const Result<SecretRotated>& rotated) {
  // The engine did not run it in time.
  if (!rotated && rotated.error().code == ErrorCode::timeout) return reply_too_late(self, kid);
  if (!rotated) return self.reply(rotated.error());
  JsonWriter out;
  out.object().field("rotated", 1).key("failed").array().end().field("new_kid", rotated->new_kid).end();
  self.reply(200, out.take());
}

void rotate(const CallPtr& call) {
  const auto fields = call->fields();
  RotateWaitpointSecret request{
      .new_kid = fields.text("new_kid"),
      .new_secret_hex = fields.text("new_secret_hex"),
      .grace_ms =
          fields.maybe_number<std::int64_t>("grace_ms").value_or(call->services.options.secret_grace_ms)};
  if (call->services.rotating.exchange(true)) {
    throw Refusal{.status = 429,
                  .code = "resource_exhausted",
                  .error = "admin_rotate: one rotation at a time (max 1)",
                  .detail = "Another rotation is running in this server: repeat the call when it has ended.",
                  .retryable = true};
  }
  // A caller may have put something else there by mistake, which must not reach a log.
  auto kid = is_kid(request.new_kid) ? request.new_kid : "<malformed>";
  auto rotation = std::make_shared<Rotation>();
  const auto until = std::chrono::steady_clock::now() + call->services.options.rotation_timeout;
  call->engine().post(std::move(request), [self = call, kid, rotation](Result<SecretRotated> rotated) {
    audit(self->services, kid, rotated);
    self->services.rotating = false;
    if (!rotation->is_answered.exchange(true)) reply_rotated(*self, kid, rotated);
    rotation->ended.set_value();
  });
  // There is one rotation at a time, so at most one thread waits.
  call->services.readers.run([self = call, kid, rotation, until] {
    rotation->ended.get_future().wait_until(until);
    if (!rotation->is_answered.exchange(true)) reply_too_late(*self, kid);
  });
}

void list_kids(const CallPtr& call) {
  call->read(ListWaitpointKids{}, [](Call& self, const WaitpointKids& kids) {
    JsonWriter out;
    out.object().field("current_kid", kids.current_kid).key("verifying").array();
    for (const auto& each : kids.verifying) {
      out.object().field("kid", each.kid).field("expires_at_ms", each.expires_at_ms).end();
    }
    self.reply(200, out.end().end().take());
  });
}

// ---- what a resumed attempt was sent ----------------------------------------------------------------------

void observe_signals(const CallPtr& call) {
  const auto attempt = attempt_of(call);
  call->read(ObserveSignals{.execution_id = id_of(call), .attempt_index = attempt},
             [](Call& self, const std::vector<ResumeSignal>& signals) {
               JsonWriter out;
               out.object().key("signals").array();
               for (const auto& signal : signals) write_resume_signal(out, signal);
               self.reply(200, out.end().end().take());
             });
}

constexpr Route kRoutes[] = {
    {"GET", "/v1/executions/{id}/pending-waitpoints", "list_pending_waitpoints", Body::none, kSmallBody,
     list_waitpoints},
    {"GET", "/v1/executions/{id}/waitpoints/{waitpoint_id}/token", "read_waitpoint_token", Body::none,
     kSmallBody, read_token},
    {"POST", "/v1/executions/{id}/signal", "deliver_signal", Body::json, kMediumBody, deliver,
     Door::waitpoint_token},
    {"POST", "/v1/executions/{id}/approve", "deliver_approval_signal", Body::json, kSmallBody, approve},
    {"POST", "/v1/executions/{id}/waitpoints/{waitpoint_id}/close", "close_waitpoint", Body::json_if_any,
     kSmallBody, close_waitpoint},
    {"GET", "/v1/executions/{id}/suspension", "describe_suspension", Body::none, kSmallBody, read_suspension},
    {"GET", "/v1/suspensions", "list_suspensions", Body::none, kSmallBody, list_suspensions},
    {"POST", "/v1/executions/{id}/resume", "resume_execution", Body::json_if_any, kSmallBody, resume},
    {"GET", "/v1/executions/{id}/attempts/{idx}/signals", "observe_signals", Body::none, kSmallBody,
     observe_signals},
    {"POST", "/v1/admin/rotate-waitpoint-secret", "rotate_waitpoint_secret", Body::json, kSmallBody, rotate},
    {"GET", "/v1/admin/waitpoint-kids", "list_waitpoint_hmac_kids", Body::none, kSmallBody, list_kids},
};

}  // namespace

std::span<const Route> signal_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
