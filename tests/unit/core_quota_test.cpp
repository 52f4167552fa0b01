// The clock corrects a quota policy whose counts are wrong (05 §10.3).
#include <gtest/gtest.h>

#include "core/limits/quota.h"
#include "store/store.h"

namespace flowfabric::core {
namespace {

class QuotaClock : public testing::Test {
 protected:
  static constexpr std::int64_t kNow = 1'750'000'000'000;
  const QuotaPolicyKey key_{3, {*Uuid::parse("cccccccc-0000-4000-8000-000000000001")}};

  static QuotaAdmission admission(const QuotaPolicyKey& key, std::uint16_t number,
                                  std::optional<std::int64_t> window_at_ms) {
    return {.partition_key = key.partition_key,
            .quota_policy_id = key.quota_policy_id,
            .execution_partition = number,
            .window_at_ms = window_at_ms,
            .holds_slot = true};
  }
  static Execution execution(std::uint16_t number, OwnershipState ownership) {
    return {.partition_key = number, .state = {.ownership_state = ownership}};
  }
  QuotaPolicy policy() const {
    return {.partition_key = key_.partition_key,
            .quota_policy_id = key_.quota_policy_id,
            .requests_per_window_seconds = 10,
            .max_requests_per_window = 5,
            .active_concurrency_cap = 5,
            .active_concurrency = 5,
            .window_count = 2,
            .reconcile_at_ms = kNow,
            .next_due_at_ms = kNow};
  }
  // In one batch: `before`, and then the clock.
  template <class Before>
  Rule run_clock(Before&& before) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    before(unit);
    unit.keep();
    Context at{.now_ms = kNow};
    const auto rule = run_quota_policy_clock(unit, key_, at);
    unit.keep();
    notes_ = unit.take_notes();
    session_->commit(unit);
    return rule;
  }
  QuotaPolicy stored() {
    Unit unit(*session_);
    session_->begin(unit);
    const auto copy = unit.require<QuotaPolicy>(key_);
    session_->rollback();
    return copy;
  }
  void store(const std::vector<QuotaAdmission>& admissions,
             OwnershipState ownership = OwnershipState::leased) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    unit.insert(policy());
    for (const auto& each : admissions) {
      unit.insert(each);
      unit.insert(execution(each.execution_partition, ownership));
    }
    unit.keep();
    session_->commit(unit);
  }

  std::vector<Note> notes_;  // of the last batch
  std::unique_ptr<store::Store> store_ = *store::open_store("memory:", {});
  std::unique_ptr<store::Session> session_ = store_->open_writer();
};

TEST_F(QuotaClock, CountsTheSlotsAnew) {
  store({admission(key_, 1, kNow - 10'000), admission(key_, 2, kNow - 9'999)});
  EXPECT_EQ(run_clock([](Unit&) {}), Rule::quota_reconciler);
  EXPECT_EQ(stored().active_concurrency, 2u);
  EXPECT_EQ(stored().window_count, 1u) << "one has left the window";
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_EQ(notes_.front().what, Noted::warning);
  EXPECT_EQ(notes_.front().label,
            "quota " + key_.quota_policy_id.to_string() + ": counted 5 running, 2 are: corrected");
  EXPECT_EQ(stored().next_due_at_ms, kNow + 30'000);
}

TEST_F(QuotaClock, DoesNotCountWhatItCannotSee) {
  store({admission(key_, 1, std::nullopt)});
  run_clock([&](Unit& unit) {
    unit.insert(admission(key_, 2, std::nullopt));
    unit.edit<QuotaPolicy>(key_).active_concurrency = 2;
  });
  EXPECT_EQ(stored().active_concurrency, 2u) << "of this batch";
}

TEST_F(QuotaClock, FreesWhatNothingRunsUnder) {
  store({admission(key_, 1, std::nullopt), admission(key_, 2, kNow - 1)}, OwnershipState::unowned);
  run_clock([](Unit&) {});
  EXPECT_EQ(stored().active_concurrency, 1u) << "one of them may still be claimed";
}

TEST_F(QuotaClock, DoesNotFreeWhatItsBatchHasTaken) {
  store({admission(key_, 1, std::nullopt), admission(key_, 2, std::nullopt)}, OwnershipState::unowned);
  run_clock([&](Unit& unit) {
    unit.edit<Execution>({1, {}}).state.ownership_state = OwnershipState::leased;
    unit.edit<QuotaPolicy>(key_).active_concurrency = 2;
  });
  EXPECT_EQ(stored().active_concurrency, 1u);
}

// Whatever a store takes for a stray.
TEST_F(QuotaClock, DoesNotFreeWhatRunsOrIsGranted) {
  const auto running = admission(key_, 1, std::nullopt);
  const auto granted = admission(key_, 2, std::nullopt);
  const auto idle = admission(key_, 3, std::nullopt);
  store({running, granted, idle});
  {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    auto& reserved = unit.edit<Execution>({2, {}});
    reserved.state.ownership_state = OwnershipState::unowned;
    reserved.grant_expires_at_ms = kNow + 1;
    unit.edit<Execution>({3, {}}).state.ownership_state = OwnershipState::lease_revoked;
    unit.keep();
    session_->commit(unit);
  }
  run_clock([&](Unit& unit) {
    unit.put_answer(StraySlotsOf{key_, 256}, {running.key(), granted.key(), idle.key()});
  });
  EXPECT_EQ(stored().active_concurrency, 2u);
}

TEST_F(QuotaClock, RestsWhenThePolicyIsNotInUse) {
  store({});
  run_clock([&](Unit& unit) { unit.find<QuotaPolicy>(key_); });
  EXPECT_EQ(stored().active_concurrency, 0u);
  run_clock([&](Unit& unit) {
    auto& idle = unit.edit<QuotaPolicy>(key_);
    idle.active_concurrency = 0;
    idle.window_count = 0;
    idle.reconcile_at_ms = idle.next_due_at_ms = kNow;
  });
  EXPECT_EQ(stored().next_due_at_ms, std::nullopt);
}

}  // namespace
}  // namespace flowfabric::core
