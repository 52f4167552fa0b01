#include "api/shapes.h"

#include "api/call.h"
#include "model/policy_json.h"

namespace flowfabric::api {

// ---- read -------------------------------------------------------------------------------------------------

Fields::Payload read_payload(const Fields& fields, std::string_view array_name, std::string_view json_name,
                             std::string_view base64_name) {
  auto payload = fields.payload(json_name, base64_name);
  const auto array = fields.find(array_name);
  if (!array) return payload;
  if (payload.bytes) {
    refuse_shape("Give one of " + fields.named(array_name) + ", " + fields.named(json_name) + " and " +
                 fields.named(base64_name) + ".");
  }
  return {fields.byte_array(array_name, *array), false};
}

CreateExecution read_create(const Fields& fields, std::string_view default_namespace) {
  CreateExecution request;
  request.execution_id = fields.maybe_id<ExecutionId>("execution_id");
  request.namespace_ = fields.text_or("namespace", default_namespace);
  request.lane_id = fields.lane("lane_id", "default");
  request.execution_kind = fields.text("execution_kind");
  auto input = read_payload(fields, "input_payload", "input", "input_base64");
  request.input = std::move(input.bytes).value_or("");
  request.payload_encoding = fields.text_or("payload_encoding", input.is_json ? "json" : "");
  request.priority = fields.number_or<std::int32_t>("priority", 0);
  request.creator_identity = fields.text_or("creator_identity", "");
  request.idempotency_key = fields.text_or("idempotency_key", "");
  request.tags = fields.tags();
  if (const auto policy = fields.find("policy")) {
    if (policy->kind() != JsonView::Kind::object)
      refuse_shape(fields.named("policy") + " must be an object.");
    request.policy = unwrap(policy_from_json(policy->compact()));
  }
  request.delay_until = fields.maybe_number<std::int64_t>("delay_until");
  request.execution_deadline_at = fields.maybe_number<std::int64_t>("execution_deadline_at");
  // Existing clients send these. They are ignored: the id's tag and the store's clock decide.
  fields.maybe_number<std::uint16_t>("partition_id");
  fields.maybe_number<std::int64_t>("now");
  return request;
}

LeaseFence read_fence(const Fields& fields) {
  return {.lease_id = fields.id<LeaseId>("lease_id"),
          .lease_epoch = fields.number<std::int64_t>("lease_epoch"),
          .attempt_id = fields.id<AttemptId>("attempt_id")};
}

namespace {

constexpr std::array kFilterWords{"lane", "state",         "namespace",      "kind",
                                  "flow", "created_after", "created_before", "tag"};

}  // namespace

ExecutionFilter read_filter(const Query& query) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const auto& [name, value] : query.parameters()) {
    if (std::find(kFilterWords.begin(), kFilterWords.end(), name) != kFilterWords.end()) {
      words.emplace_back(name, value);
    }
  }
  return unwrap(parse_filter(words));
}

ExecutionFilter read_filter(const Fields& fields) {
  std::vector<std::pair<std::string, std::string>> words;
  const auto add = [&](std::string_view name, JsonView value) {
    const bool is_text = value.kind() == JsonView::Kind::string || value.kind() == JsonView::Kind::number;
    if (!is_text) refuse_shape(fields.named(name) + " must be a string, a number, or a list of them.");
    words.emplace_back(name, value.text());
  };
  for (const std::string_view name : kFilterWords) {
    const auto value = fields.find(name);
    if (!value) continue;
    if (value->kind() == JsonView::Kind::array) {
      for (const auto item : *value) add(name, item);
    } else {
      add(name, *value);
    }
  }
  for (const auto& [key, value] : fields.text_map("tags")) words.emplace_back("tag", key + "=" + value);
  return unwrap(parse_filter(words));
}

std::map<std::string, std::optional<std::string>> read_tag_changes(const Fields& fields) {
  std::map<std::string, std::optional<std::string>> changes;
  for (const auto member : fields.as_object("tags", fields.require("tags"))) {
    const auto named = "tags." + std::string(member.key());
    const bool is_text = member.kind() == JsonView::Kind::string;
    if (!is_text && !member.is_null()) refuse_shape(fields.named(named) + " must be a string.");
    const auto [_, is_new] =
        changes.emplace(member.key(), is_text ? std::optional(std::string(member.text())) : std::nullopt);
    if (!is_new) refuse_shape(fields.named(named) + " is there twice.");
  }
  return changes;
}

std::uint32_t read_limit(const Query& query, std::uint32_t otherwise, std::uint32_t least,
                         std::uint32_t most) {
  const auto limit = query.number<std::uint32_t>("limit").value_or(otherwise);
  if (limit < least || limit > most) {
    refuse_input(
        "query parameter limit must be between " + std::to_string(least) + " and " + std::to_string(most),
        "Ask for fewer, and go on with the cursor.");
  }
  return limit;
}

// ---- written ----------------------------------------------------------------------------------------------

void write_text_or_null(JsonWriter& out, std::string_view name, const std::string& text) {
  if (text.empty())
    out.key(name).null();
  else
    out.field(name, text);
}

void write_state(JsonWriter& out, const StateVector& state) {
  out.object();
  for_each_field(state, [&](std::string_view name, const auto& value) { write_word(out, name, value); });
  out.end();
}

void write_summary(JsonWriter& out, const ExecutionSummary& summary) {
  out.object()
      .field("execution_id", summary.execution_id)
      .field("execution_kind", summary.execution_kind)
      .field("namespace", summary.namespace_)
      .field("lane_id", summary.lane_id);
  write_word(out, "public_state", summary.public_state);
  out.field("priority", summary.priority)
      .field("flow_id", summary.flow_id)
      .field("created_at", summary.created_at)
      .field("started_at", summary.started_at)
      .field("completed_at", summary.completed_at)
      .field("attempts", summary.attempts)
      .field("tags", summary.tags)
      .end();
}

void write_attempt(JsonWriter& out, const AttemptSnapshot& attempt) {
  out.object().field("attempt_index", attempt.attempt_index).field("attempt_id", attempt.attempt_id);
  write_word(out, "attempt_type", attempt.attempt_type);
  write_word(out, "attempt_state", attempt.attempt_state);
  out.field("worker_id", attempt.worker_id)
      .field("worker_instance_id", attempt.worker_instance_id)
      .field("lease_epoch", attempt.lease_epoch)
      .field("started_at", attempt.started_at)
      .field("ended_at", attempt.ended_at)
      .field("previous_attempt_index", attempt.previous_attempt_index)
      .field("fallback_tier", attempt.fallback_tier);
  write_text_or_null(out, "reason", attempt.reason);
  write_text_or_null(out, "requested_by", attempt.requested_by);
  write_text_or_null(out, "failure_reason", attempt.failure_reason);
  write_text_or_null(out, "failure_category", attempt.failure_category);
  write_payload(out, "result", attempt.result);
  out.end();
}

void write_creation(JsonWriter& out, const Creation& creation) {
  out.object().field("created", !creation.duplicate).field("execution_id", creation.execution_id);
  write_word(out, "public_state", creation.public_state);
  out.end();
}

void write_resume_signal(JsonWriter& out, const ResumeSignal& signal,
                         const std::optional<SignalEffect>& effect) {
  out.object()
      .field("signal_id", signal.signal_id)
      .field("signal_name", signal.signal_name)
      .field("signal_category", signal.signal_category)
      .field("waitpoint_id", signal.waitpoint_id)
      .field("waitpoint_key", signal.waitpoint_key)
      .field("source_type", signal.source_type)
      .field("source_identity", signal.source_identity);
  write_text_or_null(out, "correlation_id", signal.correlation_id);
  write_payload(out, "payload", signal.payload.value_or(""));
  out.field("payload_encoding", signal.payload_encoding).field("accepted_at", signal.accepted_at);
  if (effect) write_word(out, "observed_effect", *effect);
  out.end();
}

void write_waitpoint(JsonWriter& out, const WaitpointView& waitpoint) {
  out.object().field("waitpoint_id", waitpoint.waitpoint_id).field("waitpoint_key", waitpoint.waitpoint_key);
  write_word(out, "state", waitpoint.state);
  out.field("required_signal_names", waitpoint.required_signal_names)
      .field("created_at", waitpoint.created_at)
      .field_if("activated_at", waitpoint.activated_at)
      .field_if("expires_at", waitpoint.expires_at)
      .field("execution_id", waitpoint.execution_id)
      .field("token_kid", waitpoint.token_kid)
      .field("token_fingerprint", waitpoint.token_fingerprint)
      .end();
}

void write_counts(JsonWriter& out, const std::map<PublicState, std::int64_t>& counts) {
  out.object();
  for (const auto& [state, count] : counts) out.field(enum_name(state), count);
  out.end();
}

void write_budget(JsonWriter& out, const BudgetStatus& budget) {
  const auto as_text = [](const std::optional<std::int64_t>& at) {
    return at ? std::optional(std::to_string(*at)) : std::nullopt;
  };
  out.object().field("budget_id", budget.budget_id);
  write_word(out, "scope_type", budget.scope_type);
  out.field("scope_id", budget.scope_id);
  write_word(out, "enforcement_mode", budget.enforcement_mode);
  write_word(out, "on_hard_limit", budget.on_hard_limit);
  write_word(out, "on_soft_limit", budget.on_soft_limit);
  out.field("usage", budget.usage)
      .field("hard_limits", budget.hard_limits)
      .field("soft_limits", budget.soft_limits)
      .field("reserve_per_claim", budget.reserve_per_claim)
      .field("reserved", budget.reserved)
      .field("breach_count", budget.breach_count)
      .field("soft_breach_count", budget.soft_breach_count)
      .field("last_breach_at", as_text(budget.last_breach_at))
      .field("last_breach_dim", budget.last_breach_dim)
      .field("reset_interval_ms", budget.reset_interval_ms)
      .field("next_reset_at", as_text(budget.next_reset_at))
      .field("created_at", as_text(budget.created_at))
      .end();
}

void write_usage(JsonWriter& out, const UsageReport& report) {
  write_word(out, "outcome", report.outcome);
  if (report.outcome != UsageOutcome::soft_breach && report.outcome != UsageOutcome::hard_breach) return;
  out.field("dimension", report.dimension)
      .field("current_usage", report.current_usage)
      .field(report.outcome == UsageOutcome::hard_breach ? "hard_limit" : "soft_limit", report.limit);
}

void write_grant(JsonWriter& out, const ClaimGrant& grant) {
  out.field("execution_id", grant.execution_id)
      .field("partition_key", grant.partition_key)
      .field("grant_key", grant.grant_key)
      .field("expires_at_ms", grant.expires_at);
}

void write_store_report(JsonWriter& out, const StoreReport& report) {
  out.object()
      .field("executions", report.executions)
      .field("records", report.records)
      .field("found", report.found)
      .field("repaired", report.repaired)
      .key("violations")
      .array();
  for (const auto& each : report.violations) {
    out.object().field("where", each.where).field("what", each.what).field("repaired", each.repaired).end();
  }
  out.end().end();
}

}  // namespace flowfabric::api
