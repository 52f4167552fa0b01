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
  // An operation that was not run by then is answered `timeout`; it has changed nothing.
  std::chrono::milliseconds operation_deadline{30'000};
  // Beyond either bound, new operations are answered `resource_exhausted` at once.
  std::size_t max_queued_operations{65'536};
  std::size_t max_queued_bytes{256u << 20};
  std::size_t max_waiting_claims{16'384};
  std::size_t max_watchers{65'536};  // who wait for frames or events
  // How many operations may share one commit.
  std::size_t max_batch{1024};
  // Partition counts are fixed when a store is first opened, and compared ever after.
  std::uint16_t flow_partitions{256};
  std::uint16_t budget_partitions{32};
  std::uint16_t quota_partitions{32};
  // How late a due rule may fire at most; the clock normally sleeps exactly until the next one is due.
  // Zero turns the background clock off: then only `run_due()` moves time-driven work.
  std::chrono::milliseconds clock_interval{750};
  // The rest is left to other engines on the same store.
  ScannerFilter scanner_filter{};
  // Rules of time that this engine never applies, by their names: lease_expiry, retention_trimmer, … What
  // they would do is left to other engines, or is not done.
  std::set<std::string> rules_off{};
  // How long an execution is kept after it has ended, unless its policy says otherwise, and how long events
  // are. Zero: for ever.
  std::chrono::milliseconds retention{86'400'000};
  std::chrono::milliseconds event_retention{604'800'000};
  // How long an attempt may go on after a report of it has passed a hard limit whose action is `fail`.
  // Zero: until its worker ends it.
  std::chrono::milliseconds budget_grace{0};
  // How long a lease that has expired or was revoked is not offered to other workers, nor given up if it was
  // lost too often. A reclaim grant does not wait.
  std::chrono::milliseconds reclaim_grace{0};
  // Signs waitpoint tokens, in hex; used when the store has none yet. Empty: one is made, and kept there.
  std::string waitpoint_secret_hex{};
  // Told, while the engine opens, what somebody should know although nothing failed. Never a secret.
  std::function<void(const std::string&)> notice{};
  // Told, after a commit and on its thread, what has a meaning that nobody may have wanted: an unknown action
  // of a budget, a limit that was passed and only warns, counts that were wrong; and why the store cannot
  // commit, at most once a minute while the reason stays. Keep it short, never block.
  std::function<void(const std::string&)> warning{};
  // Told what the clock could not do: which rule failed, on what, and why; of each record at most once a
  // minute. Keep it short, never block, never stop the engine in it.
  std::function<void(const std::string&)> failure{};
  // Told, after each commit and on its thread, which attempts it has ended: keep it short, never block in it.
  std::function<void(std::vector<EndedAttempt>)> attempts_ended{};
  // Told once, on any thread, when the disk has failed so that nobody knows any more what is on it. From then
  // on every call is answered with this error: end the process, and start it again when the disk is well. Do
  // not stop the engine in it.
  std::function<void(const Error&)> store_failed{};
  // Replaces the store's time. For tests.
  std::function<std::int64_t()> now_ms{};
};

class Engine {
 public:
  // `memory:`, `sqlite:PATH` (`?synchronous=normal` trades the last commits at power loss for speed), or
  // `postgres://user@host/database`, whose schema `migrate` makes (docs/postgres.md has its parameters).
  static Result<Engine> open(const std::string& url, EngineOptions options = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();  // stops

  // Waits for the answer.
  template <class Request>
  Result<typename Request::Answer> call(Request request);

  // Calls back exactly once, on a thread of the engine: keep it short, never block in it.
  // Reads are answered on the calling thread.
  // Operations on one execution that carry a fence run in the order in which they are posted. Others do so,
  // too, if they are posted `in_order_with` the same execution, whatever they are about.
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

  // Applies every rule whose time has come: expired leases, timeouts, deadlines, ended delays.
  // Returns how many records were looked at. The background clock does this by itself.
  Result<std::size_t> run_due();

  // Answers those who wait for work and are gone (`ClaimTasks::abandoned`), with none.
  void release_abandoned();

  // Answers what is queued, refuses what comes later with `unavailable`. Operations still queued after
  // `grace` are refused, too; reads go on being answered. May be called again, and from several threads.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(15));

  EngineStats stats() const;

  // What a worker may hand on or write down of a task.
  OpaqueHandle handle_of(const ClaimedTask& task, const std::string& worker_instance_id,
                         std::int64_t lease_ttl_ms) const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Creates or upgrades the schema of a store without starting an engine; says what it did.
Result<std::string> migrate(const std::string& url, const EngineOptions& options = {});
// The SQL that `migrate` would run; changes nothing.
Result<std::string> plan_migration(const std::string& url, const EngineOptions& options = {});

}  // namespace flowfabric
