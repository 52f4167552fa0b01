// Routes (lane, namespace, required capabilities) and groups (route and kind) come with the first execution
// that needs them, and go when nothing has needed them for a day.
#include <algorithm>

#include "support/damage.h"
#include "support/postgres_connection.h"
#include "support/races.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

constexpr std::int64_t kDay = 24 * kHour;

class RegistrationFixture : public SuspensionFixture {
 protected:
  using SuspensionFixture::SuspensionFixture;

  void TearDown() override {
    expect_sound();
    SuspensionFixture::TearDown();
  }

  // Each on a route and in a group of its own.
  static CreateExecution named(const std::string& name) {
    return {.execution_kind = name, .policy = needs({name})};
  }
  static CreateExecution kept(CreateExecution request, std::int64_t ms) {
    request.policy.stream_policy = StreamPolicy{.retention_ttl_ms = static_cast<std::uint64_t>(ms)};
    return request;
  }
  ClaimedTask take(const std::string& name) { return claim_one({.capabilities = {name}}); }

  void pass_days(int days) {
    for (int i = 0; i < 4 * days; ++i) advance(kDay / 4);
  }
  std::uint64_t records() { return must(CheckStore{}).records; }
  void expect_sound() {
    const auto report = must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << (report.violations.empty() ? "" : report.violations[0].what);
  }
  std::vector<ExecutionId> listed(const std::string& kind, std::vector<PublicState> states = {}) {
    std::vector<ExecutionId> ids;
    const ExecutionFilter filter{.states = std::move(states), .execution_kind = kind};
    for (const auto& each : must(ListExecutions{.filter = filter}).executions)
      ids.push_back(each.execution_id);
    return ids;
  }
  // The record is where claims and listings look for it.
  void expect_found(const ExecutionId& id, const std::string& name) {
    SCOPED_TRACE(name);
    EXPECT_EQ(listed(name), std::vector{id});
    EXPECT_EQ(listed(name, {PublicState::waiting}), std::vector{id});
    EXPECT_EQ(take(name).execution_id, id);
    EXPECT_EQ(listed(name, {PublicState::active}), std::vector{id});
  }
};

class Registrations : public RegistrationFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  Registrations() : RegistrationFixture(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Registrations, kStores, store_name);

TEST_P(Registrations, GoWhenNothingHasNeededThemForADay) {
  create(kept(named("other"), kDay));
  const auto before = records();
  for (int i = 0; i < 10; ++i) {
    const auto id = create(kept(named("name-" + std::to_string(i)), kHour));
    cancel(id);
    forget(id);
  }
  advance(kHour);
  EXPECT_EQ(records(), before + 20) << "the executions are gone, ten routes and ten groups are there";
  tick(kDay - kHour - 1);
  run_due();
  EXPECT_EQ(records(), before + 20);
  pass_days(1);
  EXPECT_EQ(records(), before);
}

TEST_P(Registrations, StayWhileTheyAreUsed) {
  const auto before = records();
  for (int i = 0; i < 12; ++i) {
    const auto id = create(kept(named("used"), 1000));
    cancel(id);
    forget(id);
    advance(kDay / 2);
  }
  EXPECT_EQ(records(), before + 3) << "the lane, the route and the group";
  pass_days(2);
  EXPECT_EQ(records(), before + 1) << "the lane";
}

TEST_P(Registrations, StayWhileAnExecutionHasThem) {
  const auto waiting = create(named("waiting"));
  auto later = named("delayed");
  later.delay_until = now() + 100 * kDay;
  const auto delayed = create(later);
  const auto held = create(named("held"));
  must(HoldExecution{.execution_id = held});
  const auto blocked = create(named("blocked"));
  must(BlockExecution{blocked, BlockingReason::waiting_for_capable_worker, "nobody can"});
  const auto suspended = create(named("suspended"));
  suspend(suspension(take("suspended")));
  const auto running = create(named("running"));
  take("running");
  const auto ended = create(kept(named("ended"), 1000 * kDay));
  complete(take("ended"));
  const auto before = records();

  pass_days(20);
  EXPECT_EQ(records(), before);
  expect_sound();
  EXPECT_EQ(listed("ended", {PublicState::completed}), std::vector{ended});
  expect_found(waiting, "waiting");
  must(ReleaseExecution{.execution_id = held});
  expect_found(held, "held");
  must(UnblockExecution{blocked, BlockingReason::waiting_for_capable_worker});
  expect_found(blocked, "blocked");
  EXPECT_EQ(take("running").execution_id, running);
  must(ReplayExecution{.execution_id = ended});
  expect_found(ended, "ended");
  deliver(signal(waitpoint()));
  EXPECT_EQ(take("suspended").execution_id, suspended);
  advance(80 * kDay);
  expect_found(delayed, "delayed");
}

TEST_P(Registrations, ComeBackWithTheNextSubmit) {
  const auto before = records();
  for (int round = 0; round < 3; ++round) {
    const auto id = create(kept(named("again"), 1000));
    expect_found(id, "again");
    cancel(id);
    pass_days(2);
    forget(id);
    EXPECT_EQ(records(), before + 1) << "the lane";
  }
  expect_found(create(named("again")), "again");
}

// As the clock finds them, in one batch.
TEST_P(Registrations, OfARouteGoOnlyWithItsLastGroup) {
  const auto before = records();
  const auto stays = create({.execution_kind = "stays", .policy = needs({"gpu"})});
  const auto goes = create(kept({.execution_kind = "goes", .policy = needs({"gpu"})}, 1000));
  cancel(goes);
  forget(goes);
  pass_days(2);
  EXPECT_EQ(records(), before + 5) << "a lane, an execution with what was submitted, its route and its group";
  EXPECT_EQ(claim_one({.capabilities = {"gpu"}}).execution_id, stays);
}

// ---- made by an older version ----

class OldRegistrations : public Registrations {
 protected:
  void run_sql(const std::string& sql) {
    if (store().url().starts_with("postgres")) {
      PostgresConnection(store().url()).query(sql);
      return;
    }
    close();
    damage_file(store().file(), sql);
    reopen();
  }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, OldRegistrations, kDurableStores, store_name);

TEST_P(OldRegistrations, OfAGroupThatHasExecutionsOfAllRoutes) {
  const auto before = records();
  const auto one = create(kept({.execution_kind = "same", .policy = needs({"a"})}, 1000));
  const auto other = create(kept({.execution_kind = "same", .policy = needs({"b"})}, 1000));
  // As it was: one group for both.
  run_sql("update ff_exec_core set group_id=7; delete from ff_exec_group");
  run_sql("insert into ff_exec_group(group_id,lane_id,execution_kind) values(7,'default','same')");
  run_sql("update ff_route set purge_at_ms=0");
  cancel(one);
  forget(one);
  pass_days(3);
  EXPECT_EQ(records(), before + 6) << "a lane, an execution with what was submitted, a group and both routes";
  EXPECT_EQ(listed("same"), std::vector{other});
  EXPECT_EQ(take("b").execution_id, other);
  cancel(other);
  forget(other);
  pass_days(3);
  EXPECT_EQ(records(), before + 1) << "the lane";
}

// ---- two servers on one database ----

class SharedRegistrations : public Races<RegistrationFixture> {
 protected:
  SharedRegistrations() : Races("postgres"), other_(open(store().url())) {}

  std::int64_t count(const std::string& table) {
    return std::stoll(sql_.query("select count(*) from " + table).at(0).at(0));
  }
  // Submits enough that every session of the other server has seen the route and the group.
  std::vector<ExecutionId> create_there(const std::string& name) {
    std::vector<ExecutionId> ids;
    for (int i = 0; i < 24; ++i) {
      const auto made = other_.call(kept(named(name), 1000));
      if (!made) throw std::runtime_error(made.error().to_string());
      ids.push_back(made->execution_id);
    }
    return ids;
  }

  Engine other_;
  PostgresConnection sql_{store().url()};
};

TEST_F(SharedRegistrations, AreMadeAnewByAServerThatRemembersThem) {
  for (int round = 0; round < 2; ++round) {
    auto ids = create_there("shared");
    std::ranges::sort(ids);
    EXPECT_EQ(count("ff_route"), 1);
    EXPECT_EQ(count("ff_exec_group"), 1);
    auto found = listed("shared", {PublicState::waiting});
    std::ranges::sort(found);
    EXPECT_EQ(found, ids);
    expect_sound();
    auto taken = claim_all({.capabilities = {"shared"}});
    std::ranges::sort(taken);
    EXPECT_EQ(taken, ids);
    for (const auto& id : ids) cancel(id);
    pass_days(2);
    EXPECT_EQ(count("ff_route"), 0);
    EXPECT_EQ(count("ff_exec_group"), 0);
  }
}

TEST_F(SharedRegistrations, AreNotWrittenByEverySubmit) {
  create_there("busy");
  const auto versions = [&] {
    return sql_.query(
        "select (select min(xmin::text) from ff_route),(select min(xmin::text) from "
        "ff_exec_group)");
  };
  const auto first = versions();
  tick(kHour - 1);
  create_there("busy");
  EXPECT_EQ(versions(), first) << "not before an hour has passed";
  tick(1);
  create_there("busy");
  const auto second = versions();
  EXPECT_NE(second.at(0).at(0), first.at(0).at(0));
  EXPECT_NE(second.at(0).at(1), first.at(0).at(1));
  create_there("busy");
  EXPECT_EQ(versions(), second) << "once";
}

// One server removes them while the other submits: before, after, or at the same moment.
TEST_F(SharedRegistrations, AreThereWhoeverComesFirst) {
  create_there("raced");
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (const auto& each : listed("raced")) cancel(each);
    advance(kHour);
    EXPECT_TRUE(listed("raced").empty());
    if (round % 4 > 1) advance(kDay);  // the group is gone, the route is next
    tick(kDay);
    auto [removed, made] = in_round(
        round, [&] { return engine().run_due(); }, [&] { return other_.call(kept(named("raced"), 1000)); });
    ASSERT_TRUE(removed) << removed.error().to_string();
    ASSERT_TRUE(made) << made.error().to_string();
    expect_sound();
    expect_found(made->execution_id, "raced");
    run_due();
    expect_sound();
  }
}

}  // namespace
}  // namespace flowfabric
