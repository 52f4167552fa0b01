// The table that members of flows are found by follows the executions.
#include <gtest/gtest.h>

#include "flowfabric/engine.h"
#include "support/postgres_database.h"

namespace flowfabric::tests {
namespace {

class PostgresFlowMembers : public testing::Test {
 protected:
  Engine open() {
    EngineOptions options;
    options.clock_interval = std::chrono::milliseconds(0);
    options.now_ms = [this] { return now_.load(); };
    auto engine = Engine::open(database_.url(), std::move(options));
    EXPECT_TRUE(engine) << engine.error().to_string();
    return *std::move(engine);
  }
  std::string count(const std::string& table) const {
    return database_.query("select count(*) from " + table).at(0).at(0);
  }

  const PostgresDatabase database_;
  std::atomic<std::int64_t> now_{1'750'000'000'000};
};

TEST_F(PostgresFlowMembers, ComeWithTheirExecutionsAndGoWithThem) {
  auto engine = open();
  ASSERT_TRUE(engine.call(
      SubmitFlow{.flow_kind = "two", .nodes = {{.name = "a"}, {.name = "b"}}, .edges = {{"a", "b"}}}));
  ASSERT_TRUE(engine.call(CreateExecution{}));
  EXPECT_EQ(count("ff_flow_member"), "2");
  for (int i = 0; i < 3; ++i) {
    const auto task = engine.call(ClaimTasks{.worker_id = "w"}).value().at(0);
    ASSERT_TRUE(engine.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
  }
  EXPECT_EQ(count("ff_flow_member"), "2");

  // Members are kept until their flow is over, and looked at again after a while.
  for (int days = 0; days < 4; ++days) {
    now_ += 86'400'000;
    ASSERT_TRUE(engine.run_due());
  }
  EXPECT_EQ(count("ff_exec_core"), "0");
  EXPECT_EQ(count("ff_flow_core"), "0");
  EXPECT_EQ(count("ff_flow_member"), "0");
}

TEST_F(PostgresFlowMembers, ComeWhenTheyAreAdded) {
  auto engine = open();
  const FlowId flow = engine.call(CreateFlow{.flow_kind = "one"}).value().flow_id;
  const auto id =
      engine
          .call(CreateExecution{.execution_id = execution_id_for(
                                    flow, Uuid::parse("00000000-0000-7000-8000-000000000001").value())})
          .value()
          .execution_id;
  EXPECT_EQ(count("ff_flow_member"), "0");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine.call(AddFlowMember{flow, id}));
  EXPECT_EQ(database_.query("select flow_id, execution_id from ff_flow_member"),
            (PostgresConnection::Rows{{flow.to_string(), id.uuid.to_string()}}));
  const auto members = engine.call(ListExecutions{.filter = {.flow_id = flow}});
  ASSERT_TRUE(members);
  EXPECT_EQ(members->executions.size(), 1u);
}

}  // namespace
}  // namespace flowfabric::tests
