// The clock's handling of an entry in ff_pending_cancel_groups that no longer fits any other record (04,
// cases 47–50).
#include <gtest/gtest.h>

#include "core/flow/cancel_flow.h"
#include "store/store.h"

namespace flowfabric::core {
namespace {

FlowId flow() {
  FlowId id;
  id.uuid.bytes[0] = 1;
  return id;
}
ExecutionId member(std::uint8_t number) {
  ExecutionId id{.partition = 3, .uuid = {}};
  id.uuid.bytes[15] = number;
  return id;
}
constexpr std::uint8_t kDownstream = 9;

class PendingSiblings : public testing::Test {
 protected:
  template <class Record>
  void put(const Record& record) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    unit.insert(record);
    unit.keep();
    session_->commit(unit);
  }
  void put_entry() {
    put(PendingCancelGroup{.partition_key = 3,
                           .flow_id = flow(),
                           .downstream_eid = member(kDownstream).uuid,
                           .reason = kSiblingQuorumSatisfied,
                           .next_due_at_ms = 5});
  }
  void put_group(bool owed) {
    put(EdgeGroup{.partition_key = 3,
                  .flow_id = flow(),
                  .downstream_eid = member(kDownstream).uuid,
                  .policy_kind = JoinKind::any_of,
                  .edge_count = 1,
                  .success_count = 1,
                  .group_state = GroupState::satisfied,
                  .cancel_siblings_pending_flag = owed});
  }
  void put_sibling(LifecyclePhase phase, TerminalOutcome outcome) {
    Execution sibling{.partition_key = 3, .execution_id = member(1).uuid, .lane_id = "lane"};
    sibling.flow_id = flow();
    sibling.state.lifecycle_phase = phase;
    sibling.state.terminal_outcome = outcome;
    put(sibling);
    Edge edge{.partition_key = 3,
              .flow_id = flow(),
              .upstream_eid = member(1).uuid,
              .downstream_eid = member(kDownstream).uuid,
              .edge_state = EdgeState::applied};
    edge.edge_id.uuid.bytes[3] = 4;
    put(edge);
  }

  Rule tick() {
    Unit unit(*session_);
    Context at{.now_ms = session_->begin(unit)};
    unit.begin_operation();
    const auto rule = run_sibling_cancel_clock(unit, key_, at);
    unit.keep();
    session_->commit(unit);
    return rule;
  }
  template <class Record>
  std::optional<Record> stored(const typename Record::Key& key) {
    Unit unit(*session_);
    session_->begin(unit);
    const auto* found = unit.find<Record>(key);
    const auto copy = found ? std::optional(*found) : std::nullopt;
    session_->rollback();
    return copy;
  }

  const EdgeGroupKey key_{3, flow(), member(kDownstream).uuid};
  std::unique_ptr<store::Store> store_ = *store::open_store("memory:", {});
  std::unique_ptr<store::Session> session_ = store_->open_writer();
};

TEST_F(PendingSiblings, AreLeftToTheServerThatWasFaster) {
  EXPECT_EQ(tick(), Rule::edge_cancel_skipped_locked);
}

TEST_F(PendingSiblings, AreForgottenWithTheirJoin) {
  put_entry();
  EXPECT_EQ(tick(), Rule::edge_cancel_orphaned);
  EXPECT_FALSE(stored<PendingCancelGroup>(key_));
}

TEST_F(PendingSiblings, AreLeftAloneWhenTheyAreNotOwedACancel) {
  put_entry();
  put_group(false);
  put_sibling(LifecyclePhase::runnable, TerminalOutcome::none);
  EXPECT_EQ(tick(), Rule::edge_cancel_reconciler);
  EXPECT_FALSE(stored<PendingCancelGroup>(key_));
  EXPECT_EQ(stored<Execution>(member(1))->state.lifecycle_phase, LifecyclePhase::runnable);
}

TEST_F(PendingSiblings, ThatHaveAllEndedAreSettled) {
  put_entry();
  put_group(true);
  put_sibling(LifecyclePhase::terminal, TerminalOutcome::success);
  EXPECT_EQ(tick(), Rule::edge_cancel_dispatcher);
  EXPECT_FALSE(stored<PendingCancelGroup>(key_));
  EXPECT_FALSE(stored<EdgeGroup>(key_)->cancel_siblings_pending_flag);
  EXPECT_EQ(stored<Execution>(member(1))->state.terminal_outcome, TerminalOutcome::success);
}

}  // namespace
}  // namespace flowfabric::core
