// The consistency check of a damaged store. The damage is done to the file, behind the engine's back.
#include <algorithm>

#include "support/bulk_fixture.h"
#include "support/damage.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

ExecutionId id(std::uint8_t number) {
  ExecutionId made{7, {}};
  made.uuid.bytes[15] = number;
  return made;
}
std::string name_of(std::uint8_t number) {
  return id(number).to_string();
}

// ---- SQL ----

std::string blob(std::uint8_t number) {
  return "x'" + std::string(31, '0') + std::to_string(number) + "'";
}
std::string whose(std::uint8_t number) {
  return " where execution_id=" + blob(number);
}
std::string update(const std::string& assignment, std::uint8_t number) {
  return "update ff_exec_core set " + assignment + whose(number);
}
std::string count_row(const std::string& values) {
  return "insert into ff_lane_count(lane_id,public_state,executions) values(" + values + ")";
}
// A row of the table for `default`, and execution 1 that refers to it.
std::string stray(const std::string& table, const std::string& columns, const std::string& values,
                  const std::string& reference) {
  return "insert into " + table + "(" + columns + ") values(77,'default'," + values + ");" +
         update(reference + "=77", 1);
}
std::string tag_row(const std::string& key_and_value, std::uint8_t number) {
  return "insert into ff_exec_tag(tag_key,tag_value,created_at_ms,partition_key,execution_id) values(" +
         key_and_value + "," + std::to_string(kStart) + ",7," + blob(number) + ")";
}

struct Damage {
  std::string name;
  std::string sql;
  std::string where;  // what the report names
};
void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}
std::string damage_name(const ::testing::TestParamInfo<Damage>& info) {
  return info.param.name;
}

class DamagedStore : public ReopenFixture, public ::testing::WithParamInterface<Damage> {
 protected:
  DamagedStore() : ReopenFixture("sqlite") {}

  // One of each, so that damage to one can be told from damage to another.
  void SetUp() override {
    create({.execution_id = id(1), .priority = 3, .tags = {{"a.b", "c"}, {"d.e", "f"}}});
    create({.execution_id = id(2), .delay_until = kStart + kHour});
    complete(running({.execution_id = id(3), .priority = 9, .tags = {{"a.b", "x"}}}), "result");
    running({.execution_id = id(4), .priority = 9});
    create({.execution_id = id(5), .lane_id = "other"});
    before_ = everything();
  }

  std::vector<Story> everything() {
    std::vector<Story> all;
    for (const auto number : kNumbers) all.push_back(story(id(number)));
    return all;
  }
  void forget_all() {
    for (const auto number : kNumbers) forget(id(number));
  }

  void damage(const std::string& sql) {
    close();
    damage_file(store().file(), sql);
    reopen();
  }
  // The stored row, every column of it.
  std::string row(std::uint8_t number) {
    close();
    std::string text;
    {
      store::sqlite::Connection connection(store().file(), store::sqlite::Access::read_only);
      auto statement = connection.prepare("select * from ff_exec_core" + whose(number));
      if (statement.step()) {
        for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
          const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), i));
          text +=
              std::string(sqlite3_column_name(statement.get(), i)) + "=" + (value ? value : "null") + "\n";
        }
      }
    }
    reopen();
    return text;
  }

  StoreReport check(bool repair = false) {
    auto report = must(CheckStore{.repair = repair});
    EXPECT_EQ(report.violations.size(), std::min<std::uint64_t>(report.found, 1000));
    EXPECT_LE(report.repaired, report.found);
    for (const auto& each : report.violations) {
      EXPECT_FALSE(each.where.empty());
      EXPECT_FALSE(each.what.empty());
    }
    return report;
  }
  static bool names(const StoreReport& report, const std::string& where, bool repaired) {
    return std::any_of(report.violations.begin(), report.violations.end(), [&](const Violation& each) {
      return each.repaired == repaired && each.where.find(where) != std::string::npos;
    });
  }

  static constexpr std::array<std::uint8_t, 5> kNumbers{1, 2, 3, 4, 5};
  std::vector<Story> before_;
};

// ---- what can be repaired ----

std::vector<Damage> repairable() {
  return {
      {"PublicStateOfTheWaiting", update("public_state='completed'", 1), name_of(1)},
      {"PublicStateOfTheEnded", update("public_state='waiting'", 3), name_of(3)},
      {"OfferMissing", update("offer_order=null", 1), name_of(1)},
      {"OfferWrong", update("offer_order=offer_order+1", 1), name_of(1)},
      {"OfferOfTheDelayed", update("offer_order=1", 2), name_of(2)},
      {"OfferOfTheActive", update("offer_order=1", 4), name_of(4)},
      {"OfferOfTheEnded", update("offer_order=1", 3), name_of(3)},
      {"ClockMissing", update("next_due_at_ms=null", 2), name_of(2)},
      {"ClockLate", update("next_due_at_ms=next_due_at_ms+1", 2), name_of(2)},
      {"ClockOfTheLeaseMissing", update("next_due_at_ms=null", 4), name_of(4)},
      {"ClockOfTheRetentionMissing", update("retention_ms=5000000,purge_at_ms=null", 3), name_of(3)},
      {"CountTooHigh", "update ff_lane_count set executions=executions+5 where public_state='waiting'",
       "default"},
      {"CountTooLow", "update ff_lane_count set executions=0 where public_state='delayed'", "default"},
      {"CountNegative", "update ff_lane_count set executions=-1 where public_state='active'", "default"},
      {"CountMissing", "delete from ff_lane_count where public_state='completed'", "default"},
      {"CountOfNothing", count_row("'default','failed',2"), "default"},
      {"CountOfAnUnknownLane", count_row("'nowhere','waiting',1"), "nowhere"},
      {"TagRowMissing", "delete from ff_exec_tag" + whose(1) + " and tag_key='d.e'", name_of(1)},
      {"TagRowSuperfluous", tag_row("'no.such','tag'", 1), name_of(1)},
      {"TagRowOfAnotherValue", "update ff_exec_tag set tag_value='z'" + whose(3), name_of(3)},
      {"TagRowOfAnotherTime", "update ff_exec_tag set created_at_ms=5" + whose(3), name_of(3)},
      {"TagRowOfNobody", tag_row("'a.b','c'", 9), name_of(9)},
      {"SubmissionOfNobody",
       "insert into ff_exec_spec(partition_key,execution_id,execution_kind) values(7," + blob(9) + ",'x')",
       name_of(9)},
      {"AttemptOfNobody",
       "create temp table t as select * from ff_attempt; update t set execution_id=" + blob(9) +
           "; insert into ff_attempt select * from t",
       name_of(9)},
      {"GrantOfNobody",
       "insert into ff_claim_grant(partition_key,execution_id,grant_id,kind,worker_id,issued_at_ms,"
       "expires_at_ms) values(7," +
           blob(9) + "," + blob(8) + ",'claim','w',1,2)",
       name_of(9)},
      {"GrantMissing", update("grant_expires_at_ms=1750000100000", 1), name_of(1)},
      {"RouteMissing", "delete from ff_route where lane_id='other'", name_of(5)},
      {"RouteUnknown", update("route_id=999", 1), name_of(1)},
      {"RouteOfAnotherNamespace", stray("ff_route", "route_id,lane_id,namespace", "'elsewhere'", "route_id"),
       name_of(1)},
      {"RouteOfOtherNeeds", stray("ff_route", "route_id,lane_id,required_capabilities", "'gpu'", "route_id"),
       name_of(1)},
      {"GroupMissing", "delete from ff_exec_group where lane_id='other'", name_of(5)},
      {"GroupUnknown", update("group_id=999", 1), name_of(1)},
      {"GroupOfAnotherKind",
       stray("ff_exec_group", "group_id,lane_id,execution_kind", "'strange'", "group_id"), name_of(1)},
      {"GroupOfAnotherRoute", "update ff_exec_group set route_id=5 where lane_id='other'", name_of(5)},
      {"SeveralAtOnce",
       update("public_state='failed',offer_order=null", 1) + ";" + update("next_due_at_ms=null", 2) +
           ";delete from ff_exec_tag;delete from ff_lane_count",
       name_of(2)},
  };
}

class RepairableStore : public DamagedStore {};
INSTANTIATE_TEST_SUITE_P(Sqlite, RepairableStore, ::testing::ValuesIn(repairable()), damage_name);

TEST_P(RepairableStore, IsReportedLeftAloneAndRepairedWhenAsked) {
  const auto lanes_before = must(ListLanes{});
  damage(GetParam().sql);
  const auto found = check();
  EXPECT_EQ(found.repaired, 0u);
  EXPECT_TRUE(names(found, GetParam().where, false)) << found;
  EXPECT_EQ(check(), found) << "looking does not change anything";

  const auto repaired = check(true);
  EXPECT_LE(repaired.found, found.found) << "what followed from something repaired is no longer wrong";
  EXPECT_EQ(repaired.repaired, repaired.found) << repaired;
  EXPECT_TRUE(names(repaired, GetParam().where, true)) << repaired;
  const auto clean = check();
  EXPECT_EQ(clean.found, 0u) << clean;
  EXPECT_EQ(everything(), before_);
  EXPECT_EQ(must(ListLanes{}), lanes_before);
  EXPECT_EQ(must(ListExecutions{.filter = {.tags = {{"a.b", "c"}}}}).executions.size(), 1u);
  EXPECT_EQ(must(ListExecutions{.filter = {.states = {PublicState::waiting}}}).executions.size(), 2u);
  reopen();
  EXPECT_EQ(check().found, 0u) << "and it lasts";
  EXPECT_EQ(claim_one().execution_id, id(1));
  advance(kHour);
  EXPECT_EQ(state(id(2)), expected::waiting(AttemptState::pending_first_attempt)) << "its clock goes again";
}

// ---- what cannot ----

std::vector<Damage> beyond_repair() {
  return {
      {"EndedWithoutAnOutcome", update("terminal_outcome='none'", 3), name_of(3)},
      {"ActiveWithAnOutcome", update("terminal_outcome='success'", 4), name_of(4)},
      {"LeasedWithoutALease", update("lease_id=null", 4), name_of(4)},
      {"LeasedWithoutAnAttempt", update("attempt_id=null", 4), name_of(4)},
      {"DelayedWithoutATime", update("delay_until_ms=null", 2), name_of(2)},
      {"WaitingAndOwned", update("ownership_state='leased'", 1), name_of(1)},
      {"PhaseUnreadable", update("lifecycle_phase='nonsense'", 1), name_of(1)},
      {"TagsUnreadable", update("tags='{nonsense'", 1), name_of(1)},
      {"PolicyUnreadable", "update ff_exec_spec set policy='{nonsense'" + whose(1), name_of(1)},
      {"AttemptUnreadable", "update ff_attempt set attempt_state='nonsense'" + whose(3), name_of(3)},
      {"NoSubmission", "delete from ff_exec_spec" + whose(1), name_of(1)},
      {"AnAttemptMissing", "delete from ff_attempt" + whose(3), name_of(3)},
  };
}

class HopelessStore : public DamagedStore {};
INSTANTIATE_TEST_SUITE_P(Sqlite, HopelessStore, ::testing::ValuesIn(beyond_repair()), damage_name);

TEST_P(HopelessStore, IsReportedAndNeverGuessed) {
  const auto number = static_cast<std::uint8_t>(GetParam().where.back() - '0');
  damage(GetParam().sql);
  const auto damaged = row(number);
  const auto found = check();
  EXPECT_TRUE(names(found, GetParam().where, false)) << found;
  const auto repaired = check(true);

  EXPECT_EQ(repaired.found, found.found) << repaired;
  EXPECT_LT(repaired.repaired, repaired.found) << repaired;
  EXPECT_TRUE(names(repaired, GetParam().where, false)) << repaired;
  EXPECT_EQ(row(number), damaged);
  EXPECT_GE(check().found, 1u);
  forget_all();
}

TEST_P(HopelessStore, HoldsUpNoOtherRepair) {
  damage(GetParam().sql + ";" + update("offer_order=null", 5));
  const auto repaired = check(true);
  EXPECT_TRUE(names(repaired, name_of(5), true)) << repaired;

  EXPECT_EQ(claim_one({.lanes = {"other"}}).execution_id, id(5));
  forget_all();
}

// ---- the rest ----

class DamagedFile : public DamagedStore {};
INSTANTIATE_TEST_SUITE_P(Sqlite, DamagedFile, ::testing::Values(Damage{"Any", "", ""}), damage_name);

TEST_P(DamagedFile, AClockMayBeEarly) {
  damage(update("next_due_at_ms=5", 2) + ";" + update("next_due_at_ms=5", 1));

  EXPECT_EQ(check().found, 0u);
}

TEST_P(DamagedFile, AMissingLaneIsRegisteredAgain) {
  damage("delete from ff_lane_registry where lane_id='other'");
  EXPECT_TRUE(names(check(), name_of(5), false));
  EXPECT_TRUE(names(check(true), name_of(5), true));

  EXPECT_EQ(check().found, 0u);
  const auto lanes = must(ListLanes{}).lanes;
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[1].lane_id, "other");
  EXPECT_EQ(lanes[1].state, LaneState::active);
  EXPECT_EQ(everything(), before_);
}

TEST_P(DamagedFile, WhatIsLeftOfALostExecutionIsRemoved) {
  damage("delete from ff_exec_core" + whose(3));
  const auto found = check();
  EXPECT_TRUE(names(found, name_of(3), false)) << found;
  EXPECT_EQ(found.executions, 4u);
  const auto repaired = check(true);
  EXPECT_EQ(repaired.repaired, repaired.found) << repaired;

  EXPECT_EQ(check().found, 0u);
  EXPECT_EQ(count()[PublicState::completed], 0);
  forget(id(3));
  EXPECT_FALSE(
      must(CreateExecution{.execution_id = id(3), .lane_id = "new", .execution_kind = "test"}).duplicate);
  EXPECT_TRUE(attempts(id(3)).empty());
  forget(id(3));
}

TEST_P(DamagedFile, AWorkerThatCannotBeReadIsReported) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1"});
  damage("update ff_worker_registry set lanes='{nonsense'");

  EXPECT_TRUE(names(check(), "i1", false));
}

TEST_P(DamagedFile, AThousandViolationsAreListedAndAllAreCounted) {
  std::string sql;
  for (int i = 0; i < 1200; ++i) sql += tag_row("'no.such','" + std::to_string(i) + "'", 1) + ";";
  damage(sql);
  const auto found = check();
  EXPECT_EQ(found.found, 1200u);
  EXPECT_EQ(found.violations.size(), 1000u);

  EXPECT_EQ(check(true).repaired, 1200u);
  EXPECT_EQ(check().found, 0u);
}

}  // namespace
}  // namespace flowfabric
