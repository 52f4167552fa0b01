// Operators' calls on executions, one by one or many at once.
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

ExecutionId id_of(const CallPtr& call) {
  return path_id<ExecutionId>("execution_id", call->segments[0]);
}

void reply_change(Call& self, const EligibilityChange& change) {
  JsonWriter out;
  out.object().field("execution_id", change.execution_id);
  write_word(out, "public_state", change.public_state);
  self.reply(200, out.end().take());
}

void hold(const CallPtr& call) {
  auto reason = call->has_body() ? call->fields().text_or("reason", "") : "";
  call->run(HoldExecution{.execution_id = id_of(call), .reason = std::move(reason)}, reply_change);
}

void release(const CallPtr& call) {
  call->run(ReleaseExecution{id_of(call)}, reply_change);
}

BlockingReason reason_of(const Fields& fields, std::string_view key) {
  const auto reason = fields.maybe_word<BlockingReason>(key);
  if (!reason) refuse_shape(fields.named(key) + " is missing.");
  return *reason;
}

void block(const CallPtr& call) {
  const auto fields = call->fields();
  call->run(BlockExecution{.execution_id = id_of(call),
                           .reason = reason_of(fields, "reason"),
                           .detail = fields.text_or("detail", "")},
            reply_change);
}

void unblock(const CallPtr& call) {
  call->run(UnblockExecution{.execution_id = id_of(call),
                             .expected_reason = reason_of(call->fields(), "expected_reason")},
            reply_change);
}

// ---- members of flows -------------------------------------------------------------------------------------

void evaluate_eligibility(const CallPtr& call) {
  const auto id = id_of(call);
  call->read(EvaluateFlowEligibility{id}, [id](Call& self, FlowEligibility eligibility) {
    if (eligibility == FlowEligibility::not_found) {
      return self.reply(
          Error{ErrorCode::execution_not_found, id.to_string(),
                "No such execution: check the id; it may have been removed after its retention."});
    }
    JsonWriter out;
    out.object().key("Status").object();
    write_word(out, "status", eligibility);
    self.reply(200, out.end().end().take());
  });
}

void promote(const CallPtr& call) {
  call->run(PromoteBlocked{id_of(call)}, reply_change);
}

// ---- the whole store --------------------------------------------------------------------------------------

// The figures of a first page. No execution is counted for it: the store maintains the numbers.
void overview(const CallPtr& call) {
  call->read(ReadFigures{}, [](Call& self, const StoreFigures& figures) {
    std::map<PublicState, std::int64_t> counts;
    for (const auto& [lane, by_state] : figures.executions) {
      for (const auto& [state, count] : by_state) counts[state] += count;
    }
    std::uint64_t workers = 0;
    for (const auto& [name, alive] : figures.workers) workers += alive;
    const auto oldest = unwrap(self.engine().call(ListExecutions{
        .filter = {.states = {PublicState::waiting}}, .order = ListOrder::oldest, .limit = 1}));
    const auto stats = self.engine().stats();
    JsonWriter out;
    write_counts(out.object().key("counts"), counts);
    out.field("lanes", figures.lanes).field("workers", workers).key("oldest_waiting_at");
    if (oldest.executions.empty())
      out.null();
    else
      out.value(oldest.executions[0].created_at);
    out.key("rates")
        .object()
        .field("submitted_per_second", stats.submitted_per_second)
        .field("completed_per_second", stats.completed_per_second)
        .field("failed_per_second", stats.failed_per_second)
        .end();
    self.reply(200, out.end().take());
  });
}

void reply_report(Call& self, const StoreReport& report) {
  JsonWriter out;
  write_store_report(out, report);
  self.reply(200, out.take());
}

// Reads every record, which takes long, so it runs on a thread that serves nobody else.
void check_store(const CallPtr& call) {
  const bool repair = call->has_body() && call->fields().flag_or("repair", false);
  if (call->services.checking.exchange(true)) {
    throw Refusal{.status = 429,
                  .code = "resource_exhausted",
                  .error = "check_store: one check at a time (max 1)",
                  .detail = "Another check is running in this server: repeat the call when it has ended.",
                  .retryable = true};
  }
  call->services.readers.run([call, repair] {
    const auto report = call->engine().call(CheckStore{.repair = repair});
    call->services.checking = false;
    if (!report) return call->reply(report.error());
    call->guard([&] { reply_report(*call, *report); });
  });
}

// ---- many at once -----------------------------------------------------------------------------------------

void write_operation(JsonWriter& out, const BulkOperation& operation) {
  out.object().field("operation_id", operation.operation_id);
  write_word(out, "action", operation.action);
  write_word(out, "state", operation.state);
  out.field("matched", operation.matched).field("done", operation.done).field("failed", operation.failed);
  write_text_or_null(out, "last_error", operation.last_error);
  out.field("created_at", operation.created_at).field("ended_at", operation.ended_at).end();
}

void reply_operation(Call& self, const BulkOperation& operation) {
  JsonWriter out;
  write_operation(out, operation);
  self.reply(200, out.take());
}

void start_operation(const CallPtr& call) {
  const auto fields = call->fields();
  StartBulkOperation request;
  request.operation_id = fields.maybe_id<OperationId>("operation_id");
  const auto action = fields.maybe_word<BulkAction>("action");
  if (!action) refuse_shape("action is missing.");
  request.action = *action;
  request.filter = read_filter(fields.object("filter"));
  request.reason = fields.text_or("reason", "");
  if (request.action == BulkAction::change_priority) {
    request.new_priority = fields.number<std::int32_t>("new_priority");
  }
  request.rate_per_second = fields.maybe_number<std::uint32_t>("rate_per_second");
  call->run(std::move(request), [](Call& self, const BulkOperation& operation) {
    JsonWriter out;
    self.reply(202, out.object().field("operation_id", operation.operation_id).end().take());
  });
}

OperationId operation_of(const CallPtr& call) {
  return path_id<OperationId>("operation_id", call->segments[0]);
}

void read_operation(const CallPtr& call) {
  call->read(ReadBulkOperation{operation_of(call)}, reply_operation);
}

void cancel_operation(const CallPtr& call) {
  call->run(CancelBulkOperation{operation_of(call)}, reply_operation);
}

constexpr Route kRoutes[] = {
    {"POST", "/v1/executions/{id}/hold", "hold_execution", Body::json_if_any, kSmallBody, hold},
    {"POST", "/v1/executions/{id}/release", "release_execution", Body::ignored, kSmallBody, release},
    {"POST", "/v1/executions/{id}/block", "block_execution", Body::json, kSmallBody, block},
    {"POST", "/v1/executions/{id}/unblock", "unblock_execution", Body::json, kSmallBody, unblock},
    {"GET", "/v1/executions/{id}/flow-eligibility", "evaluate_flow_eligibility", Body::none, kSmallBody,
     evaluate_eligibility},
    {"POST", "/v1/executions/{id}/promote", "promote_blocked_to_eligible", Body::ignored, kSmallBody,
     promote},
    {"GET", "/v1/overview", "read_overview", Body::none, kSmallBody, overview},
    {"POST", "/v1/admin/check", "check_store", Body::json_if_any, kSmallBody, check_store},
    {"POST", "/v1/operations", "start_bulk_operation", Body::json, kSmallBody, start_operation},
    {"GET", "/v1/operations/{id}", "read_bulk_operation", Body::none, kSmallBody, read_operation},
    {"DELETE", "/v1/operations/{id}", "cancel_bulk_operation", Body::ignored, kSmallBody, cancel_operation},
};

}  // namespace

std::span<const Route> operator_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
