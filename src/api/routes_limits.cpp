// Budgets and quotas.
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

BudgetId budget_of(const CallPtr& call) {
  return path_id<BudgetId>("budget_id", call->segments[0]);
}

QuotaPolicyId quota_of(const CallPtr& call) {
  return path_id<QuotaPolicyId>("quota_policy_id", call->segments[0]);
}

// `{"Created":{"budget_id":…}}`
template <class Id>
void reply_creation(Call& self, bool created, std::string_view name, const Id& id) {
  JsonWriter out;
  out.object().key(created ? "Created" : "AlreadySatisfied").object().field(name, id).end().end();
  self.reply(created ? 201 : 200, out.take());
}

void reply_released(Call& self) {
  JsonWriter out;
  self.reply(200, out.object().field("outcome", "released").end().take());
}

void create_budget(const CallPtr& call) {
  const auto fields = call->fields();
  CreateBudget request{.budget_id = fields.id<BudgetId>("budget_id"),
                       .scope_type = fields.text("scope_type"),
                       .scope_id = fields.text("scope_id"),
                       .enforcement_mode = fields.text_or("enforcement_mode", "strict"),
                       .on_hard_limit = fields.text_or("on_hard_limit", "fail"),
                       .on_soft_limit = fields.text_or("on_soft_limit", "warn"),
                       .reset_interval_ms = fields.number_or<std::uint64_t>("reset_interval_ms", 0),
                       .dimensions = fields.texts("dimensions"),
                       .hard_limits = fields.numbers<std::uint64_t>("hard_limits"),
                       .soft_limits = fields.numbers<std::uint64_t>("soft_limits"),
                       .reserve_per_claim = fields.number_map<std::uint64_t>("reserve_per_claim")};
  fields.require("dimensions");
  fields.maybe_number<std::int64_t>("now");
  call->run(std::move(request), [](Call& self, const BudgetCreation& made) {
    reply_creation(self, made.created, "budget_id", made.budget_id);
  });
}

void reply_budget(Call& self, const BudgetStatus& budget) {
  JsonWriter out;
  write_budget(out, budget);
  self.reply(200, out.take());
}

void read_budget(const CallPtr& call) {
  call->read(ReadBudget{budget_of(call)}, reply_budget);
}

void list_budgets(const CallPtr& call) {
  call->read(ListBudgets{.cursor = call->query.id<BudgetId>("cursor"),
                         .limit = read_limit(call->query, 100, 1, 1000)},
             [](Call& self, const BudgetPage& page) {
               JsonWriter out;
               out.object().key("budgets").array();
               for (const auto& budget : page.budgets) write_budget(out, budget);
               self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
             });
}

void report_usage(const CallPtr& call) {
  const auto fields = call->fields();
  fields.require("dimensions");
  ReportUsage request{.budget_id = {},
                      .dedup_key = fields.text_or("dedup_key", ""),
                      .execution_id = fields.maybe_id<ExecutionId>("execution_id")};
  for (const auto& [name, delta] : fields.number_map<std::uint64_t>("dimensions")) {
    request.dimensions.push_back(name);
    request.deltas.push_back(delta);
  }
  fields.maybe_number<std::int64_t>("now");
  request.budget_id = budget_of(call);
  call->run(std::move(request), [](Call& self, const UsageReport& report) {
    JsonWriter out;
    if (report.outcome == UsageOutcome::ok || report.outcome == UsageOutcome::already_applied) {
      out.value(to_camel_case(enum_name(report.outcome)));
    } else {
      const bool hard = report.outcome == UsageOutcome::hard_breach;
      out.object()
          .key(hard ? "HardBreach" : "SoftBreach")
          .object()
          .field("dimension", report.dimension)
          .field("current_usage", report.current_usage)
          .field(hard ? "hard_limit" : "soft_limit", report.limit)
          .end()
          .end();
    }
    self.reply(200, out.take());
  });
}

// Records an execution's spending, so that it can be released.
void record_spend(const CallPtr& call) {
  const auto fields = call->fields();
  fields.require("dimensions");
  RecordSpend request{.budget_id = {},
                      .execution_id = fields.id<ExecutionId>("execution_id"),
                      .deltas = fields.number_map<std::uint64_t>("dimensions"),
                      .idempotency_key = fields.text_or("idempotency_key", "")};
  request.budget_id = budget_of(call);
  call->run(std::move(request), [](Call& self, const UsageReport& report) {
    JsonWriter out;
    out.object();
    write_usage(out, report);
    self.reply(200, out.end().take());
  });
}

void release_budget(const CallPtr& call) {
  ReleaseBudget request{.budget_id = {}, .execution_id = call->fields().id<ExecutionId>("execution_id")};
  request.budget_id = budget_of(call);
  call->run(std::move(request), [](Call& self, const BudgetReleased&) { reply_released(self); });
}

void reset_budget(const CallPtr& call) {
  call->run(ResetBudget{budget_of(call)}, [](Call& self, const BudgetReset& reset) {
    JsonWriter out;
    out.object().key("Reset").object().field("next_reset_at", reset.next_reset_at).end().end();
    self.reply(200, out.take());
  });
}

void set_limits(const CallPtr& call) {
  const auto fields = call->fields();
  call->run(SetBudgetLimits{.budget_id = budget_of(call),
                            .hard_limits = fields.number_map<std::uint64_t>("hard_limits"),
                            .soft_limits = fields.number_map<std::uint64_t>("soft_limits")},
            reply_budget);
}

void delete_budget(const CallPtr& call) {
  call->run(DeleteBudget{budget_of(call)},
            [](Call& self, const BudgetDeleted&) { self.reply(http::Response{.status = 204}); });
}

void list_spending(const CallPtr& call) {
  call->read(
      ListSpending{.budget_id = budget_of(call),
                   .cursor = call->query.id<ExecutionId>("cursor"),
                   .limit = read_limit(call->query, 100, 1, 1000)},
      [](Call& self, const SpendingPage& page) {
        JsonWriter out;
        out.object().key("spendings").array();
        for (const auto& spending : page.spendings) {
          out.object().field("execution_id", spending.execution_id).field("spent", spending.spent).end();
        }
        self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
      });
}

void list_breaches(const CallPtr& call) {
  call->read(ListBreaches{budget_of(call)}, [](Call& self, const BreachHistory& history) {
    JsonWriter out;
    out.object().key("breaches").array();
    for (const auto& breach : history.breaches) {
      out.object().field("number", breach.number).field("at", breach.at);
      write_word(out, "kind", breach.kind);
      out.field("dimension", breach.dimension)
          .field("reported", breach.reported)
          .field("usage", breach.usage)
          .field("limit", breach.limit)
          .field("execution_id", breach.execution_id)
          .end();
    }
    self.reply(200, out.end().end().take());
  });
}

// Replies with the attachment of a budget or a quota policy.
void reply_attachment(Call& self, const Attachment& attachment) {
  JsonWriter out;
  out.object();
  write_word(out, "scope_type", attachment.scope_type);
  self.reply(200, out.field("scope_id", attachment.scope_id).end().take());
}

template <class Request>
void change_attachment_of_budget(const CallPtr& call) {
  const auto fields = call->fields();
  call->run(Request{.budget_id = budget_of(call),
                    .scope_type = fields.text("scope_type"),
                    .scope_id = fields.text("scope_id")},
            reply_attachment);
}

template <class Request>
void change_attachment_of_quota(const CallPtr& call) {
  const auto fields = call->fields();
  call->run(Request{.quota_policy_id = quota_of(call),
                    .scope_type = fields.text("scope_type"),
                    .scope_id = fields.text("scope_id")},
            reply_attachment);
}

// ---- quotas -----------------------------------------------------------------------------------------------

void create_quota(const CallPtr& call) {
  const auto fields = call->fields();
  CreateQuotaPolicy request{
      .quota_policy_id = fields.id<QuotaPolicyId>("quota_policy_id"),
      .window_seconds = fields.number_or<std::uint64_t>("window_seconds", kDefaultWindowSeconds),
      .max_requests_per_window = fields.number_or<std::uint64_t>("max_requests_per_window", 0),
      .max_concurrent = fields.number_or<std::uint64_t>("max_concurrent", 0),
      .jitter_ms = fields.number_or<std::uint64_t>("jitter_ms", 0)};
  fields.maybe_number<std::int64_t>("now");
  call->run(std::move(request), [](Call& self, const QuotaCreation& made) {
    reply_creation(self, made.created, "quota_policy_id", made.quota_policy_id);
  });
}

void write_quota(JsonWriter& out, const QuotaStatus& quota) {
  out.object()
      .field("quota_policy_id", quota.quota_policy_id)
      .field("window_seconds", quota.window_seconds)
      .field("max_requests_per_window", quota.max_requests_per_window)
      .field("max_concurrent", quota.max_concurrent)
      .field("jitter_ms", quota.jitter_ms)
      .field("admitted_in_window", quota.admitted_in_window)
      .field("active", quota.active)
      .field("created_at", quota.created_at)
      .end();
}

void read_quota(const CallPtr& call) {
  call->read(ReadQuotaPolicy{quota_of(call)}, [](Call& self, const QuotaStatus& quota) {
    JsonWriter out;
    write_quota(out, quota);
    self.reply(200, out.take());
  });
}

void list_quotas(const CallPtr& call) {
  call->read(ListQuotaPolicies{.cursor = call->query.id<QuotaPolicyId>("cursor"),
                               .limit = read_limit(call->query, 100, 1, 1000)},
             [](Call& self, const QuotaPage& page) {
               JsonWriter out;
               out.object().key("quotas").array();
               for (const auto& quota : page.policies) write_quota(out, quota);
               self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
             });
}

// For schedulers that admit work themselves; claims run the check on their own.
void check_admission(const CallPtr& call) {
  CheckAdmission request{.quota_policy_id = {},
                         .execution_id = call->fields().id<ExecutionId>("execution_id")};
  request.quota_policy_id = quota_of(call);
  call->run(std::move(request), [](Call& self, const Admission& admission) {
    JsonWriter out;
    out.object();
    write_word(out, "outcome", admission.outcome);
    if (admission.outcome == AdmissionOutcome::rate_exceeded) {
      out.field("retry_after_ms", admission.retry_after_ms);
    }
    self.reply(200, out.end().take());
  });
}

void release_admission(const CallPtr& call) {
  ReleaseAdmission request{.quota_policy_id = {},
                           .execution_id = call->fields().id<ExecutionId>("execution_id")};
  request.quota_policy_id = quota_of(call);
  call->run(std::move(request), [](Call& self, const AdmissionReleased&) { reply_released(self); });
}

void delete_quota(const CallPtr& call) {
  call->run(DeleteQuotaPolicy{quota_of(call)},
            [](Call& self, const QuotaPolicyDeleted&) { self.reply(http::Response{.status = 204}); });
}

constexpr Route kRoutes[] = {
    {"POST", "/v1/budgets", "create_budget", Body::json, kSmallBody, create_budget},
    {"GET", "/v1/budgets/{id}", "get_budget_status", Body::none, kSmallBody, read_budget},
    {"POST", "/v1/budgets/{id}/usage", "report_usage", Body::json, kSmallBody, report_usage},
    {"POST", "/v1/budgets/{id}/reset", "reset_budget", Body::ignored, kSmallBody, reset_budget},
    {"POST", "/v1/quotas", "create_quota_policy", Body::json, kSmallBody, create_quota},
    {"GET", "/v1/budgets", "list_budgets", Body::none, kSmallBody, list_budgets},
    {"PUT", "/v1/budgets/{id}/limits", "set_budget_limits", Body::json, kSmallBody, set_limits},
    {"DELETE", "/v1/budgets/{id}", "delete_budget", Body::ignored, kSmallBody, delete_budget},
    {"GET", "/v1/budgets/{id}/spending", "list_spending", Body::none, kSmallBody, list_spending},
    {"GET", "/v1/budgets/{id}/breaches", "list_breaches", Body::none, kSmallBody, list_breaches},
    {"POST", "/v1/budgets/{id}/attach", "attach_budget", Body::json, kSmallBody,
     change_attachment_of_budget<AttachBudget>},
    {"POST", "/v1/budgets/{id}/detach", "detach_budget", Body::json, kSmallBody,
     change_attachment_of_budget<DetachBudget>},
    {"POST", "/v1/budgets/{id}/spend", "record_spend", Body::json, kSmallBody, record_spend},
    {"POST", "/v1/budgets/{id}/release", "release_budget", Body::json, kSmallBody, release_budget},
    {"GET", "/v1/quotas", "list_quota_policies", Body::none, kSmallBody, list_quotas},
    {"GET", "/v1/quotas/{id}", "read_quota_policy", Body::none, kSmallBody, read_quota},
    {"DELETE", "/v1/quotas/{id}", "delete_quota_policy", Body::ignored, kSmallBody, delete_quota},
    {"POST", "/v1/quotas/{id}/attach", "attach_quota_policy", Body::json, kSmallBody,
     change_attachment_of_quota<AttachQuotaPolicy>},
    {"POST", "/v1/quotas/{id}/detach", "detach_quota_policy", Body::json, kSmallBody,
     change_attachment_of_quota<DetachQuotaPolicy>},
    {"POST", "/v1/quotas/{id}/admission", "check_admission", Body::json, kSmallBody, check_admission},
    {"POST", "/v1/quotas/{id}/release", "release_admission", Body::json, kSmallBody, release_admission},
};

}  // namespace

std::span<const Route> limit_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
