// Routes of workers: claims, with a long poll, and reports, one by one or many at once.
#include <fmt/format.h>

#include "api/reports.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "model/text.h"

namespace flowfabric::api {

namespace {

constexpr std::size_t kMaxReports = 256;
constexpr std::size_t kMaxGrants = 256;

// ---- claiming ---------------------------------------------------------------------------------------------

void reply_tasks(Call& self, const std::vector<ClaimedTask>& tasks) {
  JsonWriter out;
  out.object().key("tasks").array();
  for (const auto& task : tasks) write_task(out, task);
  self.reply(200, out.end().end().take());
}

// Claims of granted executions, each with its own answer.
struct GrantedClaims {
  CallPtr call;
  std::vector<ExecutionId> ids;
  std::vector<std::optional<Result<ClaimedTask>>> results;
  std::atomic<std::size_t> missing{0};

  void reply() const {
    JsonWriter out;
    out.object().key("tasks").array();
    for (const auto& result : results) {
      if (*result) write_task(out, **result);
    }
    out.end().key("refused").array();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (*results[i]) continue;
      out.object()
          .field("execution_id", ids[i])
          .key("error")
          .raw(error_body(results[i]->error(), call->request_id, true))
          .end();
    }
    call->reply(200, out.end().end().take());
  }
};

void claim_granted(const CallPtr& call, const ClaimTasks& claim, JsonView grants) {
  std::vector<ClaimGranted> requests;
  for (const auto item : grants) {
    const Fields fields(item, fmt::format("grants[{}]", requests.size()));
    requests.push_back({.execution_id = fields.id<ExecutionId>("execution_id"),
                        .use = {.worker_id = claim.worker_id,
                                .worker_instance_id = claim.worker_instance_id,
                                .grant_key = fields.text("grant_key"),
                                .lease_ttl_ms = claim.lease_ttl_ms}});
  }
  auto claims = std::make_shared<GrantedClaims>();
  claims->call = call;
  claims->results.resize(requests.size());
  claims->missing = requests.size();
  for (const auto& request : requests) claims->ids.push_back(request.execution_id);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    call->engine().post(std::move(requests[i]), [claims, i](Result<ClaimedTask> task) {
      claims->results[i] = std::move(task);
      if (--claims->missing == 0) claims->call->guard([&] { claims->reply(); });
    });
  }
}

void claim(const CallPtr& call) {
  const auto fields = call->fields();
  ClaimTasks request{.worker_id = fields.text("worker_id")};
  request.worker_instance_id = fields.text_or("worker_instance_id", request.worker_id);
  request.namespace_ = fields.maybe_text("namespace");
  if (fields.has("lanes")) request.lanes = fields.texts("lanes");
  if (fields.has("capabilities")) request.capabilities = fields.texts("capabilities");
  request.max_tasks = fields.number_or<std::uint32_t>("max_tasks", request.max_tasks);
  request.lease_ttl_ms = fields.number_or<std::int64_t>("lease_ttl_ms", request.lease_ttl_ms);
  request.wait_ms = fields.number_or<std::int64_t>("wait_ms", 0);
  if (fields.has("grants")) return claim_granted(call, request, fields.array("grants", 1, kMaxGrants));
  if (request.wait_ms > 0) {
    // A client that leaves while it waits is given no work.
    request.abandoned = {call->exchange, &call->exchange->abandoned};
    call->exchange->on_abandoned = [&engine = call->engine()] { engine.release_abandoned(); };
  }
  call->run_long(std::move(request), reply_tasks);
}

// ---- reporting --------------------------------------------------------------------------------------------

struct Reports {
  CallPtr call;
  std::vector<std::string> results;  // `{"ok":…}` or `{"error":…}`
  std::atomic<std::size_t> missing{0};

  void answer(std::size_t place, std::string result) {
    results[place] = std::move(result);
    if (--missing > 0) return;
    std::string out = R"({"results":[)";
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i > 0) out += ',';
      out += results[i];
    }
    call->reply(200, out + "]}");
  }
};

std::string refused(const std::string& body) {
  return R"({"error":)" + body + "}";
}

// The committer of a budget counts spending, and it does not see the order of an execution's other reports.
// So if any report is about spending, all reports of the request run in the order of the first one's
// execution.
std::optional<ExecutionId> common_order(JsonView reports) {
  if (reports.size() < 2) return std::nullopt;
  bool has_usage = false;
  std::optional<ExecutionId> first;
  for (const auto report : reports) {
    if (report.kind() != JsonView::Kind::object) continue;
    for (const auto member : report) {
      if (member.kind() != JsonView::Kind::string) continue;
      if (member.key() == "op") has_usage = has_usage || member.text() == "usage";
      if (member.key() == "execution_id" && !first) first = ExecutionId::parse(std::string(member.text()));
    }
  }
  return has_usage ? first : std::nullopt;
}

// Applies the reports one by one, in order. A bad report does not affect the others.
void report_many(const CallPtr& call) {
  const auto given = call->fields().array("reports", 1, kMaxReports);
  auto reports = std::make_shared<Reports>();
  reports->call = call;
  reports->results.resize(given.size());
  reports->missing = given.size();
  const auto order = common_order(given);
  std::size_t place = 0;
  for (const auto item : given) {
    const auto i = place++;
    try {
      const Fields fields(item, fmt::format("reports[{}]", i));
      const auto answer = [reports, i](Result<std::string> ok) {
        reports->answer(i, ok ? R"({"ok":)" + *ok + "}"
                              : refused(error_body(ok.error(), reports->call->request_id, true)));
      };
      send_report(call->engine(), fields, "", answer, order);
    } catch (const Refusal& refusal) {
      reports->answer(i, refused(error_body(refusal, call->request_id, true)));
    } catch (const Error& error) {
      reports->answer(i, refused(error_body(error, call->request_id, true)));
    }
  }
}

void report_one(const CallPtr& call) {
  const auto& path = call->exchange->request.path;
  const auto op = path.substr(path.rfind('/') + 1);
  send_report(call->engine(), call->fields(), op, [call](Result<std::string> ok) {
    if (ok)
      call->reply(200, *std::move(ok));
    else
      call->reply(ok.error());
  });
}

// ---- grants, as the reference has them --------------------------------------------------------------------

void check_grant(const GrantTerms& terms, const std::string& lane) {
  unwrap(check_worker_name("worker_id", terms.worker_id));
  unwrap(check_worker_name("worker_instance_id", terms.worker_instance_id));
  if (!lane.empty()) unwrap(check_lane(lane));
}

// A time to live that does not fit the type is refused like any other that is too long.
std::int64_t read_grant_ttl(const Fields& fields) {
  const auto ttl = fields.number<std::uint64_t>("grant_ttl_ms");
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ttl, std::numeric_limits<std::int64_t>::max()));
}

void claim_for_worker(const CallPtr& call) {
  const auto fields = call->fields();
  ClaimForWorker request{.lane_id = fields.text("lane_id")};
  request.terms.worker_id = call->segments[0];
  request.terms.worker_instance_id = fields.text("worker_instance_id");
  request.terms.capabilities = fields.texts("capabilities");
  request.terms.grant_ttl_ms = read_grant_ttl(fields);
  check_grant(request.terms, request.lane_id);
  call->run(std::move(request), [](Call& self, const std::optional<ClaimGrant>& grant) {
    if (!grant) return self.reply(http::Response{.status = 204});
    JsonWriter out;
    out.object();
    write_grant(out, *grant);
    self.reply(200, out.end().take());
  });
}

// Grants one execution that a scheduler has chosen.
void issue_claim_grant(const CallPtr& call) {
  const auto fields = call->fields();
  IssueClaimGrant request{.lane_id = fields.text_or("lane_id", "default")};
  request.terms.worker_id = fields.text("worker_id");
  request.terms.worker_instance_id = fields.text_or("worker_instance_id", request.terms.worker_id);
  request.terms.capabilities = fields.texts("capabilities");
  request.terms.grant_ttl_ms = read_grant_ttl(fields);
  request.execution_id = path_id<ExecutionId>("execution_id", call->segments[0]);
  check_grant(request.terms, request.lane_id);
  call->run(std::move(request), [](Call& self, const ClaimGrant& grant) {
    JsonWriter out;
    out.object();
    write_grant(out, grant);
    self.reply(200, out.end().take());
  });
}

// An operator takes an execution regardless of limits.
void claim_as_operator(const CallPtr& call) {
  IssueGrantAndClaim request;
  if (call->has_body()) {
    const auto fields = call->fields();
    request.lane_id = fields.text_or("lane_id", request.lane_id);
    request.lease_duration_ms = fields.number_or<std::int64_t>("lease_ttl_ms", request.lease_duration_ms);
  }
  request.execution_id = path_id<ExecutionId>("execution_id", call->segments[0]);
  call->run(std::move(request), [](Call& self, const ClaimedTask& task) {
    JsonWriter out;
    write_task(out, task);
    self.reply(200, out.take());
  });
}

void issue_reclaim_grant(const CallPtr& call) {
  const auto fields = call->fields();
  const auto lane = fields.text("lane_id");
  IssueReclaimGrant request;
  request.terms.worker_id = fields.text("worker_id");
  request.terms.worker_instance_id = fields.text("worker_instance_id");
  request.terms.capabilities = fields.texts("worker_capabilities");
  request.terms.grant_ttl_ms = read_grant_ttl(fields);
  request.terms.capability_hash = fields.text_or("capability_hash", "");
  request.terms.route_snapshot_json = fields.text_or("route_snapshot_json", "");
  request.terms.admission_summary = fields.text_or("admission_summary", "");
  request.execution_id = path_id<ExecutionId>("execution_id", call->segments[0]);
  check_grant(request.terms, lane);
  if (lane.empty()) refuse_input("lane_id must not be empty", "Name the lane that the execution waits on.");
  const auto id = request.execution_id;
  call->run(std::move(request), [id](Call& self, const ReclaimAnswer& answer) {
    JsonWriter out;
    out.object();
    write_word(out, "status", answer.status);
    if (answer.grant) {
      write_grant(out, *answer.grant);
      out.field("lane_id", answer.grant->lane_id);
    } else {
      out.field("execution_id", id);
      if (answer.status == ReclaimStatus::reclaim_cap_exceeded)
        out.field("reclaim_count", answer.reclaim_count);
      else
        out.field("detail", answer.detail);
    }
    self.reply(200, out.end().take());
  });
}

constexpr Route kRoutes[] = {
    {"POST", "/v1/executions/{id}/reclaim", "issue_reclaim_grant", Body::json, kSmallBody,
     issue_reclaim_grant},
    {"POST", "/v1/executions/{id}/grant", "issue_claim_grant", Body::json, kSmallBody, issue_claim_grant},
    {"POST", "/v1/executions/{id}/claim", "issue_grant_and_claim", Body::json_if_any, kSmallBody,
     claim_as_operator},
    {"POST", "/v1/workers/{worker_id}/claim", "claim_for_worker", Body::json, kSmallBody, claim_for_worker},
    {"POST", "/v1/tasks/claim", "claim_tasks", Body::json, kSmallBody, claim},
    {"POST", "/v1/tasks/report", "report_tasks", Body::json, kLargeBody, report_many},
    {"POST", "/v1/tasks/complete", "complete_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/fail", "fail_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/cancel", "cancel_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/renew", "renew_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/progress", "update_task_progress", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/delay", "delay_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/wait_children", "wait_for_children", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/suspend", "suspend_task", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/create_waitpoint", "create_waitpoint", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/append", "append_frame", Body::json, kLargeBody, report_one},
    {"POST", "/v1/tasks/usage", "report_task_usage", Body::json, kLargeBody, report_one},
};

}  // namespace

std::span<const Route> task_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
