// Suspensions in tests: short words for suspending, signalling and looking.
#pragma once

#include "support/reopen_fixture.h"

namespace flowfabric::expected {

StateVector suspended(BlockingReason reason = BlockingReason::waiting_for_signal);

}  // namespace flowfabric::expected

namespace flowfabric::tests {

ResumeCondition single(const std::string& key, SignalMatcher matcher = {});
ResumeCondition all_of(std::vector<ResumeCondition> members);
ResumeCondition count_of(std::uint32_t n, CountKind kind, std::vector<std::string> keys,
                         SignalMatcher matcher = {});

// The last digit is another one.
std::string forged(std::string token);

class SuspensionFixture : public ReopenFixture {
 protected:
  using ReopenFixture::ReopenFixture;

  SuspendExecution suspension(const ClaimedTask& task, ResumeCondition condition = single("k"));
  // Claims something new and suspends it; `waitpoints_` and `id_` are about that.
  Suspended suspend(SuspendExecution request);
  Suspended suspend_new(ResumeCondition condition = single("k"), ExecutionPolicy policy = {});
  TokenedWaitpoint make_waitpoint(const ClaimedTask& task, const std::string& key = "k",
                                  std::int64_t expires_in_ms = kHour);

  DeliverSignal signal(const TokenedWaitpoint& waitpoint, const std::string& name = "go") const;
  SignalDelivered deliver(DeliverSignal request);
  SignalEffect effect_of(DeliverSignal request) { return *deliver(std::move(request)).effect; }

  const ExecutionId& id() const { return id_; }
  const ClaimedTask& task() const { return task_; }
  const TokenedWaitpoint& waitpoint(std::size_t index = 0) const { return suspended_.waitpoints.at(index); }
  SuspensionView seen() { return must(DescribeSuspension{id_}); }
  StateVector now_in() { return state(id_); }
  // "name:payload" of what the resumed worker gets.
  static Log shown(const std::vector<ResumeSignal>& signals);

 private:
  ExecutionId id_{};
  ClaimedTask task_{};
  Suspended suspended_{};
};

class SuspensionTest : public SuspensionFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  SuspensionTest() : SuspensionFixture(GetParam()) {}
};

}  // namespace flowfabric::tests
