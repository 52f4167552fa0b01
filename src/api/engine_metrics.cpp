#include "api/engine_metrics.h"

#include "api/metrics.h"
#include "model/describe.h"

namespace flowfabric::api {

namespace {

// Keeps the number of label sets small: further lanes are summed up.
constexpr std::size_t kMaxLanes = 200;
constexpr std::size_t kMaxNamespaces = 100;
constexpr std::string_view kOther = "other";

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    append_family(out_, name, "counter", help);
    append_series(out_, name, "", value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    append_family(out_, name, "gauge", help);
    append_series(out_, name, "", value);
  }
  void counters(std::string_view name, std::string_view by, std::string_view help, const Counts& counts) {
    append_family(out_, name, "counter", help);
    for (const auto& [value, count] : counts) append_series(out_, name, label(by, value), count);
  }
  void histogram(std::string_view name, std::string_view help, const Distribution& values) {
    append_family(out_, name, "histogram", help);
    append_histogram(out_, name, "", values);
  }
  void histograms(std::string_view name, std::string_view by, std::string_view help,
                  const std::map<std::string, Distribution>& all) {
    append_family(out_, name, "histogram", help);
    for (const auto& [value, values] : all) append_histogram(out_, name, label(by, value), values);
  }

 private:
  std::string& out_;
};

void append_commits(Writer& out, const EngineStats& stats) {
  out.counter("ff_operations_total", "Operations that were committed or refused.", stats.operations);
  out.counter("ff_batches_total", "Batches that were committed or failed.", stats.batches);
  out.gauge("ff_batch_largest", "The most operations that have shared a commit.",
            static_cast<double>(stats.largest_batch));
  out.histogram("ff_batch_operations", "Operations in a batch.", stats.batch_sizes);
  out.histogram("ff_batch_duration_seconds", "Time from taking a batch to its answers.", stats.batch_seconds);
  out.histogram("ff_commit_duration_seconds", "Time to write a batch and make it durable.",
                stats.commit_seconds);
  out.counter("ff_store_round_trips_total", "Round trips of commits to a store across a network.",
              stats.round_trips);
  out.counters("ff_backend_errors_total", "category", "Failed batches and reads of the store, by kind.",
               stats.store_failures);
  out.gauge("ff_operations_queued", "Queued operations.", static_cast<double>(stats.queued));
  out.gauge("ff_operations_queued_bytes", "Their size.", static_cast<double>(stats.queued_bytes));
  out.gauge("ff_waiting_claims", "Claims that wait for work.", static_cast<double>(stats.waiting_claims));
  out.gauge("ff_watchers", "Callers that wait for frames, events or an end.",
            static_cast<double>(stats.watchers));
  out.counter("ff_shutdown_timeout_total", "Stops that exceeded their grace.", stats.shutdown_timeouts);
}

void append_clock(Writer& out, const EngineStats& stats) {
  Counts cycles;
  for (const auto& [rule, seconds] : stats.clock_seconds) cycles[rule] = stats.clock_looks;
  out.counters("ff_scanner_cycle_total", "scanner", "Rounds of the clock; each covers all rules.", cycles);
  out.histograms("ff_scanner_cycle_duration_seconds", "scanner",
                 "Time from the start of a round of the clock until the rule was done.", stats.clock_seconds);
  out.counters("ff_scanner_processed_total", "scanner", "Records that a rule of the clock has processed.",
               stats.clock_rules);
  out.counters("ff_scanner_errors_total", "scanner", "Failures of a rule of the clock.", stats.clock_errors);
  out.counter("ff_clock_operations_total", "Due records that the clock has examined.",
              stats.clock_operations);
  out.counter("ff_clock_failures_total", "Due records that failed and will be retried.",
              stats.clock_failures);
  out.counter("ff_clock_filtered_total", "Due records left to other servers.", stats.clock_filtered);
  out.gauge("ff_scanner_backoff_items", "Records that keep failing and are left alone for a while.",
            static_cast<double>(stats.clock_resting));
  out.gauge("ff_scanner_lag_seconds", "Age of the oldest due record after the last round of the clock.",
            static_cast<double>(stats.clock_lag_ms) / 1e3);
}

void append_lanes(std::string& out, const EngineStats& stats) {
  append_family(out, "ff_attempt_outcome_total", "counter", "Attempts that ended.");
  for (const auto& [lane, of_lane] : stats.lanes) {
    for (const auto& [outcome, count] : of_lane.attempts) {
      append_series(out, "ff_attempt_outcome_total", label("lane", lane) + "," + label("outcome", outcome),
                    count);
    }
  }
  append_family(out, "ff_execution_latency_seconds", "histogram",
                "Time from the first claim of an execution to its end.");
  for (const auto& [lane, of_lane] : stats.lanes) {
    for (const auto& [outcome, seconds] : of_lane.seconds) {
      append_histogram(out, "ff_execution_latency_seconds",
                       label("lane", lane) + "," + label("outcome", outcome), seconds);
    }
  }
}

void append_deeds(Writer& out, const EngineStats& stats) {
  out.histograms("ff_claim_from_grant_duration_seconds", "lane",
                 "Duration of claims of granted work, whatever their outcome.", stats.grant_claims);
  out.counters("ff_lease_renewal_total", "outcome", "Calls that renew a lease.", stats.renewals);
  out.counters("ff_lease_events_total", "type", "Lease events, by type.", stats.lease_events);
  out.counters("ff_budget_hit_total", "dimension", "Claims that a budget held back.", stats.budget_hits);
  out.counters("ff_quota_hit_total", "reason", "Claims that a quota held back.", stats.quota_hits);
  out.counters("ff_unblocked_total", "reason", "Unblocked executions, by the reason they waited for.",
               stats.unblocked);
  out.counters("ff_budget_breach_total", "kind", "Reports that passed a budget's limit.",
               stats.budget_breaches);
  out.counter("ff_budget_reset_total", "Budgets that were reset, by time or by hand.", stats.budget_resets);
  out.counters("ff_edge_group_policy_total", "policy", "Policies given to joins.", stats.join_policies);
  out.counters("ff_sibling_cancel_dispatched_total", "reason", "Siblings to be cancelled.",
               stats.siblings_cancelled_for);
  out.counters("ff_sibling_cancel_disposition_total", "disposition", "Outcomes of sibling cancels.",
               stats.sibling_dispositions);
  out.counters("ff_sibling_cancel_reconcile_total", "action", "Joins with nothing left to cancel.",
               stats.sibling_reconciliations);
  out.counters("ff_stream_frames_total", "mode", "Frames appended to streams.", stats.frames);
  out.counter("ff_stream_bytes_total", "Bytes of appended frames.", stats.frame_bytes);
}

}  // namespace

void append_engine(std::string& out, const EngineStats& stats) {
  Writer writer(out);
  append_commits(writer, stats);
  append_clock(writer, stats);
  append_lanes(out, stats);
  append_deeds(writer, stats);
}

void append_store(std::string& out, const StoreFigures& figures) {
  std::map<std::string, std::map<PublicState, std::int64_t>> lanes;
  for (const auto& [lane, counts] : figures.executions) {
    auto& shown = lanes[lanes.size() < kMaxLanes ? lane : std::string(kOther)];
    for (const auto& [state, count] : counts) shown[state] += count;
  }
  append_family(out, "ff_executions", "gauge", "Stored executions.");
  for (const auto& [lane, counts] : lanes) {
    for (const auto& [state, count] : counts) {
      append_series(out, "ff_executions", label("lane", lane) + "," + label("public_state", enum_name(state)),
                    static_cast<double>(count));
    }
  }
  append_family(out, "ff_queue_depth", "gauge", "Executions that wait for a worker.");
  for (const auto& [lane, counts] : lanes) {
    const auto waiting = counts.find(PublicState::waiting);
    append_series(out, "ff_queue_depth", label("lane", lane),
                  waiting == counts.end() ? 0.0 : static_cast<double>(waiting->second));
  }
  std::map<std::string, std::uint64_t> workers;
  for (const auto& [name, count] : figures.workers) {
    workers[workers.size() < kMaxNamespaces ? name : std::string(kOther)] += count;
  }
  append_family(out, "ff_workers_alive", "gauge", "Registered live workers.");
  for (const auto& [name, count] : workers) {
    append_series(out, "ff_workers_alive", label("namespace", name), count);
  }
  append_family(out, "ff_cancel_backlog_depth", "gauge", "Cancelled flows with members yet to be cancelled.");
  append_series(out, "ff_cancel_backlog_depth", "", figures.cancel_backlog);
}

}  // namespace flowfabric::api
