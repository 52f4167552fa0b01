// An engine on one of the stores, a clock that stands still until it is told otherwise, and short words for
// what tests do with them. Calls that must succeed throw when they do not, which fails the test at once.
//
// Whatever a test does, its executions are looked at when it ends: the invariants must hold, and the counts
// of every lane must be the truth.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <concepts>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "flowfabric/engine.h"
#include "support/checks.h"
#include "support/policies.h"
#include "support/printing.h"
#include "support/temporary_folder.h"
#include "support/vectors.h"

namespace flowfabric::tests {

inline constexpr std::int64_t kStart = 1'750'000'000'000;
inline constexpr std::int64_t kLeaseTtl = 30'000;
inline constexpr std::int64_t kHour = 3'600'000;
inline constexpr const char* kWorker = "worker-1";

using Counts = std::map<PublicState, std::int64_t>;
// `epoch type reason` of each lease event, `index type state reason` of each attempt: see lease_log().
using Log = std::vector<std::string>;

// All that can be read of one execution: what a refused call must leave alone.
struct Story {
  ExecutionSnapshot execution;
  std::vector<AttemptSnapshot> attempts;
  std::vector<LeaseEventView> lease_events;
  std::vector<CompletionEventView> completions;
  std::optional<std::string> result;
  Counts counts;
  bool operator==(const Story&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Story& story) {
  return out << story.execution << ' ' << ::testing::PrintToString(story.attempts) << ' '
             << ::testing::PrintToString(story.lease_events) << ' '
             << ::testing::PrintToString(story.completions);
}

class EngineFixture : public ::testing::Test {
 protected:
  explicit EngineFixture(const std::string& store) : engine_(open(store)) {}

  void TearDown() override {
    std::map<std::string, Counts> truth;
    for (const auto& id : created_) {
      const auto seen = describe(id);
      ++truth[seen.lane_id][seen.state.public_state];
    }
    for (const auto& [lane, counts] : truth) EXPECT_EQ(count(lane), counts) << "lane " << lane;
  }

  Engine& engine() { return engine_; }

  // ---- time ----

  std::int64_t now() const { return *clock_; }
  // Moves the clock; nobody has noticed yet.
  void tick(std::int64_t ms) { *clock_ += ms; }
  void run_due() {
    if (auto ran = engine_.run_due(); !ran) throw std::runtime_error(ran.error().to_string());
  }
  // Moves the clock and lets every rule fire that is due then.
  void advance(std::int64_t ms) {
    tick(ms);
    run_due();
  }

  // ---- calls ----

  template <class Request>
  Result<typename Request::Answer> call(Request request) {
    auto answer = engine_.call(std::move(request));
    if constexpr (std::is_same_v<Request, CreateExecution>) {
      if (answer && !answer->duplicate) remember(answer->execution_id);
    }
    return answer;
  }
  // Something was created behind the fixture's back, and is to be looked at in the end.
  void remember(const ExecutionId& id) { created_.push_back(id); }
  // It was removed after its retention.
  void forget(const ExecutionId& id) { std::erase(created_, id); }

  template <class Request>
  typename Request::Answer must(Request request) {
    auto answer = call(std::move(request));
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }

  // The call is refused with this code, and for this reason where the specification words it.
  template <class Request>
  Error expect_error(Request request, ErrorCode code, const std::string& detail = "") {
    const auto answer = call(std::move(request));
    if (answer) {
      ADD_FAILURE() << "succeeded instead of answering " << error_name(code);
      return {};
    }
    EXPECT_EQ(error_name(answer.error().code), error_name(code)) << answer.error().to_string();
    if (!detail.empty()) {
      EXPECT_EQ(answer.error().detail, detail);
    }
    EXPECT_FALSE(answer.error().advice.empty()) << "an error tells its reader what to do";
    return answer.error();
  }

  // The call is refused, and nothing that can be read of the execution has changed.
  template <class Request>
  Error expect_refused(Request request, ErrorCode code) {
    const auto id = request.execution_id;
    const auto before = story(id);
    const auto error = expect_error(std::move(request), code);
    EXPECT_EQ(story(id), before);
    return error;
  }

  // A policy alone is enough, where nothing else matters (a template, so that `{…}` means a request).
  ExecutionId create(CreateExecution request = {}) {
    if (request.execution_kind.empty()) request.execution_kind = "test";
    return must(std::move(request)).execution_id;
  }
  template <std::same_as<ExecutionPolicy> Policy>
  ExecutionId create(Policy policy) {
    return create({.policy = std::move(policy)});
  }

  std::vector<ClaimedTask> claim(ClaimTasks request = {}) {
    if (request.worker_id.empty()) request.worker_id = kWorker;
    return must(std::move(request));
  }
  ClaimedTask claim_one(ClaimTasks request = {}) {
    auto tasks = claim(std::move(request));
    if (tasks.size() != 1) throw std::runtime_error("claimed " + std::to_string(tasks.size()) + " tasks");
    return std::move(tasks.front());
  }
  // In the order in which a worker takes them one by one.
  std::vector<ExecutionId> claim_all(const ClaimTasks& request = {}) {
    std::vector<ExecutionId> taken;
    for (auto tasks = claim(request); !tasks.empty(); tasks = claim(request)) {
      for (const auto& task : tasks) taken.push_back(task.execution_id);
    }
    return taken;
  }

  Renewal renew(const ClaimedTask& task, std::int64_t ttl_ms = kLeaseTtl) {
    return must(RenewLease{task.execution_id, task.fence, task.attempt_index, ttl_ms});
  }
  void progress(const ClaimedTask& task, std::int32_t percent) {
    must(UpdateProgress{.execution_id = task.execution_id, .fence = task.fence, .percent = percent});
  }
  static CompleteExecution completion(const ClaimedTask& task, std::string result = "") {
    return {.execution_id = task.execution_id, .fence = task.fence, .result = std::move(result)};
  }
  void complete(const ClaimedTask& task, std::string result = "") {
    must(completion(task, std::move(result)));
  }
  static FailExecution failure(const ClaimedTask& task, std::string reason = "boom",
                               std::string category = "transient") {
    return {task.execution_id, task.fence, std::move(reason), std::move(category)};
  }
  Failed fail(const ClaimedTask& task, std::string reason = "boom", std::string category = "transient") {
    return must(failure(task, std::move(reason), std::move(category)));
  }
  static DelayExecution postponement(const ClaimedTask& task, std::int64_t until) {
    return {task.execution_id, task.fence, until};
  }
  Delayed delay(const ClaimedTask& task, std::int64_t until) { return must(postponement(task, until)); }
  Cancelled cancel(const ExecutionId& id, const std::string& reason = "enough") {
    return must(CancelExecution{.execution_id = id, .reason = reason});
  }

  // ---- executions in a given state; nothing else may be claimable ----

  ClaimedTask running(CreateExecution request = {}) {
    const auto id = create(std::move(request));
    auto task = claim_one();
    if (task.execution_id != id) throw std::runtime_error("claimed another execution");
    return task;
  }
  template <std::same_as<ExecutionPolicy> Policy>
  ClaimedTask running(Policy policy) {
    return running(CreateExecution{.policy = std::move(policy)});
  }
  ClaimedTask lost(CreateExecution request = {}) {
    auto task = running(std::move(request));
    advance(kLeaseTtl);
    return task;
  }
  template <std::same_as<ExecutionPolicy> Policy>
  ClaimedTask lost(Policy policy) {
    return lost(CreateExecution{.policy = std::move(policy)});
  }

  // ---- what can be read ----

  StateVector state(const ExecutionId& id) { return describe(id).state; }
  ExecutionSnapshot describe(const ExecutionId& id) { return story(id).execution; }
  std::vector<AttemptSnapshot> attempts(const ExecutionId& id) { return must(ListAttempts{id}); }
  std::optional<std::string> result(const ExecutionId& id) { return must(ReadResult{id}); }
  Counts count(const std::string& lane = "default") { return must(CountLane{lane}); }
  std::vector<LeaseEventView> lease_events(const ExecutionId& id) { return events_of<ReadLeaseEvents>(id); }
  std::vector<CompletionEventView> completions(const ExecutionId& id) {
    return events_of<ReadCompletions>(id);
  }

  Story story(const ExecutionId& id) {
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

  // {"1 acquired", "1 released completed"}: epoch, type, reason.
  Log lease_log(const ExecutionId& id) {
    return log_of(lease_events(id), [](std::ostream& out, const LeaseEventView& event) {
      out << event.lease_epoch << ' ' << event.type;
      if (!event.reason.empty()) out << ' ' << event.reason;
    });
  }
  // {"0 initial ended_failure boom"}: index, type, state, reason of the failure.
  Log attempt_log(const ExecutionId& id) {
    return log_of(attempts(id), [](std::ostream& out, const AttemptSnapshot& attempt) {
      out << attempt.attempt_index << ' ' << attempt.attempt_type << ' ' << attempt.attempt_state;
      if (!attempt.failure_reason.empty()) out << ' ' << attempt.failure_reason;
    });
  }
  std::vector<TerminalOutcome> outcomes(const ExecutionId& id) {
    std::vector<TerminalOutcome> all;
    for (const auto& event : completions(id)) all.push_back(event.outcome);
    return all;
  }

 private:
  Engine open(const std::string& store) {
    std::string url = store == "memory_deferred" ? "memory:?load=deferred" : "memory:";
    // What survives a power loss is not the question here, so commits need not wait for the disk.
    if (store == "sqlite") url = "sqlite:" + folder_.file("flowfabric.db") + "?synchronous=normal";
    EngineOptions options;
    options.clock_interval = std::chrono::milliseconds(0);
    options.now_ms = [clock = clock_] { return clock->load(); };
    auto engine = Engine::open(url, std::move(options));
    if (!engine) throw std::runtime_error(engine.error().to_string());
    return *std::move(engine);
  }

  template <class Read>
  typename Read::Answer events_of(const ExecutionId& id) {
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

  template <class Items, class Print>
  static Log log_of(const Items& items, Print print) {
    Log log;
    for (const auto& item : items) {
      std::ostringstream line;
      print(line, item);
      log.push_back(line.str());
    }
    return log;
  }

  TemporaryFolder folder_;
  // Shared with the engine's threads.
  std::shared_ptr<std::atomic<std::int64_t>> clock_ = std::make_shared<std::atomic<std::int64_t>>(kStart);
  Engine engine_;
  std::vector<ExecutionId> created_;
  std::map<ExecutionId, std::int64_t> epochs_;
};

inline const auto kStores = ::testing::Values("memory", "memory_deferred", "sqlite");

// The base of every suite that runs once per store.
class EngineTest : public EngineFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  EngineTest() : EngineFixture(GetParam()) {}
};
inline std::string store_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

// The base of every suite that runs once per store and case; a case has a `name`.
template <class Case>
class EngineCaseTest : public EngineFixture,
                       public ::testing::WithParamInterface<std::tuple<const char*, Case>> {
 protected:
  EngineCaseTest() : EngineFixture(std::get<0>(this->GetParam())) {}
  const Case& given() const { return std::get<1>(this->GetParam()); }
};
template <class Case>
auto on_every_store(const std::vector<Case>& cases) {
  return ::testing::Combine(kStores, ::testing::ValuesIn(cases));
}
template <class Case>
std::string case_name(const ::testing::TestParamInfo<std::tuple<const char*, Case>>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

}  // namespace flowfabric::tests
