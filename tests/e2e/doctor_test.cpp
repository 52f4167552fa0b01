// `flowfabric doctor`: what it says of sound, damaged and hopeless stores, and its exit code.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/json.hpp>
#include <fstream>

#include "e2e/program.h"
#include "flowfabric/engine.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;

constexpr const char* kLoseTheOffers = "update ff_exec_core set offer_order=null";
constexpr const char* kLoseTheOutcome =
    "update ff_exec_core set terminal_outcome='none' where lifecycle_phase='terminal'";

class Doctor : public testing::Test {
 protected:
  // Two executions, one waiting and one completed.
  void SetUp() override {
    auto engine = Engine::open(url_);
    ASSERT_TRUE(engine) << engine.error().to_string();
    ASSERT_TRUE(engine->call(CreateExecution{.execution_kind = "a"}));
    const auto task = engine->call(ClaimTasks{.worker_id = "w"}).value().at(0);
    ASSERT_TRUE(engine->call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
    waiting_ = engine->call(CreateExecution{.execution_kind = "b"}).value().execution_id;
  }

  static Ended run(const std::string& arguments) { return run_program("doctor " + arguments); }
  // With the variables of the environment that this test has set.
  Ended examine_with(const char* variable, const std::string& value) const {
    setenv(variable, value.c_str(), 1);
    auto ended = examine();
    unsetenv(variable);
    return ended;
  }
  Ended examine(const std::string& flags = "") const { return run("--store '" + url_ + "' " + flags); }

  void damage(const char* sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(folder_.file("jobs.db").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    EXPECT_GT(sqlite3_changes(database), 0);
    sqlite3_close(database);
  }
  static bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }

  tests::TemporaryFolder folder_;
  std::string url_{"sqlite:" + folder_.file("jobs.db")};
  ExecutionId waiting_;
};

TEST_F(Doctor, FindsNothingInASoundStore) {
  for (const auto* flags : {"", "--repair"}) {
    const auto ended = examine(flags);
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_TRUE(has(ended.said, "2 executions")) << ended.said;
    EXPECT_TRUE(has(ended.said, "nothing is wrong")) << ended.said;
  }
}

TEST_F(Doctor, ReportsDamageAndMendsItWhenAsked) {
  damage(kLoseTheOffers);
  for (int i = 0; i < 2; ++i) {
    const auto found = examine();
    EXPECT_EQ(found.code, 1) << found.said;
    EXPECT_TRUE(has(found.said, waiting_.to_string())) << found.said;
    EXPECT_TRUE(has(found.said, "1 found, 0 repaired")) << found.said;
    EXPECT_TRUE(has(found.said, "--repair")) << found.said;
  }
  const auto repaired = examine("--repair");
  EXPECT_EQ(repaired.code, 0) << repaired.said;
  EXPECT_TRUE(has(repaired.said, "(repaired)")) << repaired.said;
  EXPECT_TRUE(has(repaired.said, "1 found, 1 repaired")) << repaired.said;

  EXPECT_EQ(examine().code, 0);
  auto engine = Engine::open(url_);
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto tasks = engine->call(ClaimTasks{.worker_id = "w"});
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ(tasks->front().execution_id, waiting_);
}

TEST_F(Doctor, SaysWhenSomethingIsLeft) {
  damage(kLoseTheOffers);
  damage(kLoseTheOutcome);
  const auto repaired = examine("--repair");
  EXPECT_EQ(repaired.code, 1) << repaired.said;
  EXPECT_TRUE(has(repaired.said, "(repaired)")) << repaired.said;

  const auto left = examine();
  EXPECT_EQ(left.code, 1) << left.said;
  EXPECT_FALSE(has(left.said, waiting_.to_string())) << left.said;
}

TEST_F(Doctor, SpeaksToScripts) {
  damage(kLoseTheOffers);
  const auto read = [&](const std::string& flags, int code) {
    const auto ended = examine("--json " + flags);
    EXPECT_EQ(ended.code, code) << ended.said;
    EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1) << ended.said;
    return json::parse(ended.said).as_object();
  };
  const auto found = read("", 1);
  EXPECT_EQ(found.at("executions"), 2);
  EXPECT_GE(found.at("records").to_number<int>(), 5);
  EXPECT_EQ(found.at("found"), 1);
  EXPECT_EQ(found.at("repaired"), 0);
  const auto& violation = found.at("violations").as_array().at(0).as_object();
  EXPECT_EQ(violation.at("where").as_string(), waiting_.to_string());
  EXPECT_FALSE(violation.at("what").as_string().empty());
  EXPECT_EQ(violation.at("repaired"), false);

  EXPECT_EQ(read("--repair", 0).at("violations").at(0).at("repaired"), true);
  EXPECT_EQ(read("", 0).at("violations"), json::array());
}

TEST_F(Doctor, IsInTroubleWithAStoreThatItCannotOpen) {
  std::ofstream(folder_.file("text.db")) << std::string(5000, 't');
  const auto missing = folder_.file("missing.db");
  for (const auto& [url, words] :
       std::vector<std::pair<std::string, std::string>>{{"sqlite:" + missing, "missing.db"},
                                                        {"sqlite:" + folder_.file("text.db"), "text.db"},
                                                        {"sqlite:", "sqlite:PATH"},
                                                        {"jobs.db", "sqlite:PATH"},
                                                        {"mongodb:jobs", "mongodb:"}}) {
    const auto ended = run("--store '" + url + "'");
    EXPECT_EQ(ended.code, 2) << url << ": " << ended.said;
    EXPECT_TRUE(ended.said.starts_with("flowfabric: ")) << ended.said;
    EXPECT_TRUE(has(ended.said, words)) << ended.said;
  }
  EXPECT_FALSE(std::filesystem::exists(missing)) << "it makes no store";
}

// The secret for waitpoint tokens comes from the environment, or from a file that it names. The store has one
// already, which stays.
TEST_F(Doctor, TakesTheSecretFromTheEnvironment) {
  const std::string secret(64, 'e');
  const auto file = folder_.file("secret");
  std::ofstream(file) << secret << "\n";
  for (const auto& ended : {examine_with("FF_WAITPOINT_HMAC_SECRET", secret),
                            examine_with("FF_WAITPOINT_HMAC_SECRET_FILE", file)}) {
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_TRUE(has(ended.said, "not the one that the store has for kid k1")) << ended.said;
    EXPECT_TRUE(has(ended.said, "nothing is wrong")) << ended.said;
    EXPECT_FALSE(has(ended.said, "eeee")) << "it shows the secret";
  }
}

TEST_F(Doctor, IsInTroubleWithASecretThatIsNone) {
  const auto empty = folder_.file("empty");
  std::ofstream(empty) << "\n";
  const auto garbage = folder_.file("garbage");
  std::ofstream(garbage) << "hunter2hunter2";
  for (const auto& [variable, value, code] : std::vector<std::tuple<const char*, std::string, std::string>>{
           {"FF_WAITPOINT_HMAC_SECRET", "", "invalid_secret_hex"},
           {"FF_WAITPOINT_HMAC_SECRET", "hunter2hunter2", "invalid_secret_hex"},
           {"FF_WAITPOINT_HMAC_SECRET", "abc", "invalid_secret_hex"},
           {"FF_WAITPOINT_HMAC_SECRET_FILE", empty, "invalid_secret_hex"},
           {"FF_WAITPOINT_HMAC_SECRET_FILE", garbage, "invalid_secret_hex"},
           {"FF_WAITPOINT_HMAC_SECRET_FILE", folder_.file("no-such-file"), "no-such-file"}}) {
    const auto ended = examine_with(variable, value);
    EXPECT_EQ(ended.code, 2) << variable << ": " << ended.said;
    EXPECT_TRUE(has(ended.said, code)) << ended.said;
    EXPECT_FALSE(has(ended.said, "hunter2")) << "it shows the secret";
  }
}

TEST_F(Doctor, KeepsAwayFromAStoreInUse) {
  auto engine = Engine::open(url_);
  ASSERT_TRUE(engine) << engine.error().to_string();

  const auto ended = examine("--repair");
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_TRUE(has(ended.said, "jobs.db")) << ended.said;
}

TEST_F(Doctor, RefusesWhatItDoesNotKnow) {
  for (const auto* arguments : {"", "--store", "--dance", "--store memory: --dance"}) {
    const auto ended = run(arguments);
    EXPECT_NE(ended.code, 0) << arguments;
    EXPECT_FALSE(ended.said.empty()) << arguments;
  }
}

}  // namespace
}  // namespace flowfabric::e2e
