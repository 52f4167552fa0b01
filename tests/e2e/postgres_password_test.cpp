// A password is asked for, and never shown.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "e2e/program.h"
#include "e2e/serving.h"
#include "flowfabric/engine.h"
#include "store/store.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {
namespace {

constexpr const char* kPassword = "s3cret";
constexpr const char* kWrong = "gue55ed";

std::string whole_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PostgresPassword : public testing::Test {
 protected:
  // A server on which the role `locked` has to say its password.
  void SetUp() override {
    server_.query("create role locked login password '" + std::string(kPassword) + "'");
    server_.query("create database jobs owner locked");
    const auto rules = server_.query("show hba_file").at(0).at(0);
    const auto before = whole_file(rules);
    std::ofstream(rules) << "host all locked 127.0.0.1/32 scram-sha-256\n" << before;
    server_.query("select pg_reload_conf()");
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(server_.port()) + "/jobs"; }
  std::string url(const std::string& password) const {
    return "postgres://locked:" + password + "@" + address();
  }
  std::string url_with_parameter(const std::string& password) const {
    return "postgres://locked@" + address() + "?password=" + password;
  }

  static void expect_hidden(const std::string& said) {
    EXPECT_EQ(said.find(kPassword), std::string::npos) << said;
    EXPECT_EQ(said.find(kWrong), std::string::npos) << said;
  }
  template <class T>
  static void expect_wrong_password(const Result<T>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input) << result.error().to_string();
    EXPECT_NE(result.error().advice.find("PGPASSWORD"), std::string::npos) << result.error().to_string();
    expect_hidden(result.error().to_string());
  }
  static void expect_success(const std::string& arguments) {
    const auto ended = run_program(arguments);
    EXPECT_EQ(ended.code, 0) << ended.said;
    expect_hidden(ended.said);
  }

  tests::PostgresServer server_;
};

TEST_F(PostgresPassword, IsWrong) {
  for (const auto& wrong : {url(kWrong), url_with_parameter(kWrong), "postgres://locked@" + address()}) {
    expect_wrong_password(Engine::open(wrong));
    expect_wrong_password(migrate(wrong));
    expect_wrong_password(plan_migration(wrong));
    for (const std::string command : {"migrate", "migrate --dry-run", "doctor", "bench lifecycle"}) {
      const auto ended = run_program(command + " --store '" + wrong + "'");
      EXPECT_NE(ended.code, 0) << ended.said;
      EXPECT_NE(ended.said.find("password"), std::string::npos) << ended.said;
      expect_hidden(ended.said);
    }
  }
}

TEST_F(PostgresPassword, IsRightAndNeverShown) {
  for (const auto& right : {url(kPassword), url_with_parameter(kPassword)}) {
    const auto store = " --store '" + right + "'";
    expect_success("migrate --dry-run" + store);
    expect_success("migrate" + store);
    expect_success("doctor" + store);
    expect_success("doctor --json" + store);
    expect_success("bench lifecycle --tasks 50 --workers 2 --in-flight 4" + store);
  }
  expect_success("bench suspend-resume --idle-cycles 3 --cycles 200 --workers 2 --in-flight 40 --store '" +
                 url(kPassword) + "'");
  const auto ended = run_program("bench lifecycle --json --tasks 50 --workers 2 --in-flight 4 --store '" +
                                 url(kPassword) + "'");
  ASSERT_EQ(ended.code, 0) << ended.said;
  expect_hidden(ended.said);
  EXPECT_EQ(boost::json::parse(ended.said).at("store").as_string(), "postgres://locked:***@" + address());
  // Nothing is left of the benchmarks.
  EXPECT_TRUE(server_.query("select from pg_namespace where nspname like 'ff\\_scratch%'", "jobs").empty());
}

TEST_F(PostgresPassword, IsWipedFromTheCommandLine) {
  for (const auto& right : {url(kPassword), url_with_parameter(kPassword)}) {
    const Serving server(right);
    expect_hidden(server.command_line());
    EXPECT_NE(server.command_line().find("serve"), std::string::npos);
  }
}

TEST_F(PostgresPassword, IsNotShownWhenTheServerIsAway) {
  auto migrated = migrate(url(kPassword));
  ASSERT_TRUE(migrated) << migrated.error().to_string();
  auto engine = Engine::open(url(kPassword) + "?outage=fail");
  ASSERT_TRUE(engine) << engine.error().to_string();
  server_.stop();
  for (int i = 0; i < 2; ++i) {
    const auto created = engine->call(CreateExecution{});
    ASSERT_FALSE(created);
    expect_hidden(created.error().to_string());
  }
  const auto opened = Engine::open(url(kPassword));
  ASSERT_FALSE(opened);
  expect_hidden(opened.error().to_string());
}

class PostgresPasswordInABadUrl : public testing::Test {
 protected:
  static void expect_hidden(const std::string& url) {
    const auto opened = Engine::open(url);
    ASSERT_FALSE(opened) << url;
    EXPECT_EQ(opened.error().to_string().find(kPassword), std::string::npos)
        << url << "\n  " << opened.error().to_string();
    const auto shown = store::redacted_url(url);
    EXPECT_EQ(shown.find(kPassword), std::string::npos) << url << "\n  is shown as " << shown;
    const auto ended = run_program("doctor --store '" + url + "'");
    EXPECT_EQ(ended.code, 2) << ended.said;
    EXPECT_EQ(ended.said.find(kPassword), std::string::npos) << url << "\n  " << ended.said;
  }
};

// Some of libpq's messages quote what they cannot read.
TEST_F(PostgresPasswordInABadUrl, IsNotQuoted) {
  expect_hidden("postgres://locked:s3cret@127.0.0.1:port/jobs");
  expect_hidden("postgres://locked:s3cret@127.0.0.1:99999/jobs");
  expect_hidden("postgres://locked:s3cret@[::1/jobs");
  expect_hidden("postgres://locked:s3cret@[::1]x/jobs");
  expect_hidden("postgres://locked:s3cret%zz@127.0.0.1:1/jobs");
  expect_hidden("postgres://locked:s3cret@127.0.0.1:1/jobs?sslmode=perhaps");
  expect_hidden("postgres://locked:s3cret@127.0.0.1:1/jobs?sslmode");
  expect_hidden("postgres://locked@127.0.0.1:1/jobs?password=s3cret%zz");
  expect_hidden("postgres://locked@127.0.0.1:1/jobs?password=s3cret=x");
  expect_hidden("postgre://locked:s3cret@127.0.0.1:1/jobs");
}

// These characters have to be escaped; unescaped, the password is cut into a host, a port and so on.
TEST_F(PostgresPasswordInABadUrl, IsNotTakenForSomethingElseAndShown) {
  expect_hidden("postgres://locked:s3cret/s3cret@127.0.0.1:1/jobs");
  expect_hidden("postgres://locked:s3cret?s3cret@127.0.0.1:1/jobs");
  expect_hidden("postgres://locked:s3cret@s3cret@127.0.0.1:1/jobs");
  expect_hidden("postgres://locked:s3cret#s3cret@127.0.0.1:1/jobs");
}

}  // namespace
}  // namespace flowfabric::e2e
