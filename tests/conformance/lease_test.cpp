// Keeping a lease alive and reporting progress under it (02 §7).
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class LeaseUpkeep : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, LeaseUpkeep, kStores, store_name);

TEST_P(LeaseUpkeep, ARenewalCountsFromNowAndMayShorten) {
  const auto task = running();
  tick(1000);
  EXPECT_EQ(renew(task, 2000), (Renewal{kStart + 3000, 1}));

  EXPECT_EQ(describe(task.execution_id).lease->expires_at, kStart + 3000);
}

TEST_P(LeaseUpkeep, ARenewalKeepsTheFence) {
  const auto task = running();
  renew(task);
  renew(task);

  complete(task);
  EXPECT_EQ(state(task.execution_id), expected::completed());
}

TEST_P(LeaseUpkeep, ManyRenewalsKeepALeaseForLong) {
  const auto task = running();
  for (int i = 0; i < 10; ++i) {
    advance(kLeaseTtl - 1);
    renew(task);
  }

  EXPECT_EQ(state(task.execution_id), expected::running());
}

TEST_P(LeaseUpkeep, ARenewalOutsideTheRangeIsRefused) {
  const auto task = running();

  for (const std::int64_t ttl :
       {std::int64_t{999}, std::int64_t{3'600'001}, std::int64_t{0}, std::int64_t{-1}}) {
    expect_refused(RenewLease{task.execution_id, task.fence, 0, ttl}, ErrorCode::invalid_input);
  }
  EXPECT_EQ(renew(task, 1000).expires_at, kStart + 1000);
  EXPECT_EQ(renew(task, 3'600'000).expires_at, kStart + 3'600'000);
}

TEST_P(LeaseUpkeep, TheHeartbeatOfAnEarlierLeaseIsNotShown) {
  const auto task = running();
  renew(task);
  advance(kLeaseTtl);
  claim_one();

  EXPECT_EQ(describe(task.execution_id).lease->last_heartbeat_at, std::nullopt);
}

// ---- progress ----

TEST_P(LeaseUpkeep, ProgressOverwritesOnlyWhatIsGiven) {
  const auto task = running();
  const auto id = task.execution_id;
  must(UpdateProgress{id, task.fence, 30, "loading"});
  must(UpdateProgress{.execution_id = id, .fence = task.fence, .message = "sorting"});
  EXPECT_EQ(describe(id).progress_percent, 30);
  EXPECT_EQ(describe(id).progress_message, "sorting");
  must(UpdateProgress{.execution_id = id, .fence = task.fence, .percent = 60});

  EXPECT_EQ(describe(id).progress_percent, 60);
  EXPECT_EQ(describe(id).progress_message, "sorting");
}

TEST_P(LeaseUpkeep, ProgressMayBeEmptiedAndGoBack) {
  const auto task = running();
  must(UpdateProgress{task.execution_id, task.fence, 30, "loading"});
  must(UpdateProgress{task.execution_id, task.fence, 0, ""});

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.progress_percent, 0);
  EXPECT_EQ(seen.progress_message, "");
}

TEST_P(LeaseUpkeep, ProgressIsAPercentage) {
  const auto task = running();
  progress(task, 0);
  progress(task, 100);

  for (const std::int32_t percent : {-1, 101}) {
    expect_refused(UpdateProgress{.execution_id = task.execution_id, .fence = task.fence, .percent = percent},
                   ErrorCode::invalid_input);
  }
}

TEST_P(LeaseUpkeep, ProgressWithANulByteIsRefused) {
  const auto task = running();

  expect_refused(UpdateProgress{task.execution_id, task.fence, 5, "a\0b"s}, ErrorCode::invalid_input);
}

TEST_P(LeaseUpkeep, ProgressDoesNotKeepTheLeaseAlive) {
  const auto task = running();
  tick(kLeaseTtl - 1);
  progress(task, 99);
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::lost());
}

}  // namespace
}  // namespace flowfabric
