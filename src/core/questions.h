// Questions that an index of the store answers.
//
// The answers come from the store and do not know what this batch has changed: look at each record that was
// found before acting on it, and look again later for what was missed.
#pragma once

#include <boost/mp11.hpp>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/list_position.h"
#include "model/records.h"

namespace flowfabric::core {

struct WorkersOf {
  using Found = WorkerKey;
  std::string namespace_;
  auto operator<=>(const WorkersOf&) const = default;
};
// The executions that a worker instance runs, by id.
struct LeasesOf {
  using Found = ExecutionId;
  std::string worker_instance_id;
  std::optional<std::string> namespace_;  // of the executions; absent: any
  std::optional<ExecutionId> after;
  std::uint32_t limit{};
  auto operator<=>(const LeasesOf&) const = default;
};
struct BlockedOnRoute {
  using Found = ExecutionId;
  std::int64_t route_id{};
  std::uint32_t limit{};
  auto operator<=>(const BlockedOnRoute&) const = default;
};
// The edges out of, or into, an execution, by edge id.
struct EdgesFrom {
  using Found = EdgeKey;
  ExecutionId upstream;
  std::optional<EdgeId> after;
  std::uint32_t limit{};
  auto operator<=>(const EdgesFrom&) const = default;
};
struct EdgesInto {
  using Found = EdgeKey;
  ExecutionId downstream;
  std::optional<EdgeId> after;
  std::uint32_t limit{};
  auto operator<=>(const EdgesInto&) const = default;
};
// Everything that follows it, over any number of edges.
struct Descendants {
  using Found = ExecutionId;
  ExecutionId of;
  auto operator<=>(const Descendants&) const = default;
};
struct MemberPhase {
  ExecutionId execution_id;
  LifecyclePhase phase{};
  auto operator<=>(const MemberPhase&) const = default;
};
BOOST_DESCRIBE_STRUCT(MemberPhase, (), (execution_id, phase))
struct MembersOf {
  using Found = MemberPhase;
  FlowId flow_id;
  auto operator<=>(const MembersOf&) const = default;
};
// Members of a cancelled flow that are still owed a cancel, by id.
struct OwedCancels {
  using Found = ExecutionId;
  FlowKey flow;
  std::optional<Uuid> after;
  std::uint32_t limit{};
  auto operator<=>(const OwedCancels&) const = default;
};
// Waitpoints of an execution that are not closed, by id.
struct OpenWaitpoints {
  using Found = WaitpointRecordKey;
  ExecutionId of;
  auto operator<=>(const OpenWaitpoints&) const = default;
};
// Waitpoints with this id: one, unless two executions were given the same at the same moment.
struct WaitpointsNamed {
  using Found = WaitpointRecordKey;
  WaitpointId waitpoint_id;
  auto operator<=>(const WaitpointsNamed&) const = default;
};
// Secrets that no new token is signed with.
struct RetiredSecrets {
  using Found = HmacKeyKey;
  auto operator<=>(const RetiredSecrets&) const = default;
};
// The executions that a budget or quota policy holds back, oldest first.
struct BlockedOn {
  using Found = ListPosition;
  Uuid limit_id;
  std::optional<ListPosition> after;
  std::uint32_t limit{};
  auto operator<=>(const BlockedOn&) const = default;
};
// Admissions that a policy's rate counts, oldest first; and those that hold a slot.
struct WindowEntry {
  QuotaAdmissionKey admission;
  std::int64_t window_at_ms{};
};
BOOST_DESCRIBE_STRUCT(WindowEntry, (), (admission, window_at_ms))
struct WindowOf {
  using Found = WindowEntry;
  QuotaPolicyKey policy;
  std::uint32_t limit{};
  auto operator<=>(const WindowOf&) const = default;
};
struct SlotsOf {
  using Found = QuotaAdmissionKey;
  QuotaPolicyKey policy;
  auto operator<=>(const SlotsOf&) const = default;
};
// Those that hold a slot although they are neither leased nor granted, or are not there at all; by key.
struct StraySlotsOf {
  using Found = QuotaAdmissionKey;
  QuotaPolicyKey policy;
  std::uint32_t limit{};
  auto operator<=>(const StraySlotsOf&) const = default;
};
// Policies of a lane's keys that hold something back, by key.
struct FullKeysOf {
  using Found = QuotaPolicyKey;
  std::string lane_id;
  std::uint32_t limit{};
  auto operator<=>(const FullKeysOf&) const = default;
};
// Flows, lanes and tenants that a budget or quota policy is attached to.
struct ScopesOf {
  using Found = ScopeLimitsKey;
  Uuid limit_id;
  auto operator<=>(const ScopesOf&) const = default;
};
// The executions that have spent of a budget, by id.
struct SpendingOf {
  using Found = SpendKey;
  BudgetId budget_id;
  std::optional<ExecutionId> after;
  std::uint32_t limit{};
  auto operator<=>(const SpendingOf&) const = default;
};
// The groups of a route, and those of its lane and namespace that an older version made for all routes.
struct GroupsOf {
  using Found = GroupKey;
  std::int64_t route_id{};
  std::string lane_id;
  std::string namespace_;
  std::uint32_t limit{};
  auto operator<=>(const GroupsOf&) const = default;
};
// One of the executions of a group, if there is any.
struct ExecutionsIn {
  using Found = ExecutionId;
  std::int64_t group_id{};
  auto operator<=>(const ExecutionsIn&) const = default;
};
using Questions =
    boost::mp11::mp_list<BlockedOn, WindowOf, SlotsOf, StraySlotsOf, FullKeysOf, ScopesOf, SpendingOf,
                         OpenWaitpoints, WaitpointsNamed, RetiredSecrets, WorkersOf, LeasesOf, BlockedOnRoute,
                         GroupsOf, ExecutionsIn, EdgesFrom, EdgesInto, Descendants, MembersOf, OwedCancels>;

// The answers that a batch knows to one kind of question. Made when the first is asked: a unit that named the
// types of all answers would be compiled anew by everybody who uses one of them.
struct AnyAnswers {
  virtual ~AnyAnswers() = default;
};
template <class Question>
struct Answers final : AnyAnswers {
  std::map<Question, std::vector<typename Question::Found>> known;
  std::vector<Question> wanted;
};

}  // namespace flowfabric::core
