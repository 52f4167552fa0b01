// Siblings that are to be cancelled while somebody else holds what that needs (04, case 47). Only where
// several servers share a store.
#include <future>

#include "support/flow_support.h"
#include "support/postgres_connection.h"

namespace flowfabric {
namespace {

using namespace tests;

class LockedSiblings : public FlowFixture {
 protected:
  LockedSiblings() : FlowFixture("postgres") {}

  // Locks the row, like another server. The lock ends with the returned object.
  std::unique_ptr<PostgresConnection> hold(const std::string& table, const std::string& downstream) {
    auto other = std::make_unique<PostgresConnection>(store().url());
    other->query("begin");
    const auto rows = other->query("select 1 from " + table + " where downstream_eid='" +
                                   id(downstream).uuid.to_string() + "' for update");
    EXPECT_EQ(rows.size(), 1u);
    return other;
  }
  std::uint64_t dispatched() {
    const auto rules = engine().stats().clock_rules;
    const auto it = rules.find("edge_cancel_dispatcher");
    return it == rules.end() ? 0 : it->second;
  }
};

TEST_F(LockedSiblings, AreLeftToWhomeverIsBusyWithThem) {
  submit(graph("a1>a a2>a b1>b b2>b", {{"a", any_of()}, {"b", any_of()}}));
  take("a2");
  succeeds("a1");
  succeeds("b1");
  auto other = hold("ff_pending_cancel_groups", "a");
  run_due();
  EXPECT_EQ(members(), "a:waiting a1:completed a2:active b:waiting b1:completed b2:cancelled");
  EXPECT_TRUE(join("a").cancel_siblings_pending);
  EXPECT_EQ(dispatched(), 1u) << "that of the other join";
  other.reset();
  run_due();

  EXPECT_EQ(members(), "a:waiting a1:completed a2:cancelled b:waiting b1:completed b2:cancelled");
  EXPECT_FALSE(join("a").cancel_siblings_pending);
  EXPECT_EQ(dispatched(), 2u);
}

// An upstream that ends on another server counts first.
TEST_F(LockedSiblings, WaitForTheirJoin) {
  submit(graph("u1>d u2>d", {{"d", any_of()}}));
  take("u2");
  succeeds("u1");
  auto other = hold("ff_edge_group", "d");
  auto tick = std::async(std::launch::async, [&] { run_due(); });
  EXPECT_EQ(tick.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(members(), "d:waiting u1:completed u2:active");
  other.reset();
  tick.get();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled");
}

}  // namespace
}  // namespace flowfabric
