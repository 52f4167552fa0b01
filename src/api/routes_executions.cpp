// Executions: create, read, list, stop.
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

ExecutionId id_of(const CallPtr& call) {
  return path_id<ExecutionId>("execution_id", call->segments[0]);
}

// ---- creating ---------------------------------------------------------------------------------------------

void create(const CallPtr& call) {
  auto request = read_create(call->fields(), "default");
  request.trace_context = call->trace_context;
  call->run(std::move(request), [](Call& self, const Creation& creation) {
    JsonWriter out;
    out.object();
    if (creation.duplicate) {
      out.key("Duplicate").object().field("execution_id", creation.execution_id).end();
    } else {
      out.key("Created").object().field("execution_id", creation.execution_id);
      write_word(out, "public_state", creation.public_state);
      out.end();
    }
    self.reply(creation.duplicate ? 200 : 201, out.end().take());
  });
}

// An item that cannot be read does not affect the others.
void create_many(const CallPtr& call) {
  const auto fields = call->fields();
  const auto given = fields.array("executions", 0, kMaxCreates);
  CreateExecutions request;
  std::vector<std::string> refused(given.size());
  std::vector<std::size_t> places;
  std::size_t place = 0;
  for (const auto item : given) {
    try {
      request.executions.push_back(
          read_create(Fields(item, "executions[" + std::to_string(place) + "]"), "default"));
      request.executions.back().trace_context = call->trace_context;
      places.push_back(place);
    } catch (const Refusal& refusal) {
      refused[place] = error_body(refusal, call->request_id, true);
    } catch (const Error& error) {
      refused[place] = error_body(error, call->request_id, true);
    }
    ++place;
  }
  const auto answer = [refused, places](Call& self, const std::vector<Result<Creation>>& results) {
    std::vector<const Result<Creation>*> by_place(refused.size());
    for (std::size_t i = 0; i < places.size(); ++i) by_place[places[i]] = &results[i];
    JsonWriter out;
    out.object().key("results").array();
    for (std::size_t i = 0; i < refused.size(); ++i) {
      out.object();
      if (!by_place[i]) {
        out.key("error").raw(refused[i]);
      } else if (*by_place[i]) {
        write_creation(out.key("ok"), **by_place[i]);
      } else {
        out.key("error").raw(error_body(by_place[i]->error(), self.request_id, true));
      }
      out.end();
    }
    self.reply(200, out.end().end().take());
  };
  const bool all_refused = request.executions.empty() && given.size() > 0;
  if (all_refused) return answer(*call, {});
  call->run_long(std::move(request), answer);
}

// ---- reading ----------------------------------------------------------------------------------------------

void read(const CallPtr& call) {
  const auto id = id_of(call);
  call->missing = "execution not found: " + id.to_string();
  call->read(DescribeExecution{id}, [](Call& self, const ExecutionSnapshot& execution) {
    const auto as_text = [](const std::optional<std::int64_t>& at) {
      return at ? std::optional(std::to_string(*at)) : std::nullopt;
    };
    JsonWriter out;
    out.object()
        .field("execution_id", execution.execution_id)
        .field("namespace", execution.namespace_)
        .field("lane_id", execution.lane_id)
        .field("priority", execution.priority)
        .field("execution_kind", execution.execution_kind);
    write_state(out.key("state_vector"), execution.state);
    write_word(out, "public_state", execution.state.public_state);
    out.field("created_at", std::to_string(execution.created_at))
        .field_if("started_at", as_text(execution.started_at))
        .field_if("completed_at", as_text(execution.completed_at))
        .field("current_attempt_index", execution.current_attempt_index)
        .field("flow_id", execution.flow_id)
        .field("blocking_detail", execution.blocking_detail)
        .end();
    self.reply(200, out.take());
  });
}

void write_lease(JsonWriter& out, const std::optional<LeaseSnapshot>& lease) {
  if (!lease) {
    out.null();
    return;
  }
  out.object()
      .field("lease_id", lease->lease_id)
      .field("lease_epoch", lease->lease_epoch)
      .field("worker_id", lease->worker_id)
      .field("worker_instance_id", lease->worker_instance_id)
      .field("expires_at", lease->expires_at)
      .field("attempt_index", lease->attempt_index)
      .field("last_heartbeat_at", lease->last_heartbeat_at)
      .end();
}

// The complete view of an execution; the reference's route shows a part.
void read_snapshot(const CallPtr& call) {
  call->read(DescribeExecution{id_of(call)}, [](Call& self, const ExecutionSnapshot& execution) {
    JsonWriter out;
    out.object()
        .field("execution_id", execution.execution_id)
        .field("execution_kind", execution.execution_kind)
        .field("namespace", execution.namespace_)
        .field("lane_id", execution.lane_id)
        .field("flow_id", execution.flow_id);
    write_word(out, "public_state", execution.state.public_state);
    write_state(out.key("state_vector"), execution.state);
    write_text_or_null(out, "blocking_detail", execution.blocking_detail);
    out.field("priority", execution.priority)
        .field("tags", execution.tags)
        .field("attempt_id", execution.attempt_id)
        .field("current_attempt_index", execution.current_attempt_index)
        .field("attempts", execution.total_attempt_count)
        .field("retry_count", execution.retry_count)
        .field("replay_count", execution.replay_count)
        .field("reclaim_count", execution.lease_reclaim_count)
        .field("lease_epoch", execution.lease_epoch);
    write_lease(out.key("lease"), execution.lease);
    out.field("current_waitpoint_id", execution.current_waitpoint)
        .field("created_at", execution.created_at)
        .field("started_at", execution.started_at)
        .field("completed_at", execution.completed_at)
        .field("delay_until", execution.delay_until)
        .field("deadline_at", execution.deadline_at)
        .field("last_transition_at", execution.last_transition_at)
        .field("last_mutation_at", execution.last_mutation_at);
    write_text_or_null(out, "failure_reason", execution.failure_reason);
    write_text_or_null(out, "last_failure_message", execution.last_failure_message);
    write_text_or_null(out, "cancellation_reason", execution.cancellation_reason);
    write_text_or_null(out, "cancelled_by", execution.cancelled_by);
    out.field("progress_percent", execution.progress_percent);
    write_text_or_null(out, "progress_message", execution.progress_message);
    out.field("budget_ids", execution.budget_ids)
        .field("quota_policy_id", execution.quota_policy_id)
        .field("last_capability_mismatch_at", execution.last_capability_mismatch_at)
        .field("last_hmac_validation_failed_at", execution.last_hmac_validation_failed_at);
    self.reply(200, out.end().take());
  });
}

void read_input(const CallPtr& call) {
  call->read(ReadContext{id_of(call)}, [](Call& self, const ExecutionContext& context) {
    JsonWriter out;
    out.object().field("execution_kind", context.execution_kind);
    write_payload(out, "input", context.input);
    self.reply(
        200,
        out.field("payload_encoding", context.payload_encoding).field("tags", context.tags).end().take());
  });
}

void read_state(const CallPtr& call) {
  const auto id = id_of(call);
  call->missing = "execution not found: " + id.to_string();
  call->read(ReadState{id}, [](Call& self, PublicState state) {
    JsonWriter out;
    self.reply(200, out.value(enum_name(state)).take());
  });
}

void read_result(const CallPtr& call) {
  const auto id = id_of(call);
  call->missing = "execution result not found: " + id.to_string();
  call->read(ReadState{id}, [id](Call& self, PublicState state) {
    if (state != PublicState::completed) {
      return self.reply(Error{ErrorCode::execution_not_found, "",
                              "Only a completed execution has a result: wait for its end with GET …/wait."});
    }
    auto result = self.engine().call(ReadResult{id});
    if (!result) return self.reply(result.error());
    self.reply(http::Response{.content_type = "application/octet-stream", .body = result->value_or("")});
  });
}

void list_attempts(const CallPtr& call) {
  call->read(ListAttempts{id_of(call)}, [](Call& self, const std::vector<AttemptSnapshot>& attempts) {
    JsonWriter out;
    out.object().key("attempts").array();
    for (const auto& attempt : attempts) write_attempt(out, attempt);
    self.reply(200, out.end().end().take());
  });
}

// Uses the words of the state vector where there are any.
std::string_view reason_code(WaitingFor waiting_for) {
  switch (waiting_for) {
    case WaitingFor::dependency:
      return "waiting_for_children";
    case WaitingFor::delay:
      return "waiting_for_delay";
    case WaitingFor::retry_backoff:
      return "waiting_for_retry_backoff";
    case WaitingFor::resume_delay:
      return "waiting_for_resume_delay";
    case WaitingFor::signal:
      return "waiting_for_signal";
    case WaitingFor::budget:
      return "waiting_for_budget";
    case WaitingFor::quota:
      return "waiting_for_quota";
    case WaitingFor::lane:
      return "blocked_by_lane_state";
    case WaitingFor::operator_:
      return "paused_by_operator";
    case WaitingFor::grant:
      return "reserved_by_grant";
    case WaitingFor::capability:
      return "waiting_for_capable_worker";
    case WaitingFor::worker:
      break;
  }
  return "waiting_for_worker";
}

void explain(const CallPtr& call) {
  call->read(ExplainWaiting{id_of(call)}, [](Call& self, const WaitingExplanation& why) {
    JsonWriter out;
    out.object();
    write_word(out, "public_state", why.public_state);
    out.key("reasons").array();
    for (const auto& reason : why.reasons) {
      out.object().field("code", reason_code(reason.waiting_for));
      write_text_or_null(out, "subject", reason.subject);
      out.field("detail", reason.detail).field("until", reason.until).end();
    }
    out.end().key("nearest_workers").array();
    for (const auto& worker : why.nearest_workers) {
      out.object()
          .field("worker_instance_id", worker.worker_instance_id)
          .field("missing_capabilities", worker.missing_capabilities)
          .end();
    }
    self.reply(200, out.end().end().take());
  });
}

// Answers when the execution has ended, or when the time is up.
void await_end(const CallPtr& call) {
  const auto wait_ms = call->query.number<std::int64_t>("wait_ms").value_or(0);
  call->exchange->on_abandoned = [call] { call->reply(http::Response{.status = 204}); };
  call->run(AwaitExecution{.execution_id = id_of(call), .wait_ms = wait_ms},
            [](Call& self, const ExecutionEnd& end) {
              if (!end.ended) return self.reply(http::Response{.status = 204});
              JsonWriter out;
              out.object().field("execution_id", end.execution_id);
              write_word(out, "public_state", end.public_state);
              write_payload(out, "result", end.result);
              write_text_or_null(out, "failure_reason", end.failure_reason);
              self.reply(200, out.end().take());
            });
}

// ---- listing ----------------------------------------------------------------------------------------------

template <class Cursor>
void write_cursor(JsonWriter& out, const std::optional<Cursor>& cursor) {
  out.field("next_cursor", cursor);
}

void list_partition(const CallPtr& call) {
  constexpr std::uint64_t most = 1000;
  const auto& query = call->query;
  const auto limit = std::min(query.number<std::uint64_t>("limit").value_or(50), most);
  const auto cursor = query.id<ExecutionId>("cursor");
  call->read(ListPartition{.partition = *query.number<std::uint16_t>("partition"),
                           .cursor = cursor ? cursor->to_string() : "",
                           .limit = static_cast<std::uint32_t>(limit)},
             [](Call& self, const PartitionPage& page) {
               JsonWriter out;
               out.object().field("executions", page.executions);
               write_cursor(out, page.next_cursor);
               self.reply(200, out.end().take());
             });
}

void list(const CallPtr& call) {
  const auto& query = call->query;
  if (query.has("partition")) return list_partition(call);
  ListExecutions request;
  request.filter = read_filter(query);
  if (const auto order = query.text("order")) {
    const auto known = enum_from_name<ListOrder>(*order);
    if (!known) refuse_input("query parameter order must be newest or oldest", kOrderAdvice);
    request.order = *known;
  }
  request.limit = read_limit(query, 50, 1, 1000);
  request.cursor = query.text("cursor").value_or("");
  call->read(std::move(request), [](Call& self, const ExecutionPage& page) {
    JsonWriter out;
    out.object().key("executions").array();
    for (const auto& summary : page.executions) write_summary(out, summary);
    write_cursor(out.end(), page.next_cursor);
    self.reply(200, out.end().take());
  });
}

// ---- changing ---------------------------------------------------------------------------------------------

void cancel(const CallPtr& call) {
  const auto fields = call->fields();
  CancelExecution request;
  request.execution_id = fields.maybe_id<ExecutionId>("execution_id").value_or(ExecutionId{});
  const bool named = fields.has("execution_id");
  request.reason = fields.text("reason");
  if (const auto source = fields.find_any("source")) {
    request.source = fields.text("source");
    if (request.source.empty())
      refuse_input("source must not be empty", "Say who cancels it, or leave source out.");
  }
  request.fence = {.lease_id = fields.maybe_id<LeaseId>("lease_id"),
                   .lease_epoch = fields.maybe_number<std::int64_t>("lease_epoch"),
                   .attempt_id = fields.maybe_id<AttemptId>("attempt_id")};
  fields.maybe_number<std::int64_t>("now");
  const auto id = id_of(call);
  if (named && request.execution_id != id)
    refuse_input("path execution_id does not match body execution_id", kPathAdvice);
  request.execution_id = id;
  call->run(std::move(request), [](Call& self, const Cancelled& cancelled) {
    JsonWriter out;
    out.object().key("Cancelled").object().field("execution_id", cancelled.execution_id);
    write_word(out, "public_state", cancelled.public_state);
    self.reply(200, out.end().end().take());
  });
}

void change_priority(const CallPtr& call) {
  const auto priority = call->fields().number<std::int32_t>("new_priority");
  call->run(ChangePriority{.execution_id = id_of(call), .new_priority = priority},
            [](Call& self, const PriorityChanged& changed) {
              JsonWriter out;
              out.object().key("Changed").object().field("execution_id", changed.execution_id).end().end();
              self.reply(200, out.take());
            });
}

void replay(const CallPtr& call) {
  call->run(ReplayExecution{.execution_id = id_of(call)}, [](Call& self, const Replayed& replayed) {
    JsonWriter out;
    out.object().key("Replayed").object();
    write_word(out, "public_state", replayed.public_state);
    self.reply(200, out.end().end().take());
  });
}

void revoke_lease(const CallPtr& call) {
  call->run(RevokeLease{.execution_id = id_of(call)}, [](Call& self, const Revocation& revocation) {
    JsonWriter out;
    out.object();
    if (revocation.already_satisfied) {
      out.key("AlreadySatisfied").object();
      write_word(out, "reason", *revocation.already_satisfied);
    } else {
      out.key("Revoked")
          .object()
          .field("lease_id", revocation.lease_id)
          .field("lease_epoch", std::to_string(revocation.lease_epoch));
    }
    self.reply(200, out.end().end().take());
  });
}

void reply_tags(Call& self, const Tags& tags) {
  JsonWriter out;
  self.reply(200, out.object().field("tags", tags).end().take());
}

void read_tags(const CallPtr& call) {
  call->read(ReadTags{id_of(call)}, reply_tags);
}

void set_tags(const CallPtr& call) {
  auto changes = read_tag_changes(call->fields());
  call->run(SetTags{.execution_id = id_of(call), .tags = std::move(changes)},
            [](Call& self, const TagsSet& set) { reply_tags(self, set.tags); });
}

constexpr Route kRoutes[] = {
    {"POST", "/v1/executions", "create_execution", Body::json, kLargeBody, create},
    {"GET", "/v1/executions", "list_executions", Body::none, kLargeBody, list},
    {"POST", "/v1/executions/bulk", "create_executions", Body::json, kBulkBody, create_many},
    {"GET", "/v1/executions/{id}", "read_execution_info", Body::none, kSmallBody, read},
    {"GET", "/v1/executions/{id}/state", "read_execution_state", Body::none, kSmallBody, read_state},
    {"GET", "/v1/executions/{id}/result", "get_execution_result", Body::none, kSmallBody, read_result},
    {"POST", "/v1/executions/{id}/cancel", "cancel_execution", Body::json, kSmallBody, cancel},
    {"PUT", "/v1/executions/{id}/priority", "change_priority", Body::json, kSmallBody, change_priority},
    {"POST", "/v1/executions/{id}/replay", "replay_execution", Body::ignored, kSmallBody, replay},
    {"POST", "/v1/executions/{id}/revoke-lease", "revoke_lease", Body::ignored, kSmallBody, revoke_lease},
    {"GET", "/v1/executions/{id}/snapshot", "describe_execution", Body::none, kSmallBody, read_snapshot},
    {"GET", "/v1/executions/{id}/input", "read_context", Body::none, kSmallBody, read_input},
    {"GET", "/v1/executions/{id}/attempts", "list_attempts", Body::none, kSmallBody, list_attempts},
    {"GET", "/v1/executions/{id}/why", "explain_waiting", Body::none, kSmallBody, explain},
    {"GET", "/v1/executions/{id}/wait", "await_execution", Body::none, kSmallBody, await_end},
    {"GET", "/v1/executions/{id}/tags", "read_tags", Body::none, kSmallBody, read_tags},
    {"PUT", "/v1/executions/{id}/tags", "set_tags", Body::json, kSmallBody, set_tags},
};

}  // namespace

std::span<const Route> execution_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
