// The real program, as a person or a script runs it.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>

#include "flowfabric/version.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

namespace json = boost::json;

struct Ended {
  int code{-1};
  std::string out;
  std::string err;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Program : public testing::Test {
 protected:
  // Runs it in a folder of its own.
  Ended run(const std::string& arguments) const {
    const auto command = "cd '" + folder_.path() + "/work' && TMPDIR='" + folder_.path() +
                         "/tmp' timeout 60 '" FLOWFABRIC_PROGRAM "' " + arguments + " >'" +
                         folder_.file("out") + "' 2>'" + folder_.file("err") + "' </dev/null";
    const int status = std::system(command.c_str());
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .out = content_of(folder_.file("out")),
            .err = content_of(folder_.file("err"))};
  }
  void SetUp() override {
    std::filesystem::create_directory(folder_.file("work"));
    std::filesystem::create_directory(folder_.file("tmp"));
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto* place : {"work", "tmp"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_.file(place))) {
        names.push_back(entry.path().filename());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  static bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }

  tests::TemporaryFolder folder_;
};

using Files = std::vector<std::string>;

TEST_F(Program, TellsItsVersion) {
  const auto ended = run("--version");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, std::string("flowfabric ") + kVersion + "\n");
}

TEST_F(Program, HelpsWithEveryCommand) {
  const auto ended = run("--help");
  EXPECT_EQ(ended.code, 0);
  for (const auto* command : {"demo", "migrate", "doctor", "bench"}) {
    EXPECT_TRUE(has(ended.out, command)) << ended.out;
    const auto help = run(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_FALSE(help.out.empty()) << command;
  }
  EXPECT_TRUE(has(run("bench lifecycle --help").out, "--tasks"));
  EXPECT_TRUE(has(run("bench suspend-resume --help").out, "--idle-cycles"));
  EXPECT_EQ(files(), Files{});
}

TEST_F(Program, RefusesWhatItDoesNotKnow) {
  for (const auto* arguments : {"", "dance", "--dance", "demo --dance", "migrate", "migrate --store", "bench",
                                "bench dance", "bench lifecycle --tasks 0", "bench lifecycle --tasks many",
                                "bench lifecycle --workers 0", "bench lifecycle --workers 100000",
                                "bench suspend-resume --cycles 0", "bench suspend-resume --idle-cycles 0"}) {
    const auto ended = run(arguments);
    EXPECT_NE(ended.code, 0) << arguments;
    EXPECT_FALSE((ended.out + ended.err).empty()) << arguments << ": says nothing";
  }
  EXPECT_EQ(files(), Files{});
}

TEST_F(Program, ShowsADemo) {
  const auto ended = run("demo");
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_TRUE(has(ended.out, "5 of 5 tasks completed, each exactly once.")) << ended.out;
  EXPECT_TRUE(has(ended.out, "recognised as a duplicate")) << ended.out;
  EXPECT_TRUE(has(ended.out, "stale_lease") || has(ended.out, "execution_not_active")) << ended.out;
  EXPECT_TRUE(has(ended.out, "Try next:")) << ended.out;
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(files(), Files{}) << "it cleans up after itself";
}

TEST_F(Program, MigratesOnce) {
  const auto first = run("migrate --store sqlite:jobs.db");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "jobs.db: applied")) << first.out;
  const auto second = run("migrate --store sqlite:jobs.db");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out, "jobs.db: schema is up to date\n");
  EXPECT_TRUE(std::filesystem::exists(folder_.file("work/jobs.db")));
}

TEST_F(Program, SaysWhatIsWrongWithAStore) {
  std::ofstream(folder_.file("work/text.db")) << std::string(5000, 't');
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"jobs.db", "sqlite:PATH"},    {"mongodb:jobs", "mongodb:"},
      {"sqlite:", "sqlite:PATH"},    {"sqlite:no/such/folder/jobs.db", "no/such/folder/jobs.db"},
      {"sqlite:text.db", "text.db"}, {"sqlite:jobs.db?durable=maybe", "durable=maybe"}};
  for (const auto& [url, words] : wrong) {
    const auto ended = run("migrate --store '" + url + "'");
    EXPECT_EQ(ended.code, 1) << url;
    EXPECT_EQ(ended.out, "") << url;
    EXPECT_TRUE(ended.err.starts_with("flowfabric: ")) << ended.err;
    EXPECT_TRUE(has(ended.err, words)) << ended.err;
  }
}

Files keys_of(const json::value& value) {
  Files keys;
  for (const auto& [key, _] : value.as_object()) keys.emplace_back(key);
  return keys;
}

void expect_percentiles(const json::value& p50, const json::value& p95, const json::value& p99,
                        const std::string& what) {
  EXPECT_GT(p50.to_number<double>(), 0) << what;
  EXPECT_GE(p95.to_number<double>(), p50.to_number<double>()) << what;
  EXPECT_GE(p99.to_number<double>(), p95.to_number<double>()) << what;
}

// The object of one line that scripts read.
void check_report(const std::string& line) {
  const auto report = json::parse(line);
  EXPECT_EQ(keys_of(report), (Files{"scenario", "store", "tasks", "workers", "in_flight", "payload_bytes",
                                    "seconds", "throughput_per_second", "latency_ms", "batch", "cores"}));
  EXPECT_EQ(keys_of(report.at("latency_ms")), (Files{"submit", "start", "complete"}));
  for (const auto* phase : {"submit", "start", "complete"}) {
    const auto& latency = report.at("latency_ms").at(phase);
    EXPECT_EQ(keys_of(latency), (Files{"p50", "p95", "p99"}));
    expect_percentiles(latency.at("p50"), latency.at("p95"), latency.at("p99"), phase);
  }
  EXPECT_EQ(keys_of(report.at("batch")), (Files{"mean", "max"}));
  EXPECT_EQ(report.at("scenario"), "lifecycle");
  EXPECT_EQ(report.at("tasks"), 2000);
  EXPECT_EQ(report.at("workers"), 4);
  EXPECT_EQ(report.at("in_flight"), 16);
  EXPECT_EQ(report.at("payload_bytes"), 100);
  const auto seconds = report.at("seconds").to_number<double>();
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(report.at("throughput_per_second").to_number<double>() * seconds, 2000, 1);
  EXPECT_GE(report.at("batch").at("max").to_number<double>(),
            report.at("batch").at("mean").to_number<double>());
  EXPECT_GE(report.at("cores").to_number<int>(), 1);
}

TEST_F(Program, MeasuresALifecycleAndCleansUp) {
  const std::string shape = "--tasks 2000 --workers 4 --in-flight 16 --payload-bytes 100 --json";
  for (const std::string store : {"", "--store sqlite:own.db ", "--store memory: "}) {
    const auto ended = run("bench lifecycle " + store + shape);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    ASSERT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1) << ended.out;
    check_report(ended.out);
    EXPECT_EQ(files(), Files{}) << store;
  }
}

TEST_F(Program, MeasuresSuspensions) {
  for (const std::string store : {"sqlite:own.db", "memory:"}) {
    const auto ended = run("bench suspend-resume --store " + store +
                           " --idle-cycles 20 --cycles 300 --workers 2 --in-flight 40 --json");
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto report = json::parse(ended.out);
    EXPECT_EQ(report.at("scenario"), "suspend-resume");
    EXPECT_EQ(report.at("tasks"), 300);
    EXPECT_EQ(report.at("idle_cycles").to_number<int>(), 20);
    EXPECT_NEAR(
        report.at("throughput_per_second").to_number<double>() * report.at("seconds").to_number<double>(),
        300, 1);
    for (const std::string what :
         {"idle_signal_to_resumed", "idle_cycle", "idle_commit", "busy_signal_to_resumed", "busy_cycle"}) {
      expect_percentiles(report.at(what + "_ms_p50"), report.at(what + "_ms_p95"),
                         report.at(what + "_ms_p99"), what);
    }
    EXPECT_GT(report.at("idle_cycle_ms_p50").to_number<double>(),
              report.at("idle_signal_to_resumed_ms_p50").to_number<double>());
    EXPECT_EQ(files(), Files{}) << store;
  }
}

TEST_F(Program, MeasuresForPeopleToo) {
  const auto ended = run("bench lifecycle --tasks 200 --workers 2 --in-flight 4");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "per second")) << ended.out;
  EXPECT_TRUE(has(ended.out, "p99")) << ended.out;
}

TEST_F(Program, NeverMeasuresOnAStoreOfSomeoneElse) {
  std::ofstream(folder_.file("work/precious.db")) << "precious";
  const auto ended = run("bench lifecycle --store sqlite:precious.db --tasks 10");
  EXPECT_EQ(ended.code, 1);
  EXPECT_TRUE(has(ended.err, "precious.db: exists")) << ended.err;
  EXPECT_EQ(content_of(folder_.file("work/precious.db")), "precious");
  EXPECT_EQ(files(), Files{"precious.db"});
}

}  // namespace
}  // namespace flowfabric::e2e
