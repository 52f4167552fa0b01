// The clock reports records that it cannot read, and continues with the rest (08 §3.3, §3.4).
#include <algorithm>

#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class DamagedClock : public ReopenTest {
 protected:
  // Everything is damaged like this, and looked at by another engine.
  void damage(const std::string& sql) {
    close();
    store().change(sql);
    reopen({.failure = [this](const std::string& text) { told_.push_back(text); }});
  }
  bool is_postgres() const { return store().url().starts_with("postgres"); }
  std::string quoted(const ExecutionId& id) const {
    const auto text = id.uuid.to_string();
    if (is_postgres()) return "'" + text + "'";
    std::string digits = text;
    std::erase(digits, '-');
    return "x'" + digits + "'";
  }
  ExecutionId delayed(const std::string& lane = "default") {
    return create({.lane_id = lane, .delay_until = now() + 1000});
  }
  std::size_t told_about(const std::string& text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        told_, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

  std::vector<std::string> told_;
};
INSTANTIATE_TEST_SUITE_P(DurableStores, DamagedClock, kDurableStores, store_name);

TEST_P(DamagedClock, TellsWhichRecordItCannotReadOnceAMinute) {
  const auto broken = delayed("broken");
  const auto whole = delayed();
  forget(broken);
  damage("update ff_exec_core set lifecycle_phase='nonsense' where execution_id=" + quoted(broken));
  advance(1000);
  EXPECT_EQ(state(whole).public_state, PublicState::waiting);
  for (int i = 0; i < 5; ++i) run_due();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("rule unknown failed on ff_exec_core " + broken.to_string()), std::string::npos)
      << told_[0];
  EXPECT_NE(told_[0].find("lifecycle_phase: cannot be read"), std::string::npos) << told_[0];
}

TEST_P(DamagedClock, TellsTheRuleOfARecordThatHasOnlyOne) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1", .liveness_ttl_ms = 1000});
  damage("update ff_worker_registry set lanes='{}'");
  advance(2000);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("rule worker_registry_ttl_sweep failed on ff_worker_registry"), std::string::npos)
      << told_[0];
  EXPECT_NE(told_[0].find("i1"), std::string::npos) << told_[0];
  EXPECT_EQ(engine().stats().clock_errors.count("worker_registry_ttl_sweep"), 1u);
}

// More than a look takes at a time.
TEST_P(DamagedClock, KeysThatCannotBeReadHoldUpNobody) {
  constexpr std::size_t kDamaged = 300;
  for (std::size_t i = 0; i < kDamaged; ++i) forget(delayed("broken"));
  tick(1);
  const auto whole = delayed();
  damage("update ff_exec_core set partition_key=-1 where lane_id='broken'");
  advance(1001);
  EXPECT_EQ(state(whole).public_state, PublicState::waiting);
  EXPECT_EQ(told_about("partition_key: cannot be read"), kDamaged);
  run_due();
  EXPECT_EQ(told_.size(), kDamaged) << "each once a minute";
  EXPECT_GE(engine().stats().clock_errors["unknown"], kDamaged);
}

// Records to be removed are found by another index.
TEST_P(DamagedClock, KeysOfWhatHasEndedHoldUpNobody) {
  for (int i = 0; i < 310; ++i) {
    const auto id = create({.lane_id = "broken"});
    cancel(id);
    forget(id);
  }
  tick(1);
  const auto whole = create();
  cancel(whole);
  forget(whole);
  damage("update ff_exec_core set partition_key=-1 where lane_id='broken'");
  advance(25 * kHour);
  expect_error(DescribeExecution{whole}, ErrorCode::execution_not_found);
}

// Steps of bulk operations are read by the clock itself, which meets a group that is gone.
TEST_P(DamagedClock, ABulkOperationThatMeetsDamageHoldsUpNobody) {
  const Tags tags{{"app.name", "x"}};
  forget(create({.lane_id = "broken", .tags = tags}));
  must(StartBulkOperation{.action = BulkAction::cancel, .filter = {.tags = tags}, .reason = "r"});
  const auto whole = delayed();
  damage("delete from ff_exec_group where lane_id='broken'");
  advance(1000);
  EXPECT_EQ(told_about("ff_exec_group: a record is missing"), 1u);
  EXPECT_EQ(state(whole).public_state, PublicState::waiting);
}

}  // namespace
}  // namespace flowfabric
