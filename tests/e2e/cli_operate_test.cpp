// Flows, lanes, workers, budgets and the overview from the command line; servers and stores that cannot be
// reached; help and completion.
#include <fstream>
#include <future>
#include <thread>

#include "e2e/cli_fixture.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;

using CliOperate = Cli;
INSTANTIATE_TEST_SUITE_P(BothWays, CliOperate, testing::Bool(), how);

constexpr const char* kFlow = R"({"flow_kind":"ask three, take two","nodes":[
  {"name":"fetch","execution_kind":"fetch"},
  {"name":"a","execution_kind":"ask"},{"name":"b","execution_kind":"ask"},{"name":"c","execution_kind":"ask"},
  {"name":"pick","execution_kind":"pick","join":{"kind":"quorum","k":2,"on_satisfied":"cancel_remaining"}}],
  "edges":[{"from":"fetch","to":"a"},{"from":"fetch","to":"b"},{"from":"fetch","to":"c"},
  {"from":"a","to":"pick"},{"from":"b","to":"pick"},{"from":"c","to":"pick"}]})";

TEST_P(CliOperate, SubmitsShowsAndCancelsAFlow) {
  auto id = out("flow submit '" + file("flow.json", kFlow) + "'");
  id.pop_back();
  const auto text = out("flow show " + id);
  for (const auto* words :
       {"kind       ask three, take two", "state      blocked", "1 waiting, 4 waiting_children", "\nfetch ",
        "\n  a ", "\n    pick ", "a, b, c", "2 of 3: 0 succeeded"}) {
    EXPECT_TRUE(has(text, words)) << words << " in\n" << text;
  }
  const auto shown = object("flow show --json " + id);
  EXPECT_EQ(shown.at("nodes").as_array().size(), 5u);
  EXPECT_EQ(shown.at("node_count"), 5);
  EXPECT_EQ(objects("flow list --json --state blocked").at(0).at("flow_id"), json::string(id));
  EXPECT_TRUE(has(out("flow list"), "ask three, take two"));
  EXPECT_EQ(out("flow cancel " + id + " --reason 'not now'"), "cancelled\n");
  EXPECT_TRUE(has(out("flow show " + id), "5 cancelled"));
  EXPECT_TRUE(objects("flow list --json --state blocked").empty());
}

TEST_P(CliOperate, RefusesAFlowThatCannotBe) {
  const auto cycle = file("cycle.json", R"({"flow_kind":"f","nodes":[{"name":"a","execution_kind":"k"},
    {"name":"b","execution_kind":"k"}],"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"}]})");
  const auto ended = run("flow submit '" + cycle + "'");
  EXPECT_EQ(ended.code, 1) << ended.said;
  EXPECT_TRUE(has(ended.said, "cycle")) << ended.said;
  EXPECT_EQ(run("flow show 00000000-0000-4000-8000-000000000000").code, 3);
}

TEST_P(CliOperate, PausesAndResumesALane) {
  const auto id = submitted("k --lane mail");
  EXPECT_EQ(out("lanes pause mail"), "mail  paused\n");
  EXPECT_TRUE(has(out("why " + id), "blocked_by_lane_state"));
  const auto lanes = objects("lanes --json");
  const auto mail =
      std::find_if(lanes.begin(), lanes.end(), [](const auto& lane) { return lane.at("lane_id") == "mail"; });
  ASSERT_NE(mail, lanes.end());
  EXPECT_EQ(mail->at("state"), "paused");
  EXPECT_EQ(object("lanes resume mail --json").at("state"), "active");
  EXPECT_EQ(out("lanes drain mail"), "mail  draining\n");
  const auto refused = run("submit k --lane mail");
  EXPECT_EQ(refused.code, 1) << refused.said;
  EXPECT_TRUE(has(refused.said, "lane_not_accepting")) << refused.said;
  EXPECT_TRUE(has(out("lanes"), "OLDEST WAITING"));
}

TEST_P(CliOperate, SaysWhenThereAreNone) {
  submitted();
  EXPECT_TRUE(has(run("workers").said, "No workers."));
  EXPECT_TRUE(has(run("budgets").said, "No budgets."));
}

TEST_P(CliOperate, ShowsWorkersAndBudgetsThatThereAre) {
  const auto budget = BudgetId::parse("0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001").value();
  prepare([&](Engine& engine) {
    ASSERT_TRUE(engine.call(RegisterWorker{.worker_id = "painter",
                                           .worker_instance_id = "painter-1",
                                           .lanes = {"mail", "default"},
                                           .capabilities = {"gpu"}}));
    const auto made = engine.call(CreateBudget{.budget_id = budget,
                                               .scope_type = "lane",
                                               .scope_id = "mail",
                                               .dimensions = {"tokens"},
                                               .hard_limits = {100},
                                               .soft_limits = {50}});
    ASSERT_TRUE(made) << made.error().to_string();
    ASSERT_TRUE(engine.call(ReportUsage{.budget_id = budget, .dimensions = {"tokens"}, .deltas = {40}}));
  });
  EXPECT_EQ(objects("workers --json").at(0).at("worker_instance_id"), "painter-1");
  EXPECT_TRUE(has(out("workers"), "default,mail")) << out("workers");
  EXPECT_TRUE(has(out("budgets"), "tokens 40/100"));
  EXPECT_TRUE(has(out("budgets show " + budget.to_string()), "tokens       40          50         100"))
      << out("budgets show " + budget.to_string());
  EXPECT_EQ(object("budgets show --json " + budget.to_string()).at("usage").at("tokens"), 40);
}

TEST_P(CliOperate, ShowsWhatIsGoingOn) {
  submitted("k --lane mail");
  const auto text = out("top");
  EXPECT_TRUE(has(text, "waiting 1")) << text;
  EXPECT_TRUE(has(text, "\nmail ")) << text;
  const auto shown = object("top --json");
  EXPECT_GE(shown.at("lanes").as_array().size(), 1u);
}

TEST(CliFollow, ShowsEventsAsTheyHappen) {
  tests::TemporaryFolder folder;
  Serving server("sqlite:" + folder.file("jobs.db"));
  auto id = run_program("submit k --store " + server.url()).said;
  id.pop_back();
  auto following = std::async(std::launch::async, [&] {
    return run_program("events --follow --json --kind completion --store " + server.url(),
                       {.before = "timeout 10"});
  });
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_EQ(run_program("cancel '" + id + "' --store " + server.url()).code, 0);
  const auto said = following.get().said;
  EXPECT_TRUE(has(said, id)) << said;
}

// ---- whom it talks to -------------------------------------------------------------------------------------

TEST_P(CliOperate, TakesTheStoreFromTheEnvironment) {
  const auto id = submitted();
  const auto url = has_server() ? server_url() : store();
  const auto shown = run_program("list", {.before = "FF_STORE='" + url + "'"});
  EXPECT_EQ(shown.code, 0) << shown.said;
  EXPECT_TRUE(has(shown.said, id.substr(1, id.size() - 2))) << shown.said;
}

TEST(CliReach, SaysWhenNobodyAnswers) {
  tests::TemporaryFolder folder;
  const auto store = "sqlite:" + folder.file("jobs.db");
  const auto away = run_program("list --store http://127.0.0.1:1");
  EXPECT_EQ(away.code, 4) << away.said;
  EXPECT_TRUE(has(away.said, "is the server running there?")) << away.said;
  const auto nowhere = run_program("list --store '" + store + "'");
  EXPECT_EQ(nowhere.code, 4) << nowhere.said;
  EXPECT_TRUE(has(nowhere.said, "jobs.db: no such file")) << nowhere.said;
  EXPECT_FALSE(std::filesystem::exists(folder.file("jobs.db"))) << "looking makes no store";
  const auto strange = run_program("list --store mongodb:jobs");
  EXPECT_NE(strange.code, 0);
  EXPECT_TRUE(has(strange.said, "http://")) << strange.said;
  // One process at a time; who has it can be asked.
  Serving server(store);
  const auto locked = run_program("list --store '" + store + "'");
  EXPECT_EQ(locked.code, 4) << locked.said;
  EXPECT_TRUE(has(locked.said, "--store http://")) << locked.said;
}

TEST(CliReach, SendsTheToken) {
  tests::TemporaryFolder folder;
  setenv("FF_API_TOKEN", "hush-hush-hush-hush", 1);
  Serving server("sqlite:" + folder.file("jobs.db"));
  const auto with = run_program("list --store " + server.url());
  unsetenv("FF_API_TOKEN");
  EXPECT_EQ(with.code, 0) << with.said;
  std::ofstream(folder.file("token")) << "hush-hush-hush-hush\n";
  const auto from_file =
      run_program("list --store " + server.url(), {.before = "FF_API_TOKEN_FILE=" + folder.file("token")});
  EXPECT_EQ(from_file.code, 0) << from_file.said;
  for (const auto* before : {"", "FF_API_TOKEN=wrong"}) {
    const auto ended = run_program("list --store " + server.url(), {.before = before});
    EXPECT_EQ(ended.code, 1) << ended.said;
    EXPECT_TRUE(has(ended.said, "unauthorized") && has(ended.said, "FF_API_TOKEN")) << ended.said;
  }
}

// ---- for people at a terminal -----------------------------------------------------------------------------

TEST(CliTerminal, HasColoursOnlyThere) {
  tests::TemporaryFolder folder;
  const auto store = "sqlite:" + folder.file("jobs.db");
  const auto at_terminal = [&](const std::string& before, const std::string& arguments) {
    const auto command = before + " '" FLOWFABRIC_PROGRAM "' " + arguments + " --store " + store;
    const auto output = folder.file("screen");
    EXPECT_EQ(std::system(("script -qec \"" + command + "\" '" + output + "' >/dev/null </dev/null").c_str()),
              0);
    std::ifstream file(output);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_EQ(run_program("submit k --lane mail --store " + store).code, 0);
  EXPECT_TRUE(has(at_terminal("TERM=xterm", "list"), "\x1b[1m"));
  EXPECT_FALSE(has(at_terminal("TERM=xterm NO_COLOR=1", "list"), "\x1b"));
  EXPECT_FALSE(has(at_terminal("TERM=dumb", "list"), "\x1b"));
  EXPECT_TRUE(has(at_terminal("TERM=xterm", "cancel --lane mail"), "[##############################] 100 %"));
}

TEST(CliTerminal, SaysWhenTheOutputCannotBeWritten) {
  const auto ended = run_program("completion bash >/dev/full");
  EXPECT_EQ(ended.code, 1) << ended.said;
}

TEST(CliHelp, HasExamplesForEveryCommand) {
  const auto all = run_program("--help");
  EXPECT_TRUE(has(all.said, "Exit codes: 0 done")) << all.said;
  for (const std::string command :
       {"serve",  "migrate", "demo",  "submit",      "get",       "list",      "cancel",
        "replay", "signal",  "why",   "flow submit", "flow show", "flow list", "flow cancel",
        "tail",   "events",  "lanes", "lanes pause", "workers",   "budgets",   "budgets show",
        "top",    "doctor",  "bench", "completion",  "backup"}) {
    EXPECT_TRUE(has(all.said, command.substr(0, command.find(' ')))) << command;
    const auto help = run_program(command + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_TRUE(has(help.said, "Example")) << command << "\n" << help.said;
  }
}

TEST(CliCompletion, KnowsEveryCommand) {
  tests::TemporaryFolder folder;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const auto script = run_program("completion " + shell);
    EXPECT_EQ(script.code, 0);
    EXPECT_TRUE(has(script.said, "idempotency-key")) << shell;
    std::ofstream(folder.file(shell)) << script.said;
  }
  const auto path = folder.file("bash");
  ASSERT_EQ(std::system(("bash -n '" + path + "'").c_str()), 0);
  const auto completed = [&](const std::string& words, int count) {
    const auto output = folder.file("words");
    const auto command = "source '" + path + "'; COMP_WORDS=(" + words +
                         "); COMP_CWORD=" + std::to_string(count - 1) +
                         "; _flowfabric; echo \"${COMPREPLY[*]}\"";
    std::ofstream(folder.file("try")) << command;
    EXPECT_EQ(std::system(("bash '" + folder.file("try") + "' > '" + output + "'").c_str()), 0);
    std::ifstream file(output);
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_EQ(completed("flowfabric sub", 2), "submit");
  EXPECT_EQ(completed("flowfabric flow s", 3), "submit show");
  EXPECT_EQ(completed("flowfabric flow submit x.json --st", 5), "--store");
  EXPECT_EQ(run_program("completion tcsh").code, 2);
}

}  // namespace
}  // namespace flowfabric::e2e
