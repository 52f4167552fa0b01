// The engine: opens a store and runs operations on it, durably and in batches.
//
//   auto engine = flowfabric::Engine::open("sqlite:jobs.db");
//   if (!engine) { std::cerr << engine.error().to_string(); return 1; }
//   auto created = engine->call(flowfabric::CreateExecution{.execution_kind = "resize"});
//
// Every member may be called from any thread. An answer means that the change is on disk; an error with code
// `unavailable` or `timeout` means that the outcome is unknown, and repeating the same request is safe.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flowfabric/budgets.h"
#include "flowfabric/check.h"
#include "flowfabric/error.h"
#include "flowfabric/events.h"
#include "flowfabric/flows.h"
#include "flowfabric/grants.h"
#include "flowfabric/history.h"
#include "flowfabric/listing.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"
#include "flowfabric/quotas.h"
#include "flowfabric/registry.h"
#include "flowfabric/scanner_filter.h"
#include "flowfabric/stats.h"
#include "flowfabric/streams.h"
#include "flowfabric/suspension.h"
#include "flowfabric/why.h"

namespace flowfabric {

struct EngineOptions {
  // An operation that has not run by then is answered `timeout` and has changed nothing.
  std::chrono::milliseconds operation_deadline{30'000};
  // Beyond either bound, new operations are answered `resource_exhausted` at once.
  std::size_t max_queued_operations{65'536};
  std::size_t max_queued_bytes{256u << 20};
  std::size_t max_waiting_claims{16'384};
  std::size_t max_watchers{65'536};  // readers that wait for frames or events
  // How many operations may share one commit.
  std::size_t max_batch{1024};
  // Partition counts are fixed when a store is first opened, and compared at every later opening.
  std::uint16_t flow_partitions{256};
  std::uint16_t budget_partitions{32};
  std::uint16_t quota_partitions{32};
  // The longest delay of a due rule; the clock normally sleeps exactly until the next one is due. Zero turns
  // the background clock off: then only `run_due()` applies the rules of time.
  std::chrono::milliseconds clock_interval{750};
  // Due records outside of this filter are left to other engines on the same store.
  ScannerFilter scanner_filter{};
  // Rules of time that this engine never applies, by name: lease_expiry, retention_trimmer, … They are left
  // to other engines on the store.
  std::set<std::string> rules_off{};
  // How long an execution is kept after it has ended, unless its policy says otherwise, and how long events
  // are. Zero: for ever.
  std::chrono::milliseconds retention{86'400'000};
  std::chrono::milliseconds event_retention{604'800'000};
  // How long an attempt may continue after one of its reports has passed a hard limit whose action is `fail`.
  // Zero: until its worker ends it.
  std::chrono::milliseconds budget_grace{0};
  // How long an execution with an expired or revoked lease is not offered to other workers, nor failed if it
  // lost its lease too often. A reclaim grant does not wait.
  std::chrono::milliseconds reclaim_grace{0};
  // The secret that signs waitpoint tokens, in hex; used when the store has none yet. Empty: the engine makes
  // one and stores it.
  std::string waitpoint_secret_hex{};
  // Called while the engine opens, with remarks for an operator although nothing failed. Never a secret.
  std::function<void(const std::string&)> notice{};
  // Called after a commit, on its thread, with facts that nobody may have wanted: an unknown action of a
  // budget, a limit that was passed and only warns, counts that were wrong. Also called with the reason why
  // the store cannot commit, at most once a minute while the reason stays. Keep it short, never block.
  std::function<void(const std::string&)> warning{};
  // Called when a rule of the clock fails, with the rule, the record and the reason; at most once a minute
  // for each record. Keep it short, never block, never stop the engine in it.
  std::function<void(const std::string&)> failure{};
  // Called after each commit, on its thread, with the attempts that it has ended. Keep it short, never block
  // in it.
  std::function<void(std::vector<EndedAttempt>)> attempts_ended{};
  // Called once, on any thread, when the disk has failed and its contents are unknown. From then on every
  // call is answered with this error: end the process, and start it again when the disk is repaired. Do not
  // stop the engine in it.
  std::function<void(const Error&)> store_failed{};
  // Replaces the store's time. For tests.
  std::function<std::int64_t()> now_ms{};
};

class Engine {
 public:
  // `memory:`, `sqlite:PATH` (`?synchronous=normal` trades the last commits at power loss for speed), or
  // `postgres://user@host/database`, whose schema `migrate` creates (docs/postgres.md has its parameters).
  static Result<Engine> open(const std::string& url, EngineOptions options = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();  // stops

  // Waits for the answer.
  template <class Request>
  Result<typename Request::Answer> call(Request request);

  // Calls back exactly once, on a thread of the engine: keep it short, never block in it. Reads are answered
  // on the calling thread. Operations on one execution that carry a fence run in the order in which they are
  // posted. Other operations do, too, if they are posted `in_order_with` the same execution.
  template <class Request>
  void post(Request request, std::function<void(Result<typename Request::Answer>)> answer,
            const std::optional<ExecutionId>& in_order_with = std::nullopt);

  template <class Request>
  std::future<Result<typename Request::Answer>> submit(Request request) {
    auto promise = std::make_shared<std::promise<Result<typename Request::Answer>>>();
    auto future = promise->get_future();
    post(std::move(request),
         [promise](Result<typename Request::Answer> answer) { promise->set_value(std::move(answer)); });
    return future;
  }

  // Applies every rule whose time has come: expired leases, timeouts, deadlines, ended delays. Returns the
  // number of records examined. The background clock calls this by itself.
  Result<std::size_t> run_due();

  // Answers the parked claims whose callers are gone (`ClaimTasks::abandoned`) with no tasks.
  void release_abandoned();

  // Runs and answers the queued operations, and refuses later ones with `unavailable`. Operations still
  // queued after `grace` are refused, too; reads are still answered. May be called again, and from several
  // threads.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(15));

  EngineStats stats() const;

  // The handle of a task, which a worker may pass on or store.
  OpaqueHandle handle_of(const ClaimedTask& task, const std::string& worker_instance_id,
                         std::int64_t lease_ttl_ms) const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Creates or upgrades the schema of a store without starting an engine. Returns a list of the applied steps.
Result<std::string> migrate(const std::string& url, const EngineOptions& options = {});
// The SQL that `migrate` would run; changes nothing.
Result<std::string> plan_migration(const std::string& url, const EngineOptions& options = {});

}  // namespace flowfabric
