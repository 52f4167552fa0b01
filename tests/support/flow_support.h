// Flows in tests: drawn in a line, driven member by member, looked at as a whole. A member has a name, and
// unless it says otherwise a lane of that name to itself, so that it can be taken on purpose.
//
// Whatever a test does, its flows are looked at when it ends: the joins must agree with the edges, the
// derived state with the members, and the whole store must be sound.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "flowfabric/flows.h"
#include "support/flow_printing.h"
#include "support/reopen_fixture.h"

namespace flowfabric::expected {

StateVector waiting_children(AttemptState attempt = AttemptState::pending_first_attempt);
StateVector skipped(AttemptState attempt = AttemptState::none);
// Taken out of the line by let_active_finish.
StateVector parked(AttemptState attempt = AttemptState::pending_first_attempt);

}  // namespace flowfabric::expected

namespace flowfabric::tests {

JoinPolicy any_of(OnSatisfied then = OnSatisfied::cancel_remaining);
JoinPolicy quorum(std::uint32_t k, OnSatisfied then = OnSatisfied::cancel_remaining);
using Joins = std::map<std::string, JoinPolicy>;

// "a>b>d c=>d e": edges, of which `=>` passes the result on, and a node that stands alone.
SubmitFlow graph(const std::string& drawing, const Joins& joins = {});
FlowNode& node(SubmitFlow& request, const std::string& name);
// "u1>d u2>d u3>d"
std::string fan_in(std::size_t count, const std::string& to = "d");
// All on the lane `many`: a root, `count` that follow it, and no end.
SubmitFlow fan_out(std::size_t count);

Uuid uuid_of(std::uint16_t number);
FlowId flow_of(std::uint16_t number);
// Another flow of the same partition.
FlowId neighbour(const FlowId& flow_id);

// All that can be read of a flow and its members: what a refused call must leave alone.
struct FlowStory {
  FlowSnapshot flow;
  FlowGraph graph;
  std::vector<Story> members;
  bool operator==(const FlowStory&) const = default;
};
std::ostream& operator<<(std::ostream& out, const FlowStory& story);

class FlowFixture : public ReopenFixture {
 protected:
  using ReopenFixture::ReopenFixture;

  void TearDown() override;

  // ---- building; all that follows is about the flow that was started or submitted last ----

  FlowId start_flow(CreateFlow request = {});
  // In the flow's partition, but not a member yet.
  ExecutionId make(const std::string& name, CreateExecution request = {});
  ExecutionId add(const std::string& name, CreateExecution request = {});
  void add_all(const std::vector<std::string>& names);

  // With the revision of the moment.
  StageEdge edge(const std::string& from, const std::string& to, const std::string& data_passing_ref = "");
  EdgeId stage(const std::string& from, const std::string& to, const std::string& data_passing_ref = "");
  ApplyEdge application(const EdgeId& edge_id);
  EdgeApplied apply(const EdgeId& edge_id);
  EdgeId connect(const std::string& from, const std::string& to, const std::string& data_passing_ref = "");
  JoinPolicySet set_join(const std::string& name, const JoinPolicy& policy);

  FlowSubmission submit(SubmitFlow request);
  // Its members are too many to be looked at one by one in the end.
  FlowSubmission submit_many(SubmitFlow request);
  // It was removed with its last member.
  void forget_flow(const FlowId& flow_id) { std::erase(flows_, flow_id); }

  // ---- driving ----

  ClaimedTask take(const std::string& name);
  void succeeds(const std::string& name, const std::string& result = "");
  void fails(const std::string& name);
  // "a b": none of them can be claimed.
  void expect_not_offered(const std::string& names);
  FlowCancellation cancel_flow(CancelFlow request = {});
  FlowCancellation cancel_flow(CancellationPolicy policy);

  // ---- what can be read ----

  const FlowId& flow_id() const { return flow_id_; }
  const ExecutionId& id(const std::string& name) const;
  ExecutionSnapshot member(const std::string& name);
  StateVector state_of(const std::string& name);
  std::string input_of(const std::string& name);
  // "a:completed b:skipped", by name.
  std::string members();
  FlowSnapshot flow();
  FlowGraph drawn();
  EdgeSnapshot edge_of(const EdgeId& edge_id);
  JoinSnapshot join(const std::string& name);
  // "1,0,0,2 pending": succeeded, failed, skipped, running, and the decision.
  std::string tally(const std::string& name);
  FlowStory flow_story();

  // The call is refused, and nothing that can be read of the flow has changed.
  template <class Request>
  Error refuse(Request request, ErrorCode code, const std::string& detail_start = "") {
    const auto before = flow_story();
    const auto error = expect_error(std::move(request), code);
    EXPECT_TRUE(error.detail.starts_with(detail_start)) << error.detail;
    EXPECT_EQ(flow_story(), before);
    return error;
  }

 private:
  void look_at(const FlowId& flow_id);

  FlowId flow_id_{};
  std::vector<FlowId> flows_;
  std::map<std::string, ExecutionId> names_;
  std::map<EdgeId, std::pair<ExecutionId, ExecutionId>> staged_;
  std::uint16_t made_{0};
};

// Once per store.
class FlowTest : public FlowFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  FlowTest() : FlowFixture(GetParam()) {}
};

// Once per store and case; a case has a `name`.
template <class Case>
class FlowCaseTest : public FlowFixture, public ::testing::WithParamInterface<std::tuple<const char*, Case>> {
 protected:
  FlowCaseTest() : FlowFixture(std::get<0>(this->GetParam())) {}
  const Case& given() const { return std::get<1>(this->GetParam()); }
};

}  // namespace flowfabric::tests
