// Signals in the event logs (06 §9.3; the number is that of §16).
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class FollowingSignals : public SuspensionTest {
 protected:
  Log told(EventFamily family, const std::string& field) {
    Log found;
    const auto batch = must(FollowEvents{.family = family, .cursor = first_cursor()});
    for (const auto& event : batch.events) found.push_back(event.type + " " + event.fields.at(field));
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FollowingSignals, kStores, store_name);

TEST_P(FollowingSignals, TellsWhatASignalDid) {  // 59
  const auto task = running();
  suspend(suspension(task));
  auto request = signal(waitpoint());
  request.idempotency_key = "once";
  deliver(request);
  deliver(request);
  EXPECT_EQ(told(EventFamily::signal_delivery, "raw_effect"),
            (Log{"satisfied resume_condition_satisfied", "deduped duplicate"}));
  EXPECT_EQ(told(EventFamily::completion, "outcome"), Log{}) << "it has not ended";
  fail(claim_one());
  EXPECT_EQ(told(EventFamily::completion, "outcome"), Log{"failed failed"});
}

// Each family says whose execution it was, and is chosen by that.
TEST_P(FollowingSignals, EveryFamilyKnowsWhoseItWas) {
  const CreateExecution request{
      .namespace_ = "team", .lane_id = "side", .tags = {{"cairn.instance_id", "i-7"}, {"a.b", "c"}}};
  create(request);
  const auto task = claim_one({.lanes = {"side"}});
  suspend(suspension(task));
  deliver(signal(waitpoint()));
  must(ChangePriority{.execution_id = task.execution_id, .new_priority = 7});
  complete(claim_one({.lanes = {"side"}}));
  complete(running());
  using enum EventFamily;
  for (const auto family : {lease_history, completion, signal_delivery, operator_, instance_tags}) {
    SCOPED_TRACE(enum_name(family));
    const auto seen = [&](EventFilter filter) {
      return must(FollowEvents{.family = family, .cursor = first_cursor(), .filter = std::move(filter)})
          .events;
    };
    const auto mine = seen({.execution_id = task.execution_id});
    ASSERT_FALSE(mine.empty());
    for (const auto& event : mine) {
      EXPECT_EQ(event.fields.at("namespace"), "team");
      EXPECT_EQ(event.fields.at("instance_tag"), "i-7");
      EXPECT_EQ(event.fields.at("lane_id"), "side");
    }
    EXPECT_EQ(seen({.namespace_ = "team"}), mine);
    EXPECT_EQ(seen({.lane_id = "side"}), mine);
    EXPECT_EQ(seen({.tag = {{"a.b", "c"}}}), mine);
    EXPECT_EQ(seen({.namespace_ = "team", .tag = {{"cairn.instance_id", "i-7"}}, .lane_id = "side"}), mine);
    EXPECT_TRUE(seen({.namespace_ = "other"}).empty());
    EXPECT_TRUE(seen({.tag = {{"other", "c"}}}).empty());
    EXPECT_TRUE(seen({.lane_id = "sid"}).empty());
    EXPECT_TRUE(seen({.flow_id = FlowId{}}).empty());
  }
}

TEST_P(FollowingSignals, ACancelledFlowsEventKnowsWhoseItWas) {  // 61
  SubmitFlow flow{.flow_kind = "x", .namespace_ = "team", .tags = {{"cairn.instance_id", "i-7"}}};
  flow.nodes = {{.name = "a"}, {.name = "b"}};
  const auto submitted = must(flow);
  for (const auto& [name, id] : submitted.executions) remember(id);
  must(CancelFlow{.flow_id = submitted.flow_id, .reason = "enough"});
  const auto events = must(FollowEvents{.family = EventFamily::operator_,
                                        .cursor = first_cursor(),
                                        .filter = {.namespace_ = "team",
                                                   .tag = {{"cairn.instance_id", "i-7"}},
                                                   .flow_id = submitted.flow_id}})
                          .events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, "flow_cancel_requested");
  EXPECT_EQ(events[0].fields, (std::map<std::string, std::string>{{"cancellation_policy", "cancel_all"},
                                                                  {"flow_id", submitted.flow_id.to_string()},
                                                                  {"instance_tag", "i-7"},
                                                                  {"member_count", "2"},
                                                                  {"namespace", "team"},
                                                                  {"reason", "enough"}}));
}

// Signals that wait for others, and signals nobody waits for yet.
TEST_P(FollowingSignals, TellsOfBufferedSignals) {
  const auto task = running();
  const auto early = make_waitpoint(task);
  deliver(signal(early));
  EXPECT_EQ(told(EventFamily::signal_delivery, "raw_effect"), Log{"buffered buffered_for_pending_waitpoint"});
}

TEST_P(FollowingSignals, TellsOfSignalsThatResumeNobody) {  // §9.3
  suspend(suspension(running(), count_of(2, CountKind::distinct_signals, {"k"}, SignalMatcher{"go"})));
  deliver(signal(waitpoint(), "go"));
  deliver(signal(waitpoint(), "other"));
  EXPECT_EQ(
      told(EventFamily::signal_delivery, "raw_effect"),
      (Log{"buffered appended_to_waitpoint", "signal_ignored_matcher_failed signal_ignored_matcher_failed"}));
}

}  // namespace
}  // namespace flowfabric
