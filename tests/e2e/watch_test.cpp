// `flowfabric tail` and `flowfabric events`: what they show of a store, directly and through a server, and
// what they say to bad input.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <sstream>

#include "e2e/program.h"
#include "e2e/serving.h"
#include "flowfabric/engine.h"
#include "support/damage.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;

class Watch : public testing::TestWithParam<bool> {
 protected:
  // One execution that has said two things and ended, and one of another lane that has failed.
  void SetUp() override {
    prepare();
    if (GetParam()) server_.emplace(url_);
  }
  void prepare() {
    auto engine = Engine::open(url_);
    ASSERT_TRUE(engine) << engine.error().to_string();
    ASSERT_TRUE(engine->call(CreateExecution{.execution_kind = "a", .tags = {{"k", "v"}}}));
    const auto task = engine->call(ClaimTasks{.worker_id = "w"}).value().at(0);
    done_ = task.execution_id;
    for (const auto* text : {"hello", "world"}) {
      AppendFrame frame{.execution_id = task.execution_id, .attempt_index = 0, .fence = task.fence};
      frame.payload = text;
      frame.frame_type = "log";
      ASSERT_TRUE(engine->call(frame));
    }
    ASSERT_TRUE(engine->call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
    ASSERT_TRUE(engine->call(CreateExecution{.lane_id = "other", .execution_kind = "b"}));
    const auto failing = engine->call(ClaimTasks{.worker_id = "w", .lanes = {"other"}}).value().at(0);
    ASSERT_TRUE(engine->call(
        FailExecution{.execution_id = failing.execution_id, .fence = failing.fence, .reason = "boom"}));
  }

  Ended run(const std::string& arguments) const {
    return run_program(arguments + " --store '" + (server_ ? server_->url() : url_) + "'");
  }
  std::string tail(const std::string& flags = "") const {
    return "tail '" + done_.to_string() + "' " + flags;
  }
  static std::vector<json::object> objects(const std::string& output) {
    std::vector<json::object> found;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('{')) found.push_back(json::parse(line).as_object());
    }
    return found;
  }

  tests::TemporaryFolder folder_;
  std::string url_{"sqlite:" + folder_.file("jobs.db")};
  std::optional<Serving> server_;  // absent: they open the store themselves
  ExecutionId done_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, Watch, testing::Bool(),
                         [](const auto& way) { return way.param ? "Server" : "Direct"; });

TEST_P(Watch, ShowsWhatAnExecutionSaid) {
  const auto ended = run(tail());
  EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_NE(ended.said.find("log          hello\n"), std::string::npos) << ended.said;
  EXPECT_NE(ended.said.find("log          world\n"), std::string::npos) << ended.said;
  EXPECT_NE(ended.said.find("closed: attempt_success"), std::string::npos) << ended.said;
  const auto frames = objects(run(tail("--json --no-follow --attempt 0")).said);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].at("fields").at("payload").as_string(), "world");
}

TEST_P(Watch, SaysWhatIsWrongWithAnExecution) {
  const auto nobody = run("tail '{fp:0}:00000000-0000-4000-8000-000000000000'");
  EXPECT_EQ(nobody.code, 3);
  EXPECT_NE(nobody.said.find("execution_not_found"), std::string::npos) << nobody.said;
  const auto no_id = run("tail something");
  EXPECT_EQ(no_id.code, 1);
  EXPECT_NE(no_id.said.find("Give the id of an execution"), std::string::npos) << no_id.said;
}

TEST_P(Watch, ShowsEvents) {
  const auto events = objects(run("events --json").said);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("type").as_string(), "success");
  EXPECT_EQ(events[1].at("type").as_string(), "failed");
  EXPECT_EQ(events[1].at("lane_id").as_string(), "other");
  // Goes on where it was.
  const std::string cursor(events[0].at("cursor").as_string());
  EXPECT_EQ(objects(run("events --json --cursor '" + cursor + "'").said).size(), 1u);
  for (const auto* filter : {"--tag k=v", "--lane default", "--type success"}) {
    EXPECT_EQ(objects(run(std::string("events --json ") + filter).said).size(), 1u) << filter;
  }
  EXPECT_EQ(objects(run("events --json --execution '" + done_.to_string() + "'").said).size(), 1u);
  EXPECT_EQ(objects(run("events --json --kind lease_history").said).size(), 4u);
  EXPECT_EQ(objects(run("events --json --kind lease --kind completion").said).size(), 6u);
  const auto text = run("events --kind instance_tags").said;
  EXPECT_NE(text.find("attached"), std::string::npos) << text;
}

// Written by a newer version (06 §16.62).
TEST_P(Watch, ShowsEventsOfUnknownTypes) {
  server_.reset();
  tests::damage_file(folder_.file("jobs.db"),
                     "update ff_completion_event set outcome='teleported' where outcome='success'");
  if (GetParam()) server_.emplace(url_);
  const auto events = objects(run("events --json").said);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("type").as_string(), "teleported");
  const auto text = run("events").said;
  EXPECT_NE(text.find("teleported"), std::string::npos) << text;
  EXPECT_EQ(objects(run("events --json --type failed").said).size(), 1u);
  EXPECT_EQ(objects(run("events --json --type teleported").said).size(), 1u);
}

TEST_P(Watch, RefusesBadFilters) {
  for (const auto* bad :
       {"--kind nonsense", "--cursor x", "--cursor AAAA", "--tag k", "--flow x", "--execution x"}) {
    const auto ended = run(std::string("events ") + bad);
    EXPECT_EQ(ended.code, 1) << bad;
    EXPECT_NE(ended.said.find("invalid_input"), std::string::npos) << ended.said;
  }
}

}  // namespace
}  // namespace flowfabric::e2e
