// Handles (01 §6, 03 §7.1): suspending with one, and the handle of a suspended attempt.
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class SuspendByHandle : public SuspensionTest {
 protected:
  OpaqueHandle handle_of(const ClaimedTask& task) { return engine().handle_of(task, "w", kLeaseTtl); }
  static SuspendExecution with(OpaqueHandle handle, ResumeCondition condition = single("k")) {
    SuspendExecution request{.execution_id = {}, .fence = {}};
    request.resume_condition = std::move(condition);
    request.handle = std::move(handle);
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SuspendByHandle, kStores, store_name);

TEST_P(SuspendByHandle, GivesOneThatHoldsNoLease) {
  const auto task = running();
  const auto handle = handle_of(task);
  EXPECT_EQ(handle.kind, HandleKind::fresh);
  const auto answer = must(with(handle));
  EXPECT_EQ(state(task.execution_id), expected::suspended());
  ASSERT_TRUE(answer.handle);
  EXPECT_EQ(answer.handle->kind, HandleKind::suspended);
  EXPECT_EQ(answer.handle->backend, handle.backend);
  EXPECT_EQ(must(with(handle)), answer) << "repeated with the same handle";

  // It identifies the suspension, and nothing more.
  const auto identity = decode_handle(answer.handle->opaque, answer.handle->kind);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->execution_id, task.execution_id);
  const auto& waitpoint = answer.waitpoints.at(0);
  must(DeliverSignal{.execution_id = task.execution_id,
                     .waitpoint_id = waitpoint.waitpoint_id,
                     .waitpoint_token = waitpoint.waitpoint_token,
                     .signal_name = "go"});
  EXPECT_EQ(shown(must(ObserveSignals{identity->execution_id, identity->attempt_index})), Log{"go:none"});
  EXPECT_EQ(handle_of(claim_one()).kind, HandleKind::resumed);
}

// Before the store is asked, and before anything else is looked at.
TEST_P(SuspendByHandle, IsRefusedForWhatIsSuspendedAlready) {
  auto request = with(handle_of(running()));
  request.idempotency_key = "K";
  auto answer = must(request);
  request.handle = answer.handle;
  expect_error(request, ErrorCode::already_suspended);
  request.resume_condition = all_of({});
  request.handle->opaque = "garbage";
  expect_error(request, ErrorCode::already_suspended);
}

TEST_P(SuspendByHandle, IsRefusedForAHandleOfAnotherStore) {
  const auto task = running();
  const auto own = handle_of(task);
  auto foreign = decode_handle(own.opaque, own.kind).value();
  foreign.backend = HandleBackend::valkey;
  expect_error(with({foreign.backend, foreign.kind, encode_handle(foreign)}),
               ErrorCode::handle_from_other_backend);
  EXPECT_EQ(state(task.execution_id), expected::running());
}

TEST_P(SuspendByHandle, JudgesTheArgumentsBeforeTheBytes) {
  const OpaqueHandle garbage{HandleBackend::memory, HandleKind::fresh, "garbage"};
  EXPECT_EQ(expect_error(with(garbage, all_of({})), ErrorCode::invalid_input).detail,
            "allof_empty_members at path <root>");
  auto late = with(garbage);
  late.timeout_at = now() - kHour;
  EXPECT_EQ(expect_error(late, ErrorCode::invalid_input).detail, "timeout_at_in_past");
  expect_error(with(garbage), ErrorCode::corruption);
}

TEST_P(SuspendByHandle, IsRefusedWithTheLeaseOfAnother) {
  const auto task = running();
  auto stale = decode_handle(handle_of(task).opaque, HandleKind::fresh).value();
  ++stale.lease_epoch;
  expect_error(with({stale.backend, stale.kind, encode_handle(stale)}), ErrorCode::stale_lease);
  stale = decode_handle(handle_of(task).opaque, HandleKind::fresh).value();
  ++stale.attempt_index;
  expect_error(with({stale.backend, stale.kind, encode_handle(stale)}), ErrorCode::invalid_lease_for_suspend);
  EXPECT_EQ(state(task.execution_id), expected::running());
}

}  // namespace
}  // namespace flowfabric
