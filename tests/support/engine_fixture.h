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
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "flowfabric/engine.h"
#include "support/policies.h"
#include "support/printing.h"
#include "support/test_store.h"
#include "support/vectors.h"

namespace flowfabric::tests {

inline constexpr std::int64_t kStart = 1'750'000'000'000;
inline constexpr std::int64_t kLeaseTtl = 30'000;
inline constexpr std::int64_t kHour = 3'600'000;
inline constexpr const char* kWorker = "worker-1";

using StateCounts = std::map<PublicState, std::int64_t>;
// `epoch type reason` of each lease event, `index type state reason` of each attempt: see lease_log().
using Log = std::vector<std::string>;

// All that can be read of one execution: what a refused call must leave alone.
struct Story {
  ExecutionSnapshot execution;
  std::vector<AttemptSnapshot> attempts;
  std::vector<LeaseEventView> lease_events;
  std::vector<CompletionEventView> completions;
  std::optional<std::string> result;
  StateCounts counts;
  bool operator==(const Story&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Story& story);

class EngineFixture : public ::testing::Test {
 protected:
  explicit EngineFixture(const std::string& store) : store_(store), engine_(open(store_.url())) {}

  void TearDown() override;

  const TestStore& store() const { return store_; }
  Engine& engine() { return engine_; }
  // An engine with this fixture's clock, whose rules fire only on request.
  Engine open(const std::string& url, EngineOptions options = {});

  // ---- time ----

  std::int64_t now() const { return *clock_; }
  // Moves the clock without running its rules.
  void tick(std::int64_t ms) { *clock_ += ms; }
  void run_due();
  // Moves the clock and lets every rule fire that is due then.
  void advance(std::int64_t ms);

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
    if (!answer) give_up(answer.error());
    return *std::move(answer);
  }

  // The call is refused with this code, and for this reason where the specification words it.
  template <class Request>
  Error expect_error(Request request, ErrorCode code, const std::string& detail = "") {
    const auto answer = call(std::move(request));
    return check_error(answer ? nullptr : &answer.error(), code, detail);
  }

  // The call is refused, and nothing that can be read of the execution has changed.
  template <class Request>
  Error expect_refused(Request request, ErrorCode code) {
    const auto before = story(request.execution_id);
    const auto error = expect_error(std::move(request), code);
    expect_unchanged(before);
    return error;
  }

  // A policy alone is enough, where nothing else matters (a template, so that `{…}` means a request).
  ExecutionId create(CreateExecution request = {});
  template <std::same_as<ExecutionPolicy> Policy>
  ExecutionId create(Policy policy) {
    return create({.policy = std::move(policy)});
  }

  std::vector<ClaimedTask> claim(ClaimTasks request = {});
  ClaimedTask claim_one(ClaimTasks request = {});
  // In the order in which a worker takes them one by one.
  std::vector<ExecutionId> claim_all(const ClaimTasks& request = {});

  Renewal renew(const ClaimedTask& task, std::int64_t ttl_ms = kLeaseTtl);
  void progress(const ClaimedTask& task, std::int32_t percent);
  static CompleteExecution completion(const ClaimedTask& task, std::string result = "");
  void complete(const ClaimedTask& task, std::string result = "");
  static FailExecution failure(const ClaimedTask& task, std::string reason = "boom",
                               std::string category = "transient");
  Failed fail(const ClaimedTask& task, std::string reason = "boom", std::string category = "transient");
  static DelayExecution postponement(const ClaimedTask& task, std::int64_t until);
  Delayed delay(const ClaimedTask& task, std::int64_t until);
  Cancelled cancel(const ExecutionId& id, const std::string& reason = "enough");

  // ---- executions in a given state; nothing else may be claimable ----

  ClaimedTask running(CreateExecution request = {});
  template <std::same_as<ExecutionPolicy> Policy>
  ClaimedTask running(Policy policy) {
    return running(CreateExecution{.policy = std::move(policy)});
  }
  ClaimedTask lost(CreateExecution request = {});
  template <std::same_as<ExecutionPolicy> Policy>
  ClaimedTask lost(Policy policy) {
    return lost(CreateExecution{.policy = std::move(policy)});
  }

  // ---- what can be read ----

  StateVector state(const ExecutionId& id);
  ExecutionSnapshot describe(const ExecutionId& id);
  std::vector<AttemptSnapshot> attempts(const ExecutionId& id);
  std::optional<std::string> result(const ExecutionId& id);
  StateCounts count(const std::string& lane = "default");
  std::vector<LeaseEventView> lease_events(const ExecutionId& id);
  std::vector<CompletionEventView> completions(const ExecutionId& id);
  Story story(const ExecutionId& id);

  // {"1 acquired", "1 released completed"}: epoch, type, reason.
  Log lease_log(const ExecutionId& id);
  // {"0 initial ended_failure boom"}: index, type, state, reason of the failure.
  Log attempt_log(const ExecutionId& id);
  std::vector<TerminalOutcome> outcomes(const ExecutionId& id);

 private:
  [[noreturn]] static void give_up(const Error& error);
  static Error check_error(const Error* error, ErrorCode code, const std::string& detail);
  void expect_unchanged(const Story& before);
  template <class Read>
  typename Read::Answer events_of(const ExecutionId& id);

  TestStore store_;
  // Shared with the engine's threads.
  std::shared_ptr<std::atomic<std::int64_t>> clock_ = std::make_shared<std::atomic<std::int64_t>>(kStart);
  Engine engine_;
  std::vector<ExecutionId> created_;
  std::map<ExecutionId, std::int64_t> epochs_;
};

inline const auto kStores = ::testing::Values("memory", "memory_deferred", "sqlite", "postgres");
// Stores whose contents outlive the engine.
inline const auto kDurableStores = ::testing::Values("sqlite", "postgres");

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
