#include "flowfabric/engine.h"

#include "engine/await_end.h"
#include "engine/check.h"
#include "engine/clock.h"
#include "engine/committers.h"
#include "engine/dead_worker.h"
#include "engine/dispatch.h"
#include "engine/event_reads.h"
#include "engine/figures.h"
#include "engine/first_secret.h"
#include "engine/flow_cancel.h"
#include "engine/flow_reads.h"
#include "engine/handles.h"
#include "engine/history.h"
#include "engine/limit_reads.h"
#include "engine/listing.h"
#include "engine/random_seed.h"
#include "engine/reads.h"
#include "engine/stream_reads.h"
#include "engine/suspension_reads.h"
#include "engine/tally.h"
#include "model/waitpoint_token.h"

namespace flowfabric {

namespace {

using std::chrono::steady_clock;

template <class Request>
inline constexpr bool is_read = requires(engine::Readers& readers, const Request& request) {
  engine::answer(readers, request);
};

Result<void> check_options(const EngineOptions& options) {
  const bool usable = options.max_queued_operations > 0 && options.max_batch > 0 &&
                      options.operation_deadline.count() > 0 && options.clock_interval.count() >= 0 &&
                      options.retention.count() >= 0 && options.event_retention.count() >= 0 &&
                      options.budget_grace.count() >= 0 && options.reclaim_grace.count() >= 0 &&
                      options.flow_partitions > 0 && options.budget_partitions > 0 &&
                      options.quota_partitions > 0;
  if (!usable) {
    return fail_with(ErrorCode::invalid_input, "engine options",
                     "Queue bounds, batch size, deadline and partition counts must be greater than zero.");
  }
  for (const auto& rule : options.rules_off) {
    const auto known = enum_from_name<core::Rule>(rule);
    // What has served its time is always removed: idempotency keys, bulk operations that are over.
    if (known && *known != core::Rule::none && *known != core::Rule::ttl_sweep) continue;
    return fail_with(ErrorCode::invalid_input, "rules_off: " + rule,
                     "Give names of rules as `EngineStats::clock_seconds` has them (all but ttl_sweep): "
                     "lease_expiry, retention_trimmer, …");
  }
  const auto& secret = options.waitpoint_secret_hex;
  if (secret.empty() || bytes_from_hex(secret)) return {};
  return fail_with(
      ErrorCode::invalid_secret_hex, "",
      "Give the secret for waitpoint tokens as pairs of hex digits, such as `openssl rand -hex 32` "
      "prints.");
}

store::StoreOptions store_options(const EngineOptions& options) {
  return {.partitions = {options.flow_partitions, options.budget_partitions, options.quota_partitions},
          .now_ms = options.now_ms,
          .failed = options.store_failed};
}

}  // namespace

struct Engine::Impl {
  Impl(std::unique_ptr<store::Store> opened, EngineOptions given, HandleBackend handles)
      : options(std::move(given)),
        backend(handles),
        store(std::move(opened)),
        readers(*store, {options.flow_partitions, options.budget_partitions, options.quota_partitions},
                options.operation_deadline),
        watchers(options.max_watchers, store->is_shared()),
        waiting(options.max_waiting_claims,
                [this](engine::SteadyTime until) {
                  if (clock_is_up) clock.note_waiting(until);
                }),
        committers(*store, options, waiting, [this](const engine::BatchEffects& effects) { note(effects); },
                   {.unserved = [this](const std::vector<std::string>& lanes) { tell_others(lanes); },
                    .waits_when_away = store->waits_when_away()}),
        clock(*store, committers, waiting, options) {
    clock_is_up = true;
    auto opened_bell = store->open_bell([this](const std::vector<std::string>& names) { heard(names); });
    std::lock_guard lock(bell_mutex);
    bell = std::move(opened_bell);
  }
  ~Impl() { close_bell(); }

  void tell_others(const std::vector<std::string>& lanes) {
    std::lock_guard lock(bell_mutex);
    if (bell) bell->ring(lanes);
  }

  // What others have rung: lanes that offer something, and what may be watched.
  void heard(std::vector<std::string> names) {
    const bool everywhere = names.empty();
    if (everywhere) watchers.wake_all();
    watchers.wake(names);
    std::erase_if(names, engine::is_watchable);
    if ((everywhere || !names.empty()) && waiting.waits_for(names)) clock.hurry();
  }

  // Its thread uses the others.
  void close_bell() {
    std::unique_ptr<store::Bell> closing;
    {
      std::lock_guard lock(bell_mutex);
      closing = std::move(bell);
    }
  }

  // On the committer's thread, after every commit.
  void note(const engine::BatchEffects& effects) {
    tally.add(effects);
    tell_warnings(effects);
    if (!effects.ended_attempts.empty()) options.attempts_ended(effects.ended_attempts);
    if (clock_is_up && effects.earliest_due) clock.note_due(*effects.earliest_due);
    if (!store->is_shared() && !watchers.are_there()) return;
    std::vector<std::string> names;
    for (const auto family : effects.feeds) names.push_back(engine::feed_of(family));
    for (const auto& id : effects.written) names.push_back(engine::stream_of(id));
    if (store->is_shared()) {
      for (const auto& id : streaming_among(effects)) names.push_back(engine::stream_of(id));
      if (!names.empty()) tell_others(names);
    }
    if (!watchers.are_there()) return;
    // Its end closes a stream.
    for (const auto& id : effects.changed) names.push_back(engine::stream_of(id));
    watchers.wake(names);
  }

  void tell_warnings(const engine::BatchEffects& effects) {
    if (!options.warning) return;
    for (const auto& note : effects.notes) {
      if (note.what == core::Noted::warning) options.warning(note.label);
    }
  }

  // Those of the changed executions whose streams were written to through this engine lately: somebody may
  // watch them elsewhere.
  std::vector<ExecutionId> streaming_among(const engine::BatchEffects& effects) {
    constexpr std::size_t most = 100'000;
    std::lock_guard lock(bell_mutex);
    if (streaming.size() > most) streaming.clear();
    streaming.insert(effects.written.begin(), effects.written.end());
    std::vector<ExecutionId> found;
    if (streaming.empty()) return found;
    for (const auto& id : effects.changed) {
      if (streaming.contains(id)) found.push_back(id);
    }
    return found;
  }

  void stop(std::chrono::milliseconds grace) {
    std::lock_guard lock(stop_mutex);
    const auto until = steady_clock::now() + grace;
    watchers.stop();
    committers.stop(until);
    clock.stop();
    close_bell();
    for (auto& operation : waiting.take_all()) operation.answer(nullptr);
  }

  EngineOptions options;
  const HandleBackend backend;
  std::unique_ptr<store::Store> store;
  engine::Readers readers;
  engine::Tally tally;
  engine::Watchers watchers;
  std::mutex stop_mutex;
  std::atomic<bool> clock_is_up{false};
  std::mutex bell_mutex;
  std::unique_ptr<store::Bell> bell;  // null where nobody else can hear it
  std::unordered_set<ExecutionId> streaming;
  engine::WaitingClaims waiting;
  // Their threads use everything above, from the moment they are made.
  engine::Committers committers;
  engine::Clock clock;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Engine::~Engine() {
  if (impl_) stop();
}

Result<Engine> Engine::open(const std::string& url, EngineOptions options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  auto store = store::open_store(url, store_options(options));
  if (!store) return std::unexpected(store.error());
  try {
    Engine engine(std::make_unique<Impl>(*std::move(store), std::move(options), engine::backend_of(url)));
    engine::install_first_secret(engine.impl_->committers, engine.impl_->options);
    engine.impl_->options.waitpoint_secret_hex.clear();
    return engine;
  } catch (const store::StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

void Engine::release_abandoned() {
  for (auto& operation : impl_->waiting.take_abandoned()) operation.answer(nullptr);
}

void Engine::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}

Result<std::size_t> Engine::run_due() {
  return impl_->clock.run_due();
}

EngineStats Engine::stats() const {
  auto stats = impl_->committers.stats();
  impl_->clock.add_to(stats);
  impl_->tally.add_to(stats);
  for (const auto& [kind, count] : impl_->readers.failures()) stats.store_failures[kind] += count;
  stats.waiting_claims = impl_->waiting.size();
  stats.watchers = impl_->watchers.size();
  return stats;
}

OpaqueHandle Engine::handle_of(const ClaimedTask& task, const std::string& worker_instance_id,
                               std::int64_t lease_ttl_ms) const {
  return engine::handle_of(task, impl_->backend, worker_instance_id, lease_ttl_ms);
}

Result<std::string> migrate(const std::string& url, const EngineOptions& options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  return store::migrate_store(url, store_options(options));
}

Result<std::string> plan_migration(const std::string& url, const EngineOptions& options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  return store::plan_store_migration(url, store_options(options));
}

namespace {

// Gives what it is to make an id, if its caller did not. True: so nobody can have made it before.
template <class Request>
bool complete_request(Request&, const EngineOptions&) {
  return false;
}

bool complete_request(CreateExecution& request, const EngineOptions& options) {
  if (request.execution_id) return false;
  Random random(engine::random_seed());
  request.execution_id = ExecutionId{partition_of_lane(request.lane_id, options.flow_partitions),
                                     mint_uuid(store::system_now_ms(), random)};
  return true;
}

template <class Id>
bool mint_if_absent(std::optional<Id>& id) {
  if (id) return false;
  Random random(engine::random_seed());
  id = Id{mint_uuid(store::system_now_ms(), random)};
  return true;
}
bool complete_request(CreateFlow& request, const EngineOptions&) {
  return mint_if_absent(request.flow_id);
}
bool complete_request(SubmitFlow& request, const EngineOptions&) {
  return mint_if_absent(request.flow_id);
}
bool complete_request(StageEdge& request, const EngineOptions&) {
  return mint_if_absent(request.edge_id);
}

template <class Request>
engine::Operation make_operation(Request request, std::function<void(Result<typename Request::Answer>)> done,
                                 const EngineOptions& options) {
  struct State {
    Request request;
    std::function<void(Result<typename Request::Answer>)> done;
    std::optional<Result<typename Request::Answer>> result;
    bool makes_new{false};
  };
  const bool makes_new = complete_request(request, options);
  engine::Operation operation;
  operation.bytes = engine::weight(request);
  operation.affinity = engine::affinity(request);
  operation.in_order = requires {
    request.fence;
  };
  operation.seed = engine::random_seed();
  const auto now = steady_clock::now();
  operation.deadline = now + options.operation_deadline;
  if constexpr (std::is_same_v<Request, ClaimTasks>) {
    operation.claim = std::make_shared<const ClaimTasks>(request);
    operation.wait_until = now + std::chrono::milliseconds(request.wait_ms);
    operation.deadline = std::max(operation.deadline, operation.wait_until + options.operation_deadline);
  }
  auto state = std::make_shared<State>(std::move(request), std::move(done), std::nullopt, makes_new);
  const PartitionCounts partitions{options.flow_partitions, options.budget_partitions,
                                   options.quota_partitions};
  // Once only: the batch may be run again although the store has kept it.
  const auto expect_new = [state, partitions](core::Unit& unit) {
    if (std::exchange(state->makes_new, false)) engine::expect_new(unit, state->request, partitions);
  };
  operation.want = [state, partitions, expect_new](core::Unit& unit) {
    expect_new(unit);
    engine::want(unit, state->request, partitions);
  };
  operation.run = [state, expect_new](core::Unit& unit, core::Context& at) {
    expect_new(unit);
    if constexpr (std::is_same_v<Request, ClaimTasks>) {
      if (engine::is_abandoned(state->request)) {
        state->result.emplace();
        return engine::Outcome::undo;
      }
    }
    state->result = engine::apply(unit, state->request, at);
    return *state->result ? engine::Outcome::keep : engine::Outcome::undo;
  };
  operation.answer = [state](const Error* refusal) {
    if (refusal)
      state->done(std::unexpected(*refusal));
    else
      state->done(*std::move(state->result));
  };
  if constexpr (std::is_same_v<Request, ClaimTasks>) {
    operation.came_back_empty = [state] {
      return *state->result && (*state->result)->empty() && !engine::is_abandoned(state->request);
    };
  }
  return operation;
}

}  // namespace

namespace {

// Many operations that are answered as one.
void create_all(engine::Committers& committers, CreateExecutions request,
                std::function<void(Result<CreateExecutions::Answer>)> answer, const EngineOptions& options) {
  const auto count = request.executions.size();
  if (count < 1 || count > kMaxCreates) {
    return answer(fail_with(ErrorCode::invalid_input, "executions: out of range",
                            "Submit 1 to 1000 executions in one call."));
  }
  struct State {
    CreateExecutions::Answer results;
    std::atomic<std::size_t> missing;
    std::function<void(Result<CreateExecutions::Answer>)> answer;
  };
  auto state = std::make_shared<State>();
  state->results.resize(count);
  state->missing = count;
  state->answer = std::move(answer);
  std::vector<engine::Operation> operations;
  for (std::size_t i = 0; i < count; ++i) {
    operations.push_back(make_operation<CreateExecution>(
        std::move(request.executions[i]),
        [state, i](Result<Creation> result) {
          state->results[i] = std::move(result);
          if (--state->missing == 0) state->answer(std::move(state->results));
        },
        options));
  }
  committers.submit(std::move(operations));
}

// Takes work that a grant reserves.
template <class Request>
inline constexpr bool uses_grant =
    std::is_same_v<Request, ClaimGranted> || std::is_same_v<Request, ClaimExecution> ||
    std::is_same_v<Request, ClaimResumedExecution>;

// Where it was is known only of what was claimed.
template <class Answer>
Answer counting_grant_claim(engine::Tally& tally, Answer answer) {
  return [&tally, began = steady_clock::now(), answer = std::move(answer)](Result<ClaimedTask> task) {
    const std::chrono::duration<double> taken = steady_clock::now() - began;
    tally.count_grant_claim(task ? task->lane_id : "unknown", taken.count());
    answer(std::move(task));
  };
}

using Answered = std::function<void(Result<Suspended>)>;

// Who came with a handle is given one of what is suspended.
Answered with_handle(std::optional<OpaqueHandle> handle, Answered answer) {
  if (!handle) return answer;
  handle->kind = HandleKind::suspended;
  return [handle = *std::move(handle), answer = std::move(answer)](Result<Suspended> result) {
    if (result && !result->already_satisfied) result->handle = handle;
    answer(std::move(result));
  };
}

}  // namespace

template <class Request>
void Engine::post(Request request, std::function<void(Result<typename Request::Answer>)> answer,
                  const std::optional<ExecutionId>& in_order_with) {
  [[maybe_unused]] const auto enqueue = [&](engine::Operation operation) {
    if (in_order_with) {
      operation.affinity = engine::affinity_of(*in_order_with);
      operation.in_order = true;
    }
    impl_->committers.submit(std::move(operation));
  };
  if constexpr (is_read<Request>) {
    answer(engine::answer(impl_->readers, request));
  } else if constexpr (std::is_same_v<Request, TailStream>) {
    engine::tail(impl_->readers, impl_->watchers, std::move(request), std::move(answer));
  } else if constexpr (std::is_same_v<Request, AwaitExecution>) {
    engine::await_end(impl_->readers, impl_->watchers, std::move(request), std::move(answer));
  } else if constexpr (std::is_same_v<Request, FollowEvents>) {
    engine::follow(impl_->readers, impl_->watchers, std::move(request), std::move(answer));
  } else if constexpr (std::is_same_v<Request, CheckStore>) {
    answer(engine::check_store(impl_->readers, impl_->committers, request, impl_->options));
  } else if constexpr (std::is_same_v<Request, CancelFlow>) {
    auto then = std::move(answer);
    if (request.wait) {
      then = engine::finish_cancel(
          {impl_->committers, impl_->readers, impl_->watchers, impl_->options, request}, std::move(then));
    }
    enqueue(make_operation(std::move(request), std::move(then), impl_->options));
  } else if constexpr (std::is_same_v<Request, MarkWorkerDead>) {
    auto then = engine::offer_leases({request.namespace_, request.worker_instance_id}, impl_->committers,
                                     impl_->options, std::move(answer));
    enqueue(make_operation(std::move(request), std::move(then), impl_->options));
  } else if constexpr (std::is_same_v<Request, SuspendExecution>) {
    const auto now_ms = impl_->options.now_ms ? impl_->options.now_ms() : store::system_now_ms();
    if (auto ok = engine::resolve_handle(request, impl_->backend, now_ms); !ok) {
      return answer(std::unexpected(ok.error()));
    }
    auto then = with_handle(request.handle, std::move(answer));
    enqueue(make_operation(std::move(request), std::move(then), impl_->options));
  } else if constexpr (std::is_same_v<Request, ClaimTasks>) {
    if (!request.abandoned) {
      return enqueue(make_operation(std::move(request), std::move(answer), impl_->options));
    }
    // One that was woken and then not wanted leaves its work to others who wait.
    auto then = [this, gone = request.abandoned, lanes = request.lanes,
                 answer = std::move(answer)](Result<std::vector<ClaimedTask>> tasks) {
      if (*gone) impl_->heard(lanes);
      answer(std::move(tasks));
    };
    enqueue(make_operation<ClaimTasks>(std::move(request), std::move(then), impl_->options));
  } else if constexpr (std::is_same_v<Request, RenewLease>) {
    auto then = [this, answer = std::move(answer)](Result<Renewal> renewal) {
      impl_->tally.count_renewal(renewal.has_value());
      answer(std::move(renewal));
    };
    enqueue(make_operation<RenewLease>(std::move(request), std::move(then), impl_->options));
  } else if constexpr (uses_grant<Request>) {
    auto then = counting_grant_claim(impl_->tally, std::move(answer));
    enqueue(make_operation(std::move(request), std::move(then), impl_->options));
  } else if constexpr (std::is_same_v<Request, CreateExecutions>) {
    create_all(impl_->committers, std::move(request), std::move(answer), impl_->options);
  } else {
    enqueue(make_operation(std::move(request), std::move(answer), impl_->options));
  }
}

template <class Request>
Result<typename Request::Answer> Engine::call(Request request) {
  if constexpr (is_read<Request>)
    return engine::answer(impl_->readers, request);
  else
    return submit(std::move(request)).get();
}

// The templates are defined here, so that the public header stays light; each request is compiled once.
#define FLOWFABRIC_OPERATION(Request)                                                        \
  template void Engine::post(Request, std::function<void(Result<typename Request::Answer>)>, \
                             const std::optional<ExecutionId>&);                             \
  template Result<typename Request::Answer> Engine::call(Request);
FLOWFABRIC_OPERATION(CreateExecution)
FLOWFABRIC_OPERATION(ClaimTasks)
FLOWFABRIC_OPERATION(RenewLease)
FLOWFABRIC_OPERATION(UpdateProgress)
FLOWFABRIC_OPERATION(CompleteExecution)
FLOWFABRIC_OPERATION(FailExecution)
FLOWFABRIC_OPERATION(DelayExecution)
FLOWFABRIC_OPERATION(CancelExecution)
FLOWFABRIC_OPERATION(DescribeExecution)
FLOWFABRIC_OPERATION(ReadResult)
FLOWFABRIC_OPERATION(ListAttempts)
FLOWFABRIC_OPERATION(CountLane)
FLOWFABRIC_OPERATION(ReadLeaseEvents)
FLOWFABRIC_OPERATION(ReadCompletions)
FLOWFABRIC_OPERATION(IssueClaimGrant)
FLOWFABRIC_OPERATION(ClaimForWorker)
FLOWFABRIC_OPERATION(ClaimExecution)
FLOWFABRIC_OPERATION(ClaimResumedExecution)
FLOWFABRIC_OPERATION(ClaimGranted)
FLOWFABRIC_OPERATION(IssueGrantAndClaim)
FLOWFABRIC_OPERATION(IssueReclaimGrant)
FLOWFABRIC_OPERATION(ReclaimExecution)
FLOWFABRIC_OPERATION(BlockExecution)
FLOWFABRIC_OPERATION(UnblockExecution)
FLOWFABRIC_OPERATION(HoldExecution)
FLOWFABRIC_OPERATION(ReleaseExecution)
FLOWFABRIC_OPERATION(RevokeLease)
FLOWFABRIC_OPERATION(ChangePriority)
FLOWFABRIC_OPERATION(ReplayExecution)
FLOWFABRIC_OPERATION(SetTags)
FLOWFABRIC_OPERATION(CreateExecutions)
FLOWFABRIC_OPERATION(StartBulkOperation)
FLOWFABRIC_OPERATION(ReadBulkOperation)
FLOWFABRIC_OPERATION(CancelBulkOperation)
FLOWFABRIC_OPERATION(RegisterLane)
FLOWFABRIC_OPERATION(SetLaneState)
FLOWFABRIC_OPERATION(SetLaneFairness)
FLOWFABRIC_OPERATION(ListLanes)
FLOWFABRIC_OPERATION(RegisterWorker)
FLOWFABRIC_OPERATION(HeartbeatWorker)
FLOWFABRIC_OPERATION(MarkWorkerDead)
FLOWFABRIC_OPERATION(ListWorkers)
FLOWFABRIC_OPERATION(ReadState)
FLOWFABRIC_OPERATION(ReadContext)
FLOWFABRIC_OPERATION(ReadTags)
FLOWFABRIC_OPERATION(ListExecutions)
FLOWFABRIC_OPERATION(ListPartition)
FLOWFABRIC_OPERATION(ListExpiredLeases)
FLOWFABRIC_OPERATION(ReadOperatorEvents)
FLOWFABRIC_OPERATION(ReadWorkerEvents)
FLOWFABRIC_OPERATION(CheckStore)
FLOWFABRIC_OPERATION(ReadFigures)
FLOWFABRIC_OPERATION(SuspendExecution)
FLOWFABRIC_OPERATION(CreateWaitpoint)
FLOWFABRIC_OPERATION(CloseWaitpoint)
FLOWFABRIC_OPERATION(DeliverSignal)
FLOWFABRIC_OPERATION(DeliverApprovalSignal)
FLOWFABRIC_OPERATION(ResumeExecution)
FLOWFABRIC_OPERATION(SeedWaitpointSecret)
FLOWFABRIC_OPERATION(RotateWaitpointSecret)
FLOWFABRIC_OPERATION(ListWaitpointKids)
FLOWFABRIC_OPERATION(ListPendingWaitpoints)
FLOWFABRIC_OPERATION(ReadWaitpointToken)
FLOWFABRIC_OPERATION(DescribeSuspension)
FLOWFABRIC_OPERATION(ListSuspended)
FLOWFABRIC_OPERATION(ObserveSignals)
FLOWFABRIC_OPERATION(ReadSignalEvents)
FLOWFABRIC_OPERATION(CreateFlow)
FLOWFABRIC_OPERATION(AddFlowMember)
FLOWFABRIC_OPERATION(StageEdge)
FLOWFABRIC_OPERATION(ApplyEdge)
FLOWFABRIC_OPERATION(SetJoinPolicy)
FLOWFABRIC_OPERATION(SetFlowTags)
FLOWFABRIC_OPERATION(SubmitFlow)
FLOWFABRIC_OPERATION(CancelFlow)
FLOWFABRIC_OPERATION(AckCancelMember)
FLOWFABRIC_OPERATION(WaitForChildren)
FLOWFABRIC_OPERATION(EvaluateFlowEligibility)
FLOWFABRIC_OPERATION(PromoteBlocked)
FLOWFABRIC_OPERATION(DescribeFlow)
FLOWFABRIC_OPERATION(DescribeEdge)
FLOWFABRIC_OPERATION(ListEdges)
FLOWFABRIC_OPERATION(ListFlowPartition)
FLOWFABRIC_OPERATION(ListFlows)
FLOWFABRIC_OPERATION(ReadFlowGraph)
FLOWFABRIC_OPERATION(AppendFrame)
FLOWFABRIC_OPERATION(ReadStream)
FLOWFABRIC_OPERATION(ReadHistory)
FLOWFABRIC_OPERATION(TailStream)
FLOWFABRIC_OPERATION(AwaitExecution)
FLOWFABRIC_OPERATION(FollowEvents)
FLOWFABRIC_OPERATION(ReadOutput)
FLOWFABRIC_OPERATION(ReadSummary)
FLOWFABRIC_OPERATION(ListStreams)
FLOWFABRIC_OPERATION(CreateBudget)
FLOWFABRIC_OPERATION(ReportUsage)
FLOWFABRIC_OPERATION(RecordSpend)
FLOWFABRIC_OPERATION(ReleaseBudget)
FLOWFABRIC_OPERATION(ResetBudget)
FLOWFABRIC_OPERATION(SetBudgetLimits)
FLOWFABRIC_OPERATION(DeleteBudget)
FLOWFABRIC_OPERATION(AttachBudget)
FLOWFABRIC_OPERATION(DetachBudget)
FLOWFABRIC_OPERATION(CreateQuotaPolicy)
FLOWFABRIC_OPERATION(DeleteQuotaPolicy)
FLOWFABRIC_OPERATION(CheckAdmission)
FLOWFABRIC_OPERATION(ReleaseAdmission)
FLOWFABRIC_OPERATION(AttachQuotaPolicy)
FLOWFABRIC_OPERATION(DetachQuotaPolicy)
FLOWFABRIC_OPERATION(ReadBudget)
FLOWFABRIC_OPERATION(ListBudgets)
FLOWFABRIC_OPERATION(ListBreaches)
FLOWFABRIC_OPERATION(ListSpending)
FLOWFABRIC_OPERATION(ReadQuotaPolicy)
FLOWFABRIC_OPERATION(ListQuotaPolicies)
FLOWFABRIC_OPERATION(ExplainWaiting)
#undef FLOWFABRIC_OPERATION

}  // namespace flowfabric
