#include "support/suspension_support.h"

namespace flowfabric::expected {

StateVector suspended(BlockingReason reason) {
  return {.lifecycle_phase = LifecyclePhase::suspended,
          .blocking_reason = reason,
          .attempt_state = AttemptState::attempt_interrupted,
          .public_state = PublicState::suspended};
}

}  // namespace flowfabric::expected

namespace flowfabric::tests {

ResumeCondition single(const std::string& key, SignalMatcher matcher) {
  return {SingleSignal{key, std::move(matcher)}};
}
ResumeCondition all_of(std::vector<ResumeCondition> members) {
  return {AllOf{std::move(members)}};
}
ResumeCondition count_of(std::uint32_t n, CountKind kind, std::vector<std::string> keys,
                         SignalMatcher matcher) {
  return {CountOf{n, kind, std::move(matcher), std::move(keys)}};
}

std::string forged(std::string token) {
  token.back() = token.back() == '0' ? '1' : '0';
  return token;
}

SuspendExecution SuspensionFixture::suspension(const ClaimedTask& task, ResumeCondition condition) {
  SuspendExecution request{.execution_id = task.execution_id, .fence = task.fence};
  request.resume_condition = std::move(condition);
  return request;
}

Suspended SuspensionFixture::suspend(SuspendExecution request) {
  id_ = request.execution_id;
  suspended_ = must(std::move(request));
  return suspended_;
}

Suspended SuspensionFixture::suspend_new(ResumeCondition condition, ExecutionPolicy policy) {
  task_ = running(std::move(policy));
  return suspend(suspension(task_, std::move(condition)));
}

TokenedWaitpoint SuspensionFixture::make_waitpoint(const ClaimedTask& task, const std::string& key,
                                                   std::int64_t expires_in_ms) {
  id_ = task.execution_id;
  task_ = task;
  return must(CreateWaitpoint{.execution_id = task.execution_id,
                              .fence = task.fence,
                              .waitpoint_key = key,
                              .expires_in_ms = expires_in_ms});
}

DeliverSignal SuspensionFixture::signal(const TokenedWaitpoint& waitpoint, const std::string& name) const {
  return {.execution_id = id_,
          .waitpoint_id = waitpoint.waitpoint_id,
          .waitpoint_token = waitpoint.waitpoint_token,
          .signal_name = name};
}

SignalDelivered SuspensionFixture::deliver(DeliverSignal request) {
  return must(std::move(request));
}

Log SuspensionFixture::shown(const std::vector<ResumeSignal>& signals) {
  Log log;
  for (const auto& each : signals) log.push_back(each.signal_name + ":" + each.payload.value_or("none"));
  return log;
}

}  // namespace flowfabric::tests
