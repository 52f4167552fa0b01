// `flowfabric serve` as a user meets it: the commands of docs/http.md, bad settings. Its end:
// shutdown_test.cpp.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "e2e/program.h"
#include "e2e/serving.h"
#include "e2e/waiting.h"
#include "http/client.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

constexpr std::chrono::seconds kPatience{20};

class Serve : public testing::Test {
 protected:
  tests::TemporaryFolder folder_;
  std::string store_{"sqlite:" + folder_.file("jobs.db")};
};

// The text between ```sh and ``` in a document.
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

// The part of `./run` after the build.
TEST_F(Serve, TellsItsStorySoThatPeopleCanReadIt) {
  const auto output = folder_.file("story.txt");
  const std::string command = "timeout 120 '" FF_DOCS_DIR "/../scripts/story' '" FLOWFABRIC_PROGRAM "'";
  const auto status = std::system((command + " > '" + output + "' 2>&1").c_str());
  std::ifstream file(output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::string said;
  for (const auto& line : lines) said += line + "\n";
  EXPECT_EQ(status, 0) << said;
  for (const auto* words :
       {"worker-a comes back", "== what happened there", " Once\n", " upon\n", "state      completed",
        R"(result     {"summary":"short"})", "pick", "cancelled", "== done"}) {
    EXPECT_NE(said.find(words), std::string::npos) << words << " in\n" << said;
  }
  for (const auto& line : lines) {
    EXPECT_FALSE(line.starts_with('{')) << "an answer for programs: " << line;
    EXPECT_LT(line.size(), 160u) << line;
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find("how to use it"), std::string::npos) << said;
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

TEST_F(Serve, StaysOnThisMachineUnlessItHasAToken) {
  const auto refused = run_program("serve --listen 0.0.0.0:0 --store '" + store_ + "'");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.said.find("--api-token-file"), std::string::npos) << refused.said;
  Serving open(store_, {"--allow-anonymous"}, "0.0.0.0:0");
  EXPECT_NE(open.said().find("whoever reaches this server may do everything"), std::string::npos);
}

TEST_F(Serve, ReadsItsSecretsAgainWhenTheyChange) {
  const auto token = folder_.file("token");
  const auto secret = folder_.file("secret");
  std::ofstream(token) << "the-first-token-of-all\n";
  std::ofstream(secret) << std::string(64, 'a') << "\n";
  Serving server(store_, {"--api-token-file", token, "--waitpoint-secret-file", secret});
  const auto status_with = [&](const std::string& given) {
    const auto client = http::Client::connect(server.url(), {.token = given}).value();
    return client->send({.path = "/v1/lanes"})->status;
  };
  EXPECT_EQ(status_with("the-first-token-of-all"), 200);
  std::ofstream(token) << "short\n";
  EXPECT_TRUE(wait_until([&] { return server.said().contains("the changed token is not used"); }, kPatience));
  EXPECT_EQ(status_with("the-first-token-of-all"), 200) << "what cannot be used changes nothing";
  std::ofstream(token) << "the-second-token-of-all\n";
  EXPECT_TRUE(wait_until([&] { return status_with("the-second-token-of-all") == 200; }, kPatience));
  EXPECT_EQ(status_with("the-first-token-of-all"), 401);
  std::ofstream(secret) << std::string(64, 'b') << "\n";
  EXPECT_TRUE(wait_until([&] { return server.said().contains("waitpoint secret is in force, kid file-"); },
                         kPatience))
      << server.said();
  EXPECT_EQ(server.said().find("the-second"), std::string::npos);
  EXPECT_EQ(server.said().find("bbbb"), std::string::npos);
}

TEST_F(Serve, MayKeepItsAdministrationElsewhere) {
  Serving server(store_, {"--admin-listen", "127.0.0.1:0"});
  EXPECT_TRUE(wait_until([&] { return server.said().contains("the administration listens on 127.0.0.1:"); },
                         kPatience));
  const auto said = server.said();
  const auto begin = said.find("127.0.0.1:", said.find("the administration listens"));
  const auto status_of = [](const std::string& url, const std::string& path) {
    return http::Client::connect(url).value()->send({.path = path})->status;
  };
  const auto administration = "http://" + said.substr(begin, said.find('\n', begin) - begin);
  EXPECT_EQ(status_of(administration, "/readyz"), 200);
  EXPECT_EQ(status_of(administration, "/v1/lanes"), 404);
  EXPECT_EQ(status_of(server.url(), "/readyz"), 404);
  EXPECT_EQ(status_of(server.url(), "/v1/lanes"), 200);
}

TEST_F(Serve, SaysWhatItIsConfiguredWith) {
  const auto shown = run_program("serve --print-config --store memory:");
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.said.find("# from flag --store"), std::string::npos) << shown.said;
}

}  // namespace
}  // namespace flowfabric::e2e
