#include "support/flow_support.h"

#include <algorithm>
#include <sstream>

#include "support/flow_checks.h"
#include "support/operator_printing.h"

namespace flowfabric::expected {

namespace {

StateVector set_aside(EligibilityState eligibility, BlockingReason reason, PublicState shown,
                      AttemptState attempt) {
  return {LifecyclePhase::runnable,
          OwnershipState::unowned,
          eligibility,
          reason,
          TerminalOutcome::none,
          attempt,
          shown};
}

}  // namespace

StateVector waiting_children(AttemptState attempt) {
  return set_aside(EligibilityState::blocked_by_dependencies, BlockingReason::waiting_for_children,
                   PublicState::waiting_children, attempt);
}
StateVector skipped(AttemptState attempt) {
  return ended(TerminalOutcome::skipped, PublicState::skipped, attempt);
}
StateVector parked(AttemptState attempt) {
  return set_aside(EligibilityState::blocked_by_operator, BlockingReason::paused_by_flow_cancel,
                   PublicState::waiting, attempt);
}

}  // namespace flowfabric::expected

namespace flowfabric::tests {

namespace {

constexpr std::size_t kFewMembers = 100;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

FlowNode* find_node(SubmitFlow& request, const std::string& name) {
  const auto it = std::ranges::find(request.nodes, name, &FlowNode::name);
  return it == request.nodes.end() ? nullptr : &*it;
}

FlowNode plain_node(const std::string& name, const std::string& lane) {
  return {.name = name, .execution = {.lane_id = lane, .execution_kind = "test"}};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const FlowStory& story) {
  out << story.flow << story.graph;
  for (const auto& member : story.members) out << "\n  " << member;
  return out;
}

// ---- what to submit ----

JoinPolicy any_of(OnSatisfied then) {
  return {.kind = JoinKind::any_of, .on_satisfied = then};
}
JoinPolicy quorum(std::uint32_t k, OnSatisfied then) {
  return {.kind = JoinKind::quorum, .k = k, .on_satisfied = then};
}

SubmitFlow graph(const std::string& drawing, const Joins& joins) {
  SubmitFlow request{.flow_kind = "test"};
  for (const auto& path : split(drawing, ' ')) {
    std::string from;
    bool passes = false;
    for (auto name : split(path, '>')) {
      const bool next_passes = name.ends_with('=');
      if (next_passes) name.pop_back();
      if (!find_node(request, name)) request.nodes.push_back(plain_node(name, name));
      if (!from.empty()) request.edges.push_back({from, name, passes});
      from = name;
      passes = next_passes;
    }
  }
  for (const auto& [name, policy] : joins) node(request, name).join = policy;
  return request;
}

FlowNode& node(SubmitFlow& request, const std::string& name) {
  auto* found = find_node(request, name);
  if (!found) throw std::runtime_error("no node " + name);
  return *found;
}

std::string fan_in(std::size_t count, const std::string& to) {
  std::string drawing;
  for (std::size_t i = 1; i <= count; ++i) drawing += "u" + std::to_string(i) + ">" + to + " ";
  return drawing;
}

SubmitFlow fan_out(std::size_t count) {
  SubmitFlow request{.flow_kind = "test", .nodes = {plain_node("root", "many")}};
  for (std::size_t i = 1; i <= count; ++i) {
    request.nodes.push_back(plain_node("n" + std::to_string(i), "many"));
    request.edges.push_back({"root", request.nodes.back().name});
  }
  return request;
}

Uuid uuid_of(std::uint16_t number) {
  Uuid uuid;
  uuid.bytes[14] = static_cast<std::uint8_t>(number >> 8);
  uuid.bytes[15] = static_cast<std::uint8_t>(number & 0xff);
  return uuid;
}
FlowId flow_of(std::uint16_t number) {
  return {uuid_of(number)};
}
FlowId neighbour(const FlowId& flow_id) {
  const auto wanted = execution_id_for(flow_id, {}).partition;
  auto other = flow_id;
  do {
    if (++other.uuid.bytes[0] == 0) ++other.uuid.bytes[1];
  } while (execution_id_for(other, {}).partition != wanted);
  return other;
}

// ---- building ----

FlowId FlowFixture::start_flow(CreateFlow request) {
  if (request.flow_kind.empty()) request.flow_kind = "test";
  flow_id_ = must(std::move(request)).flow_id;
  flows_.push_back(flow_id_);
  names_.clear();
  return flow_id_;
}

ExecutionId FlowFixture::make(const std::string& name, CreateExecution request) {
  request.execution_id = execution_id_for(flow_id_, uuid_of(++made_));
  if (request.lane_id == "default") request.lane_id = name;
  return names_[name] = create(std::move(request));
}

ExecutionId FlowFixture::add(const std::string& name, CreateExecution request) {
  must(AddFlowMember{flow_id_, make(name, std::move(request))});
  return id(name);
}

void FlowFixture::add_all(const std::vector<std::string>& names) {
  for (const auto& name : names) add(name);
}

StageEdge FlowFixture::edge(const std::string& from, const std::string& to,
                            const std::string& data_passing_ref) {
  return {.flow_id = flow_id_,
          .upstream_execution_id = id(from),
          .downstream_execution_id = id(to),
          .data_passing_ref = data_passing_ref,
          .expected_graph_revision = flow().graph_revision};
}

EdgeId FlowFixture::stage(const std::string& from, const std::string& to,
                          const std::string& data_passing_ref) {
  const auto edge_id = must(edge(from, to, data_passing_ref)).edge_id;
  staged_[edge_id] = {id(from), id(to)};
  return edge_id;
}

ApplyEdge FlowFixture::application(const EdgeId& edge_id) {
  const auto& [from, to] = staged_.at(edge_id);
  return {flow_id_, edge_id, from, to};
}

EdgeApplied FlowFixture::apply(const EdgeId& edge_id) {
  return must(application(edge_id));
}

EdgeId FlowFixture::connect(const std::string& from, const std::string& to,
                            const std::string& data_passing_ref) {
  const auto edge_id = stage(from, to, data_passing_ref);
  apply(edge_id);
  return edge_id;
}

JoinPolicySet FlowFixture::set_join(const std::string& name, const JoinPolicy& policy) {
  return must(SetJoinPolicy{flow_id_, id(name), policy});
}

FlowSubmission FlowFixture::submit_many(SubmitFlow request) {
  auto submission = must(std::move(request));
  flow_id_ = submission.flow_id;
  names_ = submission.executions;
  if (!submission.already_existed) flows_.push_back(flow_id_);
  return submission;
}

FlowSubmission FlowFixture::submit(SubmitFlow request) {
  auto submission = submit_many(std::move(request));
  if (submission.already_existed) return submission;
  for (const auto& [name, id] : submission.executions) remember(id);
  return submission;
}

// ---- driving ----

ClaimedTask FlowFixture::take(const std::string& name) {
  auto task = claim_one({.lanes = {name}});
  if (task.execution_id != id(name)) throw std::runtime_error("claimed another execution");
  return task;
}

void FlowFixture::succeeds(const std::string& name, const std::string& result) {
  complete(take(name), result);
}

void FlowFixture::fails(const std::string& name) {
  fail(take(name), "boom", "permanent");
}

void FlowFixture::expect_not_offered(const std::string& names) {
  for (const auto& name : split(names, ' ')) {
    EXPECT_TRUE(claim({.lanes = {name}}).empty()) << name;
  }
}

FlowCancellation FlowFixture::cancel_flow(CancelFlow request) {
  request.flow_id = flow_id_;
  return must(std::move(request));
}

FlowCancellation FlowFixture::cancel_flow(CancellationPolicy policy) {
  return cancel_flow(CancelFlow{.reason = "enough", .cancellation_policy = policy});
}

// ---- what can be read ----

const ExecutionId& FlowFixture::id(const std::string& name) const {
  return names_.at(name);
}

ExecutionSnapshot FlowFixture::member(const std::string& name) {
  return describe(id(name));
}

StateVector FlowFixture::state_of(const std::string& name) {
  return member(name).state;
}

std::string FlowFixture::input_of(const std::string& name) {
  return must(ReadContext{id(name)}).input;
}

std::string FlowFixture::members() {
  std::ostringstream out;
  for (const auto& [name, id] : names_) {
    out << (out.view().empty() ? "" : " ") << name << ':' << state(id).public_state;
  }
  return out.str();
}

FlowSnapshot FlowFixture::flow() {
  return must(DescribeFlow{flow_id_});
}

FlowGraph FlowFixture::drawn() {
  return must(ReadFlowGraph{flow_id_});
}

EdgeSnapshot FlowFixture::edge_of(const EdgeId& edge_id) {
  return must(DescribeEdge{flow_id_, edge_id}).value();
}

JoinSnapshot FlowFixture::join(const std::string& name) {
  for (auto& group : flow().edge_groups) {
    if (group.downstream_execution_id == id(name)) return group;
  }
  throw std::runtime_error(name + " has no join");
}

std::string FlowFixture::tally(const std::string& name) {
  const auto seen = join(name);
  std::ostringstream out;
  out << seen.satisfied_count << ',' << seen.failed_count << ',' << seen.skipped_count << ','
      << seen.running_count << ' ' << seen.group_state;
  return out.str();
}

FlowStory FlowFixture::flow_story() {
  FlowStory seen{.flow = flow(), .graph = drawn(), .members = {}};
  if (seen.graph.nodes.size() > kFewMembers) return seen;
  for (const auto& [name, id] : names_) seen.members.push_back(story(id));
  return seen;
}

// ---- in the end ----

void FlowFixture::TearDown() {
  for (const auto& flow_id : flows_) look_at(flow_id);
  const auto report = must(CheckStore{});
  EXPECT_EQ(report.found, 0u) << report;
  ReopenFixture::TearDown();
}

void FlowFixture::look_at(const FlowId& flow_id) {
  const auto graph = must(ReadFlowGraph{flow_id});
  std::vector<ExecutionSnapshot> members;
  if (graph.nodes.size() <= kFewMembers) {
    for (const auto& node : graph.nodes) members.push_back(must(DescribeExecution{node.execution_id}));
  }
  check_flow(must(DescribeFlow{flow_id}), graph, members);
}

}  // namespace flowfabric::tests
