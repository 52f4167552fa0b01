#include "support/engine_fixture.h"

#include <sstream>

#include "support/checks.h"

namespace flowfabric::tests {

namespace {

template <class Items, class Print>
Log log_of(const Items& items, Print print) {
  Log log;
  for (const auto& item : items) {
    std::ostringstream line;
    print(line, item);
    log.push_back(line.str());
  }
  return log;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Story& story) {
  return out << story.execution << ' ' << ::testing::PrintToString(story.attempts) << ' '
             << ::testing::PrintToString(story.lease_events) << ' '
             << ::testing::PrintToString(story.completions);
}

void EngineFixture::TearDown() {
  std::map<std::string, StateCounts> truth;
  for (const auto& id : created_) {
    const auto seen = describe(id);
    ++truth[seen.lane_id][seen.state.public_state];
  }
  for (const auto& [lane, counts] : truth) EXPECT_EQ(count(lane), counts) << "lane " << lane;
}

Engine EngineFixture::open(const std::string& url, EngineOptions options) {
  options.clock_interval = std::chrono::milliseconds(0);
  options.now_ms = [clock = clock_] { return clock->load(); };
  auto engine = Engine::open(url, std::move(options));
  if (!engine) give_up(engine.error());
  return *std::move(engine);
}

// ---- time ----

void EngineFixture::run_due() {
  if (auto ran = engine_.run_due(); !ran) give_up(ran.error());
}

void EngineFixture::advance(std::int64_t ms) {
  tick(ms);
  run_due();
}

// ---- calls ----

void EngineFixture::give_up(const Error& error) {
  throw std::runtime_error(error.to_string());
}

Error EngineFixture::check_error(const Error* error, ErrorCode code, const std::string& detail) {
  if (error == nullptr) {
    ADD_FAILURE() << "succeeded instead of answering " << error_name(code);
    return {};
  }
  EXPECT_EQ(error_name(error->code), error_name(code)) << error->to_string();
  if (!detail.empty()) {
    EXPECT_EQ(error->detail, detail);
  }
  EXPECT_FALSE(error->advice.empty()) << "an error tells its reader what to do";
  return *error;
}

void EngineFixture::expect_unchanged(const Story& before) {
  EXPECT_EQ(story(before.execution.execution_id), before);
}

ExecutionId EngineFixture::create(CreateExecution request) {
  if (request.execution_kind.empty()) request.execution_kind = "test";
  return must(std::move(request)).execution_id;
}

std::vector<ClaimedTask> EngineFixture::claim(ClaimTasks request) {
  if (request.worker_id.empty()) request.worker_id = kWorker;
  return must(std::move(request));
}
ClaimedTask EngineFixture::claim_one(ClaimTasks request) {
  auto tasks = claim(std::move(request));
  if (tasks.size() != 1) throw std::runtime_error("claimed " + std::to_string(tasks.size()) + " tasks");
  return std::move(tasks.front());
}
std::vector<ExecutionId> EngineFixture::claim_all(const ClaimTasks& request) {
  std::vector<ExecutionId> taken;
  for (auto tasks = claim(request); !tasks.empty(); tasks = claim(request)) {
    for (const auto& task : tasks) taken.push_back(task.execution_id);
  }
  return taken;
}

Renewal EngineFixture::renew(const ClaimedTask& task, std::int64_t ttl_ms) {
  return must(RenewLease{task.execution_id, task.fence, task.attempt_index, ttl_ms});
}
void EngineFixture::progress(const ClaimedTask& task, std::int32_t percent) {
  must(UpdateProgress{.execution_id = task.execution_id, .fence = task.fence, .percent = percent});
}

CompleteExecution EngineFixture::completion(const ClaimedTask& task, std::string result) {
  return {.execution_id = task.execution_id, .fence = task.fence, .result = std::move(result)};
}
void EngineFixture::complete(const ClaimedTask& task, std::string result) {
  must(completion(task, std::move(result)));
}

FailExecution EngineFixture::failure(const ClaimedTask& task, std::string reason, std::string category) {
  return {task.execution_id, task.fence, std::move(reason), std::move(category)};
}
Failed EngineFixture::fail(const ClaimedTask& task, std::string reason, std::string category) {
  return must(failure(task, std::move(reason), std::move(category)));
}

DelayExecution EngineFixture::postponement(const ClaimedTask& task, std::int64_t until) {
  return {task.execution_id, task.fence, until};
}
Delayed EngineFixture::delay(const ClaimedTask& task, std::int64_t until) {
  return must(postponement(task, until));
}

Cancelled EngineFixture::cancel(const ExecutionId& id, const std::string& reason) {
  return must(CancelExecution{.execution_id = id, .reason = reason});
}

// ---- executions in a given state ----

ClaimedTask EngineFixture::running(CreateExecution request) {
  const auto id = create(std::move(request));
  auto task = claim_one();
  if (task.execution_id != id) throw std::runtime_error("claimed another execution");
  return task;
}
ClaimedTask EngineFixture::lost(CreateExecution request) {
  auto task = running(std::move(request));
  advance(kLeaseTtl);
  return task;
}

// ---- what can be read ----

template <class Read>
typename Read::Answer EngineFixture::events_of(const ExecutionId& id) {
  typename Read::Answer all;
  for (std::int64_t after = 0;;) {
    const auto page = must(Read{after, 1000});
    if (page.empty()) break;
    after = page.back().event_id;
    for (const auto& event : page) {
      if (event.execution_id == id) all.push_back(event);
    }
  }
  return all;
}

StateVector EngineFixture::state(const ExecutionId& id) {
  return describe(id).state;
}
ExecutionSnapshot EngineFixture::describe(const ExecutionId& id) {
  return story(id).execution;
}
std::vector<AttemptSnapshot> EngineFixture::attempts(const ExecutionId& id) {
  return must(ListAttempts{id});
}
std::optional<std::string> EngineFixture::result(const ExecutionId& id) {
  return must(ReadResult{id});
}
StateCounts EngineFixture::count(const std::string& lane) {
  return must(CountLane{lane});
}
std::vector<LeaseEventView> EngineFixture::lease_events(const ExecutionId& id) {
  return events_of<ReadLeaseEvents>(id);
}
std::vector<CompletionEventView> EngineFixture::completions(const ExecutionId& id) {
  return events_of<ReadCompletions>(id);
}

Story EngineFixture::story(const ExecutionId& id) {
  Story seen{.execution = must(DescribeExecution{id}),
             .attempts = attempts(id),
             .lease_events = lease_events(id),
             .completions = completions(id),
             .result = result(id),
             .counts = {}};
  seen.counts = count(seen.execution.lane_id);
  check_snapshot(seen.execution);
  check_attempts(seen.execution, seen.attempts);
  check_events(seen.execution, seen.lease_events);
  check_events(seen.execution, seen.completions);
  const bool terminal = seen.execution.state.lifecycle_phase == LifecyclePhase::terminal;
  EXPECT_EQ(seen.completions.size(), seen.execution.replay_count + (terminal ? 1u : 0u))
      << "one completion event per end";
  auto& epoch = epochs_[id];
  EXPECT_GE(seen.execution.lease_epoch, epoch) << "I10";
  epoch = seen.execution.lease_epoch;
  return seen;
}

Log EngineFixture::lease_log(const ExecutionId& id) {
  return log_of(lease_events(id), [](std::ostream& out, const LeaseEventView& event) {
    out << event.lease_epoch << ' ' << event.type;
    if (!event.reason.empty()) out << ' ' << event.reason;
  });
}
Log EngineFixture::attempt_log(const ExecutionId& id) {
  return log_of(attempts(id), [](std::ostream& out, const AttemptSnapshot& attempt) {
    out << attempt.attempt_index << ' ' << attempt.attempt_type << ' ' << attempt.attempt_state;
    if (!attempt.failure_reason.empty()) out << ' ' << attempt.failure_reason;
  });
}
std::vector<TerminalOutcome> EngineFixture::outcomes(const ExecutionId& id) {
  std::vector<TerminalOutcome> all;
  for (const auto& event : completions(id)) all.push_back(event.outcome.known);
  return all;
}

}  // namespace flowfabric::tests
