// Random operations on several stores at once: whatever is asked, all must answer the same and hold the same.
//
// A remote store (PostgreSQL, or memory that behaves like one) runs operations in another order than they
// came in, because those that meet a record that is not loaded have to wait. It tells its order, and the
// others are given the same one: so it is shown that every batch is as if its operations had run one after
// another.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "simulation/callers.h"
#include "simulation/model.h"
#include "simulation/queries.h"
#include "simulation/replica.h"
#include "simulation/state_checks.h"
#include "support/test_store.h"

namespace flowfabric::simulation {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::size_t kOperationsPerSeed = 6000;
constexpr std::size_t kBatchesBetweenLooks = 20;
// The rest at the end: long enough that routes and groups which nothing needs are removed.
constexpr int kRestSteps = 6;
constexpr std::int64_t kRestStepMs = 6 * 3'600'000;

// Always the same ones, so that what was green stays green. FF_SEED=<n> replays one seed, FF_SEEDS=<n> draws
// n new ones.
std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const char* given = std::getenv("FF_SEED")) return {std::strtoull(given, nullptr, 10)};
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 1);
  if (const char* given = std::getenv("FF_SEEDS")) {
    all.resize(std::strtoull(given, nullptr, 10));
    std::random_device device;
    for (auto& seed : all) seed = device();
  }
  return all;
}

struct Totals {
  std::size_t operations{0};
  std::size_t claimed{0};
  std::size_t purged{0};
  std::size_t put_off{0};
  std::size_t unregistered{0};                   // routes and groups
  std::map<std::string, std::size_t> succeeded;  // by request, or by what the answer says was done
  std::map<std::string, std::size_t> refused;    // "DeliverSignal invalid_token"
  std::set<std::string> suspensions_closed;      // "signal resumed": trigger and reason
};

void report(const char* what, const std::vector<std::uint64_t>& used, const Totals& totals) {
  std::printf(
      "%s: %zu operations, %zu tasks claimed, %zu executions removed, %zu routes and groups, %zu put off too "
      "often; seeds",
      what, totals.operations, totals.claimed, totals.purged, totals.unregistered, totals.put_off);
  for (const auto seed : used) std::printf(" %llu", static_cast<unsigned long long>(seed));
  std::printf("\n");
}

void expect_same_answers(const std::vector<Step>& steps, const Ran& expected, const Ran& actual,
                         const std::string& who) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_TRUE(actual.answers[i]) << who << " did not run step " << i;
    EXPECT_TRUE(*expected.answers[i] == *actual.answers[i])
        << who << ", step " << i << " (" << name_of(steps[i].request) << ")\n  expected "
        << to_text(*expected.answers[i]) << "\n  answered " << to_text(*actual.answers[i]);
  }
}

template <class Asked>
std::string short_name_of() {
  const auto name = name_of<Asked>();
  return name.substr(name.rfind(':') + 1);
}

// The name of a successful operation: the request's, except where the answer says more.
template <class Value>
std::string deed(const Value& answer, const std::string& request) {
  if constexpr (std::is_same_v<Value, core::Rule>)
    return std::string(enum_name(answer));
  else if constexpr (std::is_same_v<Value, ReclaimAnswer>)
    return std::string(enum_name(answer.status));
  else if constexpr (std::is_same_v<Value, SignalDelivered>)
    return request + " " + (answer.effect ? std::string(enum_name(*answer.effect)) : "duplicate");
  else if constexpr (std::is_same_v<Value, Suspended>)
    return request + (answer.already_satisfied ? " already satisfied" : " suspended");
  else if constexpr (std::is_same_v<Value, UsageReport> || std::is_same_v<Value, Admission>)
    return request + " " + std::string(enum_name(answer.outcome));
  else if constexpr (std::is_same_v<Value, SecretRotated>)
    return request + (answer.noop ? " noop" : " rotated") + (answer.gc_count > 0 ? " and collected" : "");
  else
    return request;
}

// A look for work that was blocked, or for what needs a route or a group, may not see what its own batch has
// changed: it comes a little later then.
enum class RouteLooks { with_others, alone };

class World {
 public:
  World(const std::string& remote_store, std::uint64_t seed)
      : remote_place(remote_store),
        callers(seed, now),
        memory("memory", "memory:", clock()),
        remote(remote_store, remote_place.url(), clock()),
        sqlite("sqlite", sqlite_place.url(), clock()),
        queries(callers.dice(), {&memory, &remote, &sqlite}) {}

  std::function<std::int64_t()> clock() {
    return [this] { return now; };
  }

  std::vector<Step> due_batch(RouteLooks looks) { return everything_due(60, looks); }
  std::vector<Step> next_batch(std::size_t size, RouteLooks looks) {
    auto& dice = callers.dice();
    auto steps = dice.chance(15) ? everything_due(60, looks) : std::vector<Step>();
    const bool looks_alone = looks == RouteLooks::alone && !steps.empty() && is_look(steps.front());
    if (looks_alone || (!steps.empty() && dice.chance(50))) return steps;
    const auto due = steps.size();
    for (std::size_t i = 0; i < size; ++i) steps.push_back(callers.next());
    if (dice.chance(50))
      std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(due), steps.end());
    return steps;
  }

  void learn(const std::vector<Step>& steps, const Ran& ran, Totals& totals) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      callers.learn(steps[i], *ran.answers[i]);
      model.observe(steps[i], *ran.answers[i], now);
      match(steps[i], *ran.answers[i],
            [&]<class Asked>([[maybe_unused]] const Asked& asked, const AnswerTo<Asked>& answer) {
              if constexpr (std::is_same_v<Asked, RunDue>) {
                const bool is_removal = answer && *answer == core::Rule::retention_trimmer;
                if (is_removal && !asked.key.template key_of<Execution>()) ++totals.unregistered;
              }
              if (answer)
                ++totals.succeeded[deed(*answer, short_name_of<Asked>())];
              else
                ++totals.refused[short_name_of<Asked>() + " " + std::string(error_name(answer.error().code))];
            });
    }
    totals.operations += steps.size();
  }

  void compare_states(Totals& totals) {
    const auto expected = memory.state();
    for (const auto& [key, row] : expected.rows<Suspension>()) {
      if (!row.details.closed_at_ms) continue;
      totals.suspensions_closed.insert(std::string(enum_name(row.details.resume_trigger)) + " " +
                                       row.details.close_reason);
    }
    for (auto* other : {&remote, &sqlite}) {
      EXPECT_EQ(differences(expected, other->state()), "") << "memory and " << other->name();
    }
    check_state(expected);
    model.check(expected);
    queries.compare(expected);
  }

  void finish(Totals& totals) {
    compare_states(totals);
    for (auto* replica : {&memory, &remote, &sqlite}) {
      const auto report = replica->faults();
      EXPECT_EQ(report.found, 0u) << replica->name() << ": " << report.violations.front().where << ": "
                                  << report.violations.front().what;
    }
    totals.claimed += model.claimed();
    totals.purged += model.purged();
  }

  std::int64_t now{kStart};
  tests::TestStore sqlite_place{"sqlite"};
  tests::TestStore remote_place;
  Callers callers;
  Model model;
  Replica memory;
  Replica remote;
  Replica sqlite;
  Queries queries;

 private:
  static bool is_look_at_blocked(const RecordKey& key) {
    return key.key_of<Route>() || key.key_of<Group>() || key.key_of<Budget>() || key.key_of<QuotaPolicy>();
  }
  static bool is_look(const Step& step) {
    const auto* due = std::get_if<RunDue>(&step.request);
    return due && is_look_at_blocked(due->key);
  }

  std::vector<Step> everything_due(std::size_t limit, RouteLooks looks) {
    auto keys = memory.due(limit);
    std::vector<Step> steps;
    if (looks == RouteLooks::alone && std::ranges::any_of(keys, is_look_at_blocked)) {
      std::erase_if(keys, [](const RecordKey& key) { return !is_look_at_blocked(key); });
      for (const auto& key : keys) steps.push_back(callers.step(RunDue{key}));
      return steps;
    }
    const auto ask = [&](Request request) { steps.push_back(callers.step(std::move(request))); };
    for (const auto& key : keys) {
      if (const auto* route = key.key_of<Route>()) just_before(*route, ask);
      ask(RunDue{key});
      if (const auto* id = key.key_of<Execution>()) just_after(*id, ask);
      if (const auto* job = key.key_of<BulkJob>()) just_after(*job, ask);
    }
    return steps;
  }

  // Operations that interfere with the clock, in the same batch.
  template <class Ask>
  void just_before(const RouteKey& route, const Ask& ask) {
    if (!callers.dice().chance(50)) return;
    if (const auto id = memory.best_offer(route)) {
      ask(BlockExecution{.execution_id = *id, .reason = BlockingReason::waiting_for_capable_worker});
    }
  }
  template <class Ask>
  void just_after(const ExecutionId& id, const Ask& ask) {
    if (callers.dice().chance(10)) ask(callers.create_again(id));
  }
  template <class Ask>
  void just_after(const BulkJobKey& job, const Ask& ask) {
    for (auto& request : memory.bulk_step(job)) ask(std::move(request));
  }
};

std::vector<Step> in_order(const std::vector<Step>& steps, const std::vector<std::size_t>& order) {
  std::vector<Step> sorted;
  for (const auto index : order) sorted.push_back(steps[index]);
  return sorted;
}

Ran in_order(const Ran& ran, const std::vector<std::size_t>& order) {
  Ran sorted;
  for (const auto index : order) sorted.answers.push_back(ran.answers[index]);
  return sorted;
}

// A day and a half without requests; the clock handles everything that comes due.
template <class Run>
void rest(World& world, RouteLooks looks, Totals& totals, Run run) {
  for (int i = 0; i < kRestSteps; ++i) {
    world.now += kRestStepMs;
    for (std::size_t batches = 1; batches < 1000; ++batches) {
      auto steps = world.due_batch(looks);
      if (steps.empty()) break;
      const auto answers = run(steps, batches);
      if (testing::Test::HasFailure()) return;
      world.learn(steps, answers, totals);
    }
    world.compare_states(totals);
    if (testing::Test::HasFailure()) return;
  }
  check_registrations(world.memory.state(), world.now);
}

// Takes the world through a seed. `run` gives a batch to every store, and may reorder its steps; it returns
// the answers.
template <class Run>
void simulate(World& world, std::size_t most_steps, RouteLooks looks, Totals& totals, Run run) {
  std::size_t done = 0;
  bool has_rested = false;
  for (std::size_t batches = 1; done < kOperationsPerSeed; ++batches) {
    if (done > kOperationsPerSeed / 2 && !std::exchange(has_rested, true)) {
      rest(world, looks, totals, run);
      if (testing::Test::HasFailure()) return;
    }
    const auto size = most_steps - static_cast<std::size_t>(world.callers.dice().below(40));
    auto steps = world.next_batch(size, looks);
    const auto answers = run(steps, batches);
    if (testing::Test::HasFailure()) return;
    world.learn(steps, answers, totals);
    done += steps.size();
    world.now += world.callers.pause();
    if (batches % kBatchesBetweenLooks == 0) world.compare_states(totals);
    if (testing::Test::HasFailure()) return;
  }
  world.finish(totals);
}

// A shared store may announce an offer once too often, but never too seldom.
void expect_same_effects(const engine::BatchEffects& expected, const Ran& ran, const Replica& remote) {
  // The route as an earlier batch saw it: since when it is unused may have changed.
  const auto told = [&](const auto& offer) {
    return std::ranges::count_if(ran.effects.offers, [&](const auto& other) {
             return other.first.route_id == offer.first.route_id && other.second == offer.second;
           }) == 1;
  };
  EXPECT_TRUE(std::ranges::all_of(expected.offers, told)) << remote.name() << " wakes too few";
  if (!remote.is_shared()) {
    EXPECT_EQ(ran.effects.offers.size(), expected.offers.size()) << remote.name() << " wakes others";
  }
  EXPECT_EQ(ran.effects.earliest_due, expected.earliest_due) << remote.name();
}

void same_batches(const std::string& remote_store, std::uint64_t seed, Totals& totals) {
  World world(remote_store, seed);
  simulate(world, 40, RouteLooks::with_others, totals, [&](std::vector<Step>& steps, std::size_t) {
    const auto remote = world.remote.run(steps);
    totals.put_off += steps.size() - remote.order.size();
    steps = in_order(steps, remote.order);
    const auto expected = in_order(remote, remote.order);
    for (auto* replica : {&world.memory, &world.sqlite}) {
      const auto ran = replica->run(steps);
      expect_same_answers(steps, expected, ran, replica->name());
      expect_same_effects(ran.effects, remote, world.remote);
    }
    return expected;
  });
}

// They have ended in every way, and callers were refused for every reason.
void expect_variety_of_suspensions(const Totals& totals) {
  for (const auto* how : {"signal resumed", "operator resumed", "timeout timed_out_auto_resume",
                          "none timed_out_fail", "none timed_out_cancel", "none timed_out_expire",
                          "none cancelled", "none expired:execution_deadline"}) {
    EXPECT_TRUE(totals.suspensions_closed.contains(how)) << "no suspension ends like this: " << how;
  }
  const std::map<std::string, std::vector<ErrorCode>> expected{
      {"SuspendExecution",
       {ErrorCode::invalid_input, ErrorCode::execution_not_found, ErrorCode::fence_required,
        ErrorCode::partial_fence_triple, ErrorCode::execution_not_active, ErrorCode::lease_expired,
        ErrorCode::lease_revoked, ErrorCode::stale_lease, ErrorCode::invalid_lease_for_suspend,
        ErrorCode::waitpoint_already_exists, ErrorCode::waitpoint_not_found, ErrorCode::waitpoint_not_pending,
        ErrorCode::invalid_waitpoint_for_execution, ErrorCode::pending_waitpoint_expired}},
      {"CreateWaitpoint",
       {ErrorCode::invalid_input, ErrorCode::execution_not_active, ErrorCode::lease_expired,
        ErrorCode::stale_lease}},
      {"DeliverSignal",
       {ErrorCode::execution_not_found, ErrorCode::missing_token, ErrorCode::invalid_token,
        ErrorCode::token_expired, ErrorCode::target_not_signalable, ErrorCode::waitpoint_closed,
        ErrorCode::invalid_input, ErrorCode::payload_too_large, ErrorCode::signal_limit_exceeded}},
      {"DeliverApprovalSignal",
       {ErrorCode::execution_not_found, ErrorCode::invalid_input, ErrorCode::unknown_waitpoint,
        ErrorCode::target_not_signalable}},
      {"ResumeExecution",
       {ErrorCode::execution_not_found, ErrorCode::execution_not_suspended, ErrorCode::invalid_input}},
      {"CloseWaitpoint", {ErrorCode::execution_not_found, ErrorCode::waitpoint_not_found}},
      {"RotateWaitpointSecret",
       {ErrorCode::rotation_conflict, ErrorCode::invalid_kid, ErrorCode::invalid_secret_hex,
        ErrorCode::invalid_grace_ms}}};
  for (const auto& [request, codes] : expected) {
    for (const auto code : codes) {
      const auto refusal = request + " " + std::string(error_name(code));
      EXPECT_TRUE(totals.refused.contains(refusal)) << "never happens: " << refusal;
    }
  }
}

// Everything that can be asked for was done, and every rule has fired.
void expect_variety(const Totals& totals) {
  const auto expect_some = [&](const std::string& what) {
    const auto it = totals.succeeded.find(what);
    EXPECT_NE(it, totals.succeeded.end()) << what << " never succeeds";
  };
  for_each_type<Requests>([&]<class Asked>() {
    using Value = typename Asked::Answer;
    if constexpr (std::is_same_v<Value, core::Rule>) {
      for (const auto rule :
           {core::Rule::cancel_reconciler, core::Rule::edge_cancel_dispatcher, core::Rule::suspension_timeout,
            core::Rule::pending_wp_expiry, core::Rule::budget_reset, core::Rule::quota_reconciler}) {
        expect_some(std::string(enum_name(rule)));
      }
      // The rest of what flows need is for fan-outs too wide for this, or for trouble.
      const auto of_flows = static_cast<std::size_t>(core::Rule::dependency_reconciler);
      for (std::size_t i = 0; i < of_flows; ++i) expect_some(std::string(enum_names<core::Rule>[i]));
    } else if constexpr (std::is_same_v<Value, ReclaimAnswer>) {
      for (const auto& status : enum_names<ReclaimStatus>) expect_some(std::string(status));
    } else if constexpr (std::is_same_v<Value, SignalDelivered>) {
      for (const auto& effect : enum_names<SignalEffect>) {
        if (std::is_same_v<Asked, DeliverSignal> || effect == "resume_condition_satisfied")
          expect_some(short_name_of<Asked>() + " " + std::string(effect));
      }
      expect_some(short_name_of<Asked>() + " duplicate");
    } else if constexpr (std::is_same_v<Value, Suspended>) {
      for (const auto* what : {" suspended", " already satisfied"})
        expect_some(short_name_of<Asked>() + what);
    } else if constexpr (std::is_same_v<Value, UsageReport> || std::is_same_v<Value, Admission>) {
      for (const auto& outcome : enum_names<decltype(Value::outcome)>) {
        expect_some(short_name_of<Asked>() + " " + std::string(outcome));
      }
    } else if constexpr (std::is_same_v<Value, SecretRotated>) {
      for (const auto* what : {" rotated", " rotated and collected", " noop"}) {
        expect_some(short_name_of<Asked>() + what);
      }
    } else if constexpr (!std::is_same_v<Asked, PromoteBlocked>) {
      // (In a sound store hardly anything is left to be promoted.)
      expect_some(short_name_of<Asked>());
    }
  });
  expect_variety_of_suspensions(totals);
  EXPECT_GT(totals.claimed, totals.operations / 20) << "the simulation hardly works on anything";
  EXPECT_GT(totals.purged, totals.operations / 50) << "hardly anything is removed";
  EXPECT_GT(totals.unregistered, 0u) << "no route and no group is removed";
}

// Which store is the remote one, and how much is asked of it; a batch on PostgreSQL takes some round trips.
struct Plan {
  const char* remote_store;
  std::size_t same_batches;       // seeds
  std::size_t different_batches;  // seeds
};
void PrintTo(const Plan& plan, std::ostream* out) {
  *out << plan.remote_store;
}

class Differential : public testing::TestWithParam<Plan> {
 protected:
  template <class Simulate>
  Totals simulate_all(const char* what, const std::vector<std::uint64_t>& used, Simulate simulate_one) {
    Totals totals;
    for (const auto seed : used) {
      SCOPED_TRACE("replay with FF_SEED=" + std::to_string(seed));
      EXPECT_NO_THROW(simulate_one(GetParam().remote_store, seed, totals));
      if (HasFailure()) return totals;
    }
    report(what, used, totals);
    return totals;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Differential,
                         testing::Values(Plan{"memory_deferred", 16, 6}, Plan{"postgres", 3, 1}),
                         [](const auto& each) { return each.param.remote_store; });

TEST_P(Differential, EveryStoreAnswersAndHoldsTheSame) {
  const auto used = seeds(GetParam().same_batches);
  const auto totals = simulate_all("same batches", used, same_batches);
  if (used.size() > 10 && !HasFailure()) expect_variety(totals);
}

// The answers may not depend on how operations are grouped into batches.
Ran run_in_groups_of(std::size_t size, Replica& replica, const std::vector<Step>& steps) {
  Ran all;
  for (std::size_t start = 0; start < steps.size(); start += size) {
    const auto end = std::min(steps.size(), start + size);
    auto ran = replica.run({steps.begin() + static_cast<std::ptrdiff_t>(start),
                            steps.begin() + static_cast<std::ptrdiff_t>(end)});
    for (auto& answer : ran.answers) all.answers.push_back(std::move(answer));
  }
  return all;
}

void different_batches(const std::string& remote_store, std::uint64_t seed, Totals& totals) {
  World world(remote_store, seed);
  world.callers.go_without_limits();
  simulate(world, 60, RouteLooks::alone, totals, [&](std::vector<Step>& steps, std::size_t batches) {
    auto expected = run_in_groups_of(steps.size(), world.memory, steps);
    const auto some = 1 + batches % 7;
    expect_same_answers(steps, expected, run_in_groups_of(1, world.remote, steps), "remote, one by one");
    expect_same_answers(steps, expected, run_in_groups_of(some, world.sqlite, steps), "sqlite, in groups");
    return expected;
  });
}

TEST_P(Differential, AnswersDoNotDependOnHowBatchesAreCut) {
  simulate_all("different batches", seeds(GetParam().different_batches), different_batches);
}

}  // namespace
}  // namespace flowfabric::simulation
