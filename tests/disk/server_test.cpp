// The program itself when its disk fails, and when it is full: what callers, load balancers and the log are
// told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "disk/recording.h"
#include "e2e/serving.h"

namespace flowfabric::disk {
namespace {

// The output of curl: the body, then the status on a line of its own.
std::string output_of(const std::string& command) {
  std::string said;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return said;
  char part[4096];
  while (const auto got = std::fread(part, 1, sizeof part, pipe)) said.append(part, got);
  pclose(pipe);
  return said;
}

class ServerOnABadDisk : public testing::Test {
 protected:
  // Serves from a folder whose disk fails like that.
  void start(const Settings& settings) {
    const auto environment = recording_.environment(settings);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    server_.emplace("sqlite:" + recording_.folder() + "/a.db");
    for (const auto& [name, value] : environment) unsetenv(name.c_str());
  }

  std::string get(const std::string& path) const {
    return output_of("curl -s -m 10 -w '\n%{http_code}' " + server_->url() + path);
  }
  std::string submit() const {
    return output_of(
        "curl -s -m 10 -w '\n%{http_code}' -H 'content-type: application/json' -d "
        "'{\"execution_kind\":\"k\"}' " +
        server_->url() + "/v1/executions");
  }
  static bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }
  // Submits until it is refused; how many were accepted.
  std::size_t submit_until_refused(std::string& refusal) const {
    for (std::size_t accepted = 0; accepted < 500; ++accepted) {
      refusal = submit();
      if (!has(refusal, "\n201")) return accepted;
    }
    ADD_FAILURE() << "nothing was refused";
    return 0;
  }
  std::size_t waiting() const {
    const auto lanes = get("/v1/lanes");
    const auto at = lanes.find("\"waiting\":");
    return at == lanes.npos ? 0 : std::strtoul(lanes.c_str() + at + 10, nullptr, 10);
  }

  // The disk fails once, in a way that leaves its contents unknown.
  void expect_to_end_after(const Failing& failing) {
    start({.failing = failing});
    std::string refusal;
    const auto accepted = submit_until_refused(refusal);
    EXPECT_GT(accepted, 5u);
    EXPECT_TRUE(has(refusal, "\n503") && has(refusal, "The disk has failed")) << refusal;
    // The failed call was the only one: the next would succeed, and mean nothing.
    const auto next = submit();
    EXPECT_TRUE(has(next, "\n503") && has(next, "The disk has failed")) << next;
    const auto ready = get("/readyz");
    EXPECT_TRUE(has(ready, "\n503") && has(ready, "The disk has failed")) << ready;
    EXPECT_EQ(server_->wait(std::chrono::seconds(20)), 74);
    EXPECT_TRUE(has(server_->said(), "error") && has(server_->said(), "exit code 74")) << server_->said();
    server_.reset();
    start({});
    EXPECT_GE(waiting(), accepted) << "what was accepted is there again";
    EXPECT_TRUE(has(submit(), "\n201"));
  }

  Recording recording_;
  std::optional<e2e::Serving> server_;
};

TEST_F(ServerOnABadDisk, SaysThatASyncHasFailedAndEnds) {
  expect_to_end_after({.call = "sync", .first = 30, .count = 1, .reason = EIO});
}

TEST_F(ServerOnABadDisk, SaysThatAWriteHasFailedAndEnds) {
  expect_to_end_after({.call = "write", .first = 300, .count = 1, .reason = EIO});
}

TEST_F(ServerOnABadDisk, SaysThatItIsFullAndGoesOnWhenThereIsRoom) {
  start({.failing = Failing{.call = "write", .first = 300, .count = 40, .reason = ENOSPC}});
  std::string refusal;
  const auto accepted = submit_until_refused(refusal);
  EXPECT_TRUE(has(refusal, "The disk is full")) << refusal;
  const auto ready = get("/readyz");
  EXPECT_TRUE(has(ready, "\n503") && has(ready, "The disk is full")) << ready;
  EXPECT_TRUE(has(server_->said(), "The disk is full")) << server_->said();
  std::size_t later = 0;
  for (int i = 0; i < 200 && later < 5; ++i) later += has(submit(), "\n201") ? 1 : 0;
  EXPECT_EQ(later, 5u);
  EXPECT_TRUE(has(get("/readyz"), "\n200"));
  EXPECT_EQ(waiting(), accepted + later);
}

}  // namespace
}  // namespace flowfabric::disk
