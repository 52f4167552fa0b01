// `flowfabric serve` as a user meets it: the commands of docs/http.md, its end under load, bad settings.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "e2e/program.h"
#include "e2e/serving.h"
#include "flowfabric/engine.h"
#include "http/client.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

class Serve : public testing::Test {
 protected:
  tests::TemporaryFolder folder_;
  std::string store_{"sqlite:" + folder_.file("jobs.db")};
};

// What stands between ```sh and ``` in a document.
std::string commands_of(const std::string& path) {
  std::ifstream file(path);
  std::string commands;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```"))
      inside = line == "```sh";
    else if (inside)
      commands += line + "\n";
  }
  return commands;
}

TEST_F(Serve, DoesWhatTheDocumentationShows) {
  Serving server(store_);
  const auto script = folder_.file("tour.sh");
  std::ofstream(script) << "set -euo pipefail\nurl=" << server.url() << "\n"
                        << commands_of(FF_DOCS_DIR "/http.md")
                        << "\necho; echo \"flow: $(call \"$url/v1/flows/$flow_id\" | text_of state)\"\n"
                        << "echo \"result: $(call \"$url/v1/executions/$id/result\")\"\n"
                        << "echo \"signal: $(text_of signal_name <<<\"$resumed\")\"\n";
  const auto output = folder_.file("tour.txt");
  const auto status = std::system(("timeout 60 bash '" + script + "' > '" + output + "' 2>&1").c_str());
  std::ostringstream said;
  said << std::ifstream(output).rdbuf();
  EXPECT_EQ(status, 0) << said.str();
  for (const auto* line : {"\nflow: completed\n", "\nresult: {\"summary\":\"short\"}\n",
                           "\nsignal: approved\n", "\"payload\":\" upon\"", "waiting_for_signal"}) {
    EXPECT_NE(said.str().find(line), std::string::npos) << line << " in\n" << said.str();
  }
}

// Submits until it is refused; the ids that were acknowledged.
std::vector<std::string> submit_on(const std::string& url, std::atomic<bool>& under_way) {
  std::vector<std::string> acknowledged;
  auto client = http::Client::connect(url);
  while (client) {
    const auto answer = (*client)->send({.method = "POST",
                                         .path = "/v1/executions",
                                         .headers = {{"content-type", "application/json"}},
                                         .body = R"({"execution_kind":"k"})"});
    if (!answer || answer->status != 201) break;
    acknowledged.emplace_back(
        json::parse(answer->body).at("Created").at("execution_id").get_string().c_str());
    if (acknowledged.size() > 20) under_way = true;
  }
  return acknowledged;
}

TEST_F(Serve, LosesNothingWhenItIsEndedUnderLoad) {
  Serving server(store_);
  constexpr int clients = 8;
  std::atomic<bool> under_way{false};
  std::vector<std::vector<std::string>> acknowledged(clients);
  std::vector<std::thread> threads;
  for (auto& ids : acknowledged) {
    threads.emplace_back([&] { ids = submit_on(server.url(), under_way); });
  }
  // One who waits for work that does not come is not waited for.
  std::thread waiting([&] {
    auto client = http::Client::connect(server.url());
    if (!client) return;
    (void)(*client)->send({.method = "POST",
                           .path = "/v1/tasks/claim",
                           .headers = {{"content-type", "application/json"}},
                           .body = R"({"worker_id":"w","lanes":["nothing-here"],"wait_ms":30000})"});
  });
  while (!under_way) std::this_thread::sleep_for(1ms);
  const auto asked = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  const auto code = server.wait(25s);
  for (auto& thread : threads) thread.join();
  waiting.join();
  EXPECT_EQ(code, 0) << server.said();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 20s);

  auto engine = Engine::open(store_);
  ASSERT_TRUE(engine) << engine.error().to_string();
  std::size_t count = 0;
  for (const auto& ids : acknowledged) {
    for (const auto& id : ids) {
      EXPECT_TRUE(engine->call(ReadState{*ExecutionId::parse(id)})) << id;
      ++count;
    }
  }
  EXPECT_GT(count, 20u);
}

TEST_F(Serve, RefusesBadSettingsWithAReason) {
  const auto bad = run_program("serve --listen nonsense --store '" + store_ + "'");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.said.find("listen"), std::string::npos) << bad.said;
  Serving server(store_);
  const auto port = server.url().substr(server.url().rfind(':') + 1);
  const auto taken = run_program("serve --store memory: --listen 127.0.0.1:" + port);
  EXPECT_EQ(taken.code, 1);
  EXPECT_NE(taken.said.find(port), std::string::npos) << taken.said;
}

TEST_F(Serve, SaysWhatItIsConfiguredWith) {
  const auto shown = run_program("serve --print-config --store memory:");
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.said.find("# from flag --store"), std::string::npos) << shown.said;
}

}  // namespace
}  // namespace flowfabric::e2e
