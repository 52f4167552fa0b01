#include "core/views/why.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/flow/cancel_flow.h"
#include "core/keys.h"
#include "core/limits/admission.h"
#include "core/limits/attachment.h"
#include "core/offer.h"
#include "core/registry/lane.h"
#include "core/registry/worker.h"
#include "core/suspension/suspension.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kShownDependencies = 20;
constexpr std::uint32_t kEdgesPerPage = 200;
constexpr std::uint32_t kPagesOfEdges = 50;
constexpr std::size_t kShownWorkers = 3;

class Explanation {
 public:
  Explanation(Unit& unit, const Execution& execution, Context& at)
      : unit_(unit), execution_(execution), at_(at) {}

  WaitingExplanation make() {
    found_.public_state = execution_.state.public_state;
    switch (execution_.state.lifecycle_phase) {
      case LifecyclePhase::suspended:
        add_signals();
        add_what_a_claim_meets();
        break;
      case LifecyclePhase::runnable:
        add_what_keeps_it_from_the_line();
        add_what_a_claim_meets();
        break;
      case LifecyclePhase::active:
        if (is_lost(execution_)) add_grace();
        if (is_lost(execution_)) add_what_a_claim_meets();
        break;
      default:
        break;
    }
    return std::move(found_);
  }

 private:
  void add(WaitingFor what, std::string subject, std::string detail,
           std::optional<std::int64_t> until = std::nullopt) {
    found_.reasons.push_back({what, std::move(subject), std::move(detail), until});
  }

  // Its state names one thing. The others are there as well, and would be next.
  void add_what_keeps_it_from_the_line() {
    const auto eligibility = execution_.state.eligibility_state;
    const auto& detail = execution_.blocking_detail;
    if (execution_.dependencies_pending) add_dependencies();
    const auto until = execution_.delay_until_ms;
    if (eligibility == EligibilityState::not_eligible_until_time)
      add(kind_of_delay(), "", detail, until);
    else if (until && *until > at_.now_ms)
      add(kind_of_delay(), "", "delayed until " + time_to_text(*until), until);
    if (eligibility == EligibilityState::blocked_by_operator) {
      add(WaitingFor::operator_, "", detail);
    } else if (const auto owed = owed_to(unit_, execution_); owed != OwedCancel::none) {
      add(WaitingFor::operator_, "",
          owed == OwedCancel::parked
              ? parked_detail(execution_)
              : "flow " + execution_.flow_id->to_string() + " was cancelled, and this is about to be");
    }
    if (eligibility == EligibilityState::blocked_by_lane_state)
      add(WaitingFor::lane, execution_.lane_id, detail);
  }

  void add_grace() {
    const auto until = execution_.delay_until_ms;
    if (until)
      add(WaitingFor::delay, "", "its lease was lost; offered again at " + time_to_text(*until), until);
  }

  WaitingFor kind_of_delay() const {
    const auto& state = execution_.state;
    if (state.blocking_reason == BlockingReason::waiting_for_resume_delay) return WaitingFor::resume_delay;
    const bool retries = state.attempt_state == AttemptState::pending_retry_attempt;
    return retries ? WaitingFor::retry_backoff : WaitingFor::delay;
  }

  void add_dependencies() {
    const auto unresolved = unresolved_edges();
    for (const auto& id : unresolved) {
      const auto* upstream = unit_.find<Execution>(id);
      add(WaitingFor::dependency, id.to_string(),
          upstream ? "upstream is " + std::string(enum_name(upstream->state.public_state))
                   : "upstream is gone");
    }
    const auto* join = unit_.find<EdgeGroup>(
        {execution_.partition_key, execution_.flow_id.value_or(FlowId{}), execution_.execution_id});
    const auto resolved = join ? join->success_count + join->fail_count + join->skip_count : 0;
    const auto all = join ? std::max(join->edge_count, resolved) - resolved : 0;
    if (all > unresolved.size()) {
      add(WaitingFor::dependency, "", "and " + std::to_string(all - unresolved.size()) + " more upstreams");
    }
    if (found_.reasons.empty()) add(WaitingFor::dependency, "", execution_.blocking_detail);
  }

  // The first of its upstreams that it still waits for.
  std::vector<ExecutionId> unresolved_edges() {
    std::vector<ExecutionId> upstreams;
    std::optional<EdgeId> after;
    for (std::uint32_t page = 0; page < kPagesOfEdges && upstreams.size() < kShownDependencies; ++page) {
      const auto edges = unit_.ask(EdgesInto{execution_.key(), after, kEdgesPerPage});
      unit_.fetch<Edge>(edges);
      for (const auto& key : edges) {
        const auto* edge = unit_.find<Edge>(key);
        const bool counts = edge && edge->edge_state == EdgeState::applied &&
                            edge->dependency_state == DependencyState::unsatisfied;
        if (counts && upstreams.size() < kShownDependencies) upstreams.push_back(edge->upstream());
      }
      if (edges.size() < kEdgesPerPage) break;
      after = edges.back().edge_id;
    }
    unit_.fetch<Execution>(upstreams);
    return upstreams;
  }

  void add_signals() {
    const auto* suspension = unit_.find<Suspension>({execution_.partition_key, execution_.execution_id});
    if (!suspension || !is_open(*suspension)) return;
    const auto& details = suspension->details;
    for (const auto& key : waitpoints_of(execution_.key(), details)) {
      const auto* waitpoint = unit_.find<Waitpoint>(key);
      if (!waitpoint || waitpoint->state != WaitpointState::active) continue;
      std::string names;
      for (const auto& name : waitpoint->required_signal_names) names += (names.empty() ? "" : ", ") + name;
      add(WaitingFor::signal, waitpoint->waitpoint_id.to_string(),
          (names.empty() ? "any signal" : "signal " + names) + " at waitpoint '" + waitpoint->waitpoint_key +
              "'",
          details.timeout_at_ms);
    }
    if (found_.reasons.empty()) {
      add(WaitingFor::operator_, "", "nobody but an operator resumes it", details.timeout_at_ms);
    }
  }

  // In the order in which a claim would. What is reserved has passed everything but the lane.
  void add_what_a_claim_meets() {
    const bool is_reserved = execution_.grant_expires_at_ms.has_value();
    if (is_reserved) add(WaitingFor::grant, "", "reserved for a worker", execution_.grant_expires_at_ms);
    if (!hands_out(unit_, execution_.lane_id)) {
      const auto state = unit_.require<Lane>({execution_.lane_id}).state;
      add(WaitingFor::lane, execution_.lane_id, "the lane is " + std::string(enum_name(state)));
    }
    if (is_reserved) return;
    add_missing_capability();
    for (const auto& refusal : refusals_of(unit_, execution_, at_)) {
      const bool by_budget = refusal.reason == BlockingReason::waiting_for_budget;
      add(by_budget ? WaitingFor::budget : WaitingFor::quota, refusal.limit_id.to_string(), refusal.detail,
          refusal.clears_at_ms);
    }
    add_what_holds_it();
    if (found_.reasons.empty())
      add(WaitingFor::worker, "", "any worker that serves lane " + execution_.lane_id);
  }

  // It is still held back for what is not in the way of others: somebody has blocked it, a budget has paused
  // it, or the clock has yet to let it go.
  void add_what_holds_it() {
    const auto kind = kind_of_block();
    if (!kind || std::ranges::count(found_.reasons, *kind, &WaitingReason::waiting_for) > 0) return;
    std::optional<std::int64_t> until;
    if (execution_.blocked_on && kind == WaitingFor::budget) {
      const auto* budget = unit_.find<Budget>(budget_key({*execution_.blocked_on}, at_.partitions));
      if (budget) until = budget->next_reset_at_ms;
    }
    add(*kind, execution_.blocked_on ? execution_.blocked_on->to_string() : "", execution_.blocking_detail,
        until);
  }

  std::optional<WaitingFor> kind_of_block() const {
    switch (execution_.state.eligibility_state) {
      case EligibilityState::blocked_by_budget:
        return WaitingFor::budget;
      case EligibilityState::blocked_by_quota:
        return WaitingFor::quota;
      case EligibilityState::blocked_by_route:
        return WaitingFor::capability;
      default:
        return std::nullopt;
    }
  }

  void add_missing_capability() {
    const auto& route = unit_.require<Route>({execution_.route_id});
    const auto required = split_capabilities(route.required_capabilities);
    if (required.empty()) return;
    const auto workers = unit_.ask(WorkersOf{execution_.namespace_});
    unit_.fetch<Worker>(workers);
    for (const auto& key : workers) {
      const auto* worker = unit_.find<Worker>(key);
      if (!worker || !is_alive(*worker, at_)) continue;
      if (!std::ranges::binary_search(worker->lanes, execution_.lane_id)) continue;
      std::vector<std::string> missing;
      std::ranges::set_difference(required, split_capabilities(worker->capabilities_csv),
                                  std::back_inserter(missing));
      if (missing.empty()) {
        found_.nearest_workers.clear();
        return;
      }
      found_.nearest_workers.push_back({worker->worker_instance_id, std::move(missing)});
    }
    auto& nearest = found_.nearest_workers;
    std::ranges::stable_sort(nearest, {},
                             [](const auto& worker) { return worker.missing_capabilities.size(); });
    if (nearest.size() > kShownWorkers) nearest.resize(kShownWorkers);
    add(WaitingFor::capability, "",
        nearest.empty()
            ? "no registered worker serves the lane; required: " + route.required_capabilities
            : "the nearest worker lacks: " + join_capabilities(nearest.front().missing_capabilities));
  }

  Unit& unit_;
  const Execution& execution_;
  Context& at_;
  WaitingExplanation found_;
};

}  // namespace

Result<WaitingExplanation> explain(Unit& unit, const ExecutionId& id, Context& at) {
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return std::unexpected(not_found(id));
  return Explanation(unit, *execution, at).make();
}

}  // namespace flowfabric::core
