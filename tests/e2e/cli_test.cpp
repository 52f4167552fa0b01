// Executions from the command line: submit, read, change, signal; and the errors for bad input.
#include <future>

#include "e2e/cli_fixture.h"
#include "http/client.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;

INSTANTIATE_TEST_SUITE_P(BothWays, Cli, testing::Bool(), how);

TEST_P(Cli, SubmitsAndShowsAnExecution) {
  const auto id = submitted(
      R"(--tag a=1 --tag b=x=y resize --input '{"price":1.10}' --lane mail --namespace acme --priority 7)");
  const auto text = out("get " + id);
  for (const auto* words : {"kind       resize", "state      waiting", "lane       mail", "namespace  acme",
                            "priority   7", "tags       a=1 b=x=y", R"(input      {"price":1.10})"}) {
    EXPECT_TRUE(has(text, words)) << words << " in\n" << text;
  }
  const auto shown = object("get --json " + id);
  EXPECT_EQ(shown.at("public_state"), "waiting");
  EXPECT_EQ(shown.at("priority"), 7);
  EXPECT_EQ(shown.at("input").at("price").as_double(), 1.1);
  EXPECT_TRUE(shown.at("attempt_history").as_array().empty());
  EXPECT_TRUE(has(out("why " + id), "waiting_for_worker"));
  EXPECT_FALSE(object("why --json " + id).at("reasons").as_array().empty());
}

TEST_P(Cli, TakesInputFromFilesAndAPipe) {
  const auto input = file("input.json", " {\"n\": [1, 2]} \n");
  const auto policy = file("policy.json", R"({"retry_policy":{"max_retries":2}})");
  const auto id = submitted("k --input '@" + input + "' --policy '@" + policy + "' --delay 1h");
  const auto shown = object("get --json " + id);
  EXPECT_EQ(json::serialize(shown.at("input")), R"({"n":[1,2]})");
  EXPECT_EQ(shown.at("public_state"), "delayed");
  const auto piped = run("submit k --input - --json", {.before = "echo '\"text\"' |"});
  ASSERT_EQ(piped.code, 0) << piped.said;
  const std::string piped_id(json::parse(piped.said).at("execution_id").as_string());
  EXPECT_EQ(object("get --json '" + piped_id + "'").at("input"), "text");
}

TEST_P(Cli, SubmitsOnce) {
  const auto id = submitted("k --idempotency-key once");
  const auto again = run("submit k --idempotency-key once");
  EXPECT_EQ(again.code, 0);
  EXPECT_TRUE(has(again.said, id.substr(1, id.size() - 2))) << again.said;
  EXPECT_TRUE(has(again.said, "It was submitted before.")) << again.said;
  EXPECT_EQ(object("submit k --json --idempotency-key once").at("created"), false);
}

TEST_P(Cli, ListsWhatAFilterMatches) {
  prepare([](Engine& engine) {
    CreateExecutions many;
    for (int i = 0; i < 60; ++i) many.executions.push_back({.lane_id = "mail", .execution_kind = "send"});
    ASSERT_TRUE(engine.call(std::move(many)));
  });
  const auto one = submitted("resize --tag team=a");
  EXPECT_EQ(objects("list --json --kind resize").size(), 1u);
  EXPECT_EQ(objects("list --json --tag team=a --state waiting").size(), 1u);
  EXPECT_EQ(objects("list --json --lane mail").size(), 50u);
  EXPECT_EQ(objects("list --json --lane mail --limit 55").size(), 55u);
  EXPECT_EQ(objects("list --json --all --created-after 1h").size(), 61u);
  EXPECT_TRUE(objects("list --json --created-before 2020-01-01T00:00:00Z").empty());
  EXPECT_EQ(objects("list --json --all --oldest").back().at("execution_kind"), "resize");
  const auto table = run("list --lane mail --limit 2");
  EXPECT_TRUE(table.said.starts_with("EXECUTION ")) << table.said;
  EXPECT_TRUE(has(table.said, "There are more")) << table.said;
  EXPECT_TRUE(has(run("list --kind nothing").said, "No executions."));
}

TEST_P(Cli, CancelsAndReplaysById) {
  const auto first = submitted(), second = submitted();
  const auto ended = run("cancel --reason 'no need' " + first + " " + kNobody + " " + second);
  EXPECT_EQ(ended.code, 3) << ended.said;
  EXPECT_TRUE(has(ended.said, "execution_not_found")) << ended.said;
  for (const auto& id : {first, second}) {
    const auto shown = object("get --json " + id);
    EXPECT_EQ(shown.at("public_state"), "cancelled");
    EXPECT_EQ(shown.at("cancellation_reason"), "no need");
  }
  EXPECT_EQ(object("replay --json " + first).at("public_state"), "waiting");
  const auto running = run("replay " + first);
  EXPECT_EQ(running.code, 1) << running.said;
  EXPECT_TRUE(has(running.said, "execution_not_terminal")) << running.said;
}

TEST_P(Cli, ChangesAllThatAFilterMatches) {
  prepare([](Engine& engine) {
    CreateExecutions many;
    for (int i = 0; i < 300; ++i) many.executions.push_back({.lane_id = "mail", .execution_kind = "send"});
    ASSERT_TRUE(engine.call(std::move(many)));
    ASSERT_TRUE(engine.call(CreateExecution{.execution_kind = "other"}));
  });
  EXPECT_EQ(out("cancel --lane mail --state waiting"), "cancel: 300 done, 0 failed\n");
  EXPECT_EQ(objects("list --all --json --state waiting").size(), 1u);
  const auto operation = object("replay --json --lane mail --state cancelled");
  EXPECT_EQ(operation.at("state"), "finished");
  EXPECT_EQ(operation.at("done"), 300);
}

TEST_P(Cli, SendsSignals) {
  std::vector<Suspended> suspended;
  std::vector<std::string> ids;
  prepare([&](Engine& engine) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(engine.call(CreateExecution{.execution_kind = "k"}));
      const auto task = engine.call(ClaimTasks{.worker_id = "w"}).value().at(0);
      const auto stopped =
          engine.call(SuspendExecution{.execution_id = task.execution_id,
                                       .fence = task.fence,
                                       .resume_condition = {SingleSignal{"approval", {"approved"}}}});
      ASSERT_TRUE(stopped) << stopped.error().to_string();
      suspended.push_back(*stopped);
      ids.push_back("'" + task.execution_id.to_string() + "'");
    }
  });
  EXPECT_TRUE(has(out("why " + ids[0]), "waiting_for_signal"));
  const auto& waitpoint = suspended[0].waitpoints.at(0);
  const auto wrong = run("signal " + ids[0] + " --name approved --token x --waitpoint " +
                         waitpoint.waitpoint_id.to_string());
  EXPECT_EQ(wrong.code, 1) << wrong.said;
  EXPECT_TRUE(has(wrong.said, "invalid_token")) << wrong.said;
  const auto token = file("token", waitpoint.waitpoint_token + "\n");
  const auto with_token =
      out("signal " + ids[0] + " --name approved --payload '{\"by\":\"ann\"}' --token '@" + token +
          "' --waitpoint " + waitpoint.waitpoint_id.to_string());
  EXPECT_TRUE(has(with_token, "accepted: ")) << with_token;
  // The only waitpoint is found, and so is its token.
  EXPECT_TRUE(object("signal --json " + ids[1] + " --name approved").contains("Accepted"));
  for (const auto& id : ids) EXPECT_EQ(object("get --json " + id).at("public_state"), "waiting");
  EXPECT_EQ(run("signal " + submitted() + " --name approved").code, 3);
}

// A worker over HTTP: takes one execution and ends it.
void work(const std::string& url, const std::string& operation, const std::string& more) {
  auto client = http::Client::connect(url);
  ASSERT_TRUE(client);
  const auto post = [&](const std::string& path, const std::string& body) {
    return (*client)->send(
        {.method = "POST", .path = path, .headers = {{"content-type", "application/json"}}, .body = body});
  };
  const auto claimed = post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":20000})");
  ASSERT_TRUE(claimed);
  const auto task = json::parse(claimed->body).at("tasks").at(0);
  const auto ended = post("/v1/tasks/" + operation,
                          "{" + more + R"("execution_id":)" + json::serialize(task.at("execution_id")) +
                              R"(,"lease":)" + json::serialize(task.at("lease")) + "}");
  ASSERT_TRUE(ended);
  ASSERT_EQ(ended->status, 200) << ended->body;
}

TEST_P(Cli, WaitsForTheEnd) {
  const auto late = run("submit k --lane nobody --wait --timeout 300ms");
  EXPECT_EQ(late.code, 5) << late.said;
  EXPECT_TRUE(has(late.said, "timeout")) << late.said;
  if (!has_server()) return;  // a store that is open here can have no worker elsewhere
  auto worker =
      std::async(std::launch::async, [&] { work(server_url(), "complete", R"("result":{"price":1.10},)"); });
  EXPECT_EQ(out("submit k --wait --timeout 30s"), "{\"price\":1.10}\n");
  worker.get();
  worker = std::async(std::launch::async,
                      [&] { work(server_url(), "fail", R"("reason":"no paper","category":"permanent",)"); });
  const auto failed = run("submit k --wait");
  worker.get();
  EXPECT_EQ(failed.code, 1) << failed.said;
  EXPECT_TRUE(has(failed.said, "failed: no paper")) << failed.said;
}

TEST_P(Cli, TakesOptionsOfMostCommandsBeforeTheCommand) {
  const auto id = submitted("k --lane mail");
  const auto at = "'" + (has_server() ? server_url() : store()) + "'";
  const auto shown = [&](const std::string& arguments) {
    const auto ended = run_program(arguments, {.only_output = true});
    EXPECT_EQ(ended.code, 0) << arguments << ": " << run_program(arguments).said;
    return ended.said;
  };
  const auto expected = out("get --json " + id);
  for (const auto& options :
       {"--store " + at + " --json", "--json --store=" + at, "--insecure --json --store " + at}) {
    EXPECT_EQ(shown(options + " get " + id), expected) << options;
  }
  EXPECT_EQ(shown("--store " + at + " get --json " + id), expected) << "before and after";
  EXPECT_EQ(json::parse(shown("--json --store " + at + " lanes pause mail")).at("state"), "paused");
  EXPECT_EQ(json::parse(shown("lanes --json --store " + at + " resume mail")).at("state"), "active")
      << "between the words of a command";
  shown("--store " + at + " flow list");
  // Errors are reported as they are when the options follow the command.
  const auto wrong = [&](const std::string& arguments, const std::string& words) {
    const auto ended = run_program(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << ": " << ended.said;
    EXPECT_TRUE(has(ended.said, words)) << arguments << ": " << ended.said;
  };
  wrong("--store " + at, "subcommand is required");
  wrong("--store " + at + " dance", "dance: no such command");
  wrong("--store nowhere get " + id, "give a server");
  wrong("--json demo", "--json");
  wrong("--stroe " + at + " get " + id, "--stroe");
  EXPECT_TRUE(has(run_program("--help").said, "--store")) << "it is told";
}

TEST_P(Cli, SaysWhatIsWrong) {
  submitted();
  struct Wrong {
    std::string arguments;
    int code;
    std::string words;
  };
  const auto text = file("text.json", "hello");
  const std::vector<Wrong> all{{"get something", 1, "Give the id of an execution"},
                               {"get " + std::string(kNobody), 3, "execution_not_found"},
                               {"get " + std::string(kNobody), 3, "check the id"},
                               {"get " + std::string(kNobody), 3, "It was looked for in "},
                               {"tail " + std::string(kNobody), 3, "check the id"},
                               {"flow show 00000000-0000-4000-8000-000000000000", 3, "check the id"},
                               {"why " + std::string(kNobody), 3, "execution_not_found"},
                               {"submit k --input hello", 2, "--input is not JSON"},
                               {"submit k --input '@" + text + "'", 2, "text.json is not JSON"},
                               {"submit k --input @/nowhere/at/all", 2, "/nowhere/at/all: cannot be read"},
                               {"submit k --tag a", 2, "key=value"},
                               {"submit k --delay soon", 2, "--delay soon"},
                               {"submit k --timeout 1s", 2, "--wait"},
                               {"submit k --lane ''", 1, "invalid_input"},
                               {"submit", 2, "kind is required"},
                               {"list --state running", 1, "running"},
                               {"list --created-after yesterday", 2, "--created-after yesterday"},
                               {"cancel", 2, "nothing to cancel"},
                               {"cancel --lane x " + std::string(kNobody), 2, "ids and a filter"},
                               {"flow show x", 1, "Give the id of a flow"},
                               {"flow submit '" + text + "'", 2, "text.json is not JSON"},
                               {"flow submit /nowhere", 2, "/nowhere: cannot be read"},
                               {"budgets show 00000000-0000-4000-8000-000000000000", 3, "budget_not_found"},
                               {"dance", 2, "dance"}};
  for (const auto& [arguments, code, words] : all) {
    const auto ended = run(arguments);
    EXPECT_EQ(ended.code, code) << arguments << ": " << ended.said;
    EXPECT_TRUE(has(ended.said, words)) << arguments << ": " << ended.said;
  }
  // For programs, the error is an object.
  const auto nobody = run(std::string("get --json ") + kNobody, {.only_output = true});
  EXPECT_EQ(json::parse(nobody.said).at("code"), "execution_not_found");
}

}  // namespace
}  // namespace flowfabric::e2e
