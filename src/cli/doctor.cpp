#include <fmt/core.h>

#include <filesystem>

#include "api/shapes.h"
#include "cli/commands.h"
#include "cli/open_engine.h"
#include "store/store.h"
#include "store/url.h"

namespace flowfabric::cli {

namespace {

constexpr int kSound = 0;
constexpr int kDamaged = 1;
constexpr int kTrouble = 2;

struct DoctorOptions {
  std::string store;
  bool repair{false};
  bool json{false};
};

// Opening a store that does not exist would create one, and report it sound.
Result<void> check_exists(const std::string& url) {
  const auto parsed = store::parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme != "sqlite" || parsed->path.empty() || std::filesystem::exists(parsed->path)) return {};
  return fail_with(ErrorCode::invalid_input, parsed->path + ": no such file",
                   "Give the path of the database that is to be checked.");
}

Result<StoreReport> examine(const DoctorOptions& options) {
  if (auto exists = check_exists(options.store); !exists) return std::unexpected(exists.error());
  EngineOptions engine_options;
  engine_options.clock_interval = std::chrono::milliseconds(0);
  auto engine = open_engine(options.store, std::move(engine_options));
  if (!engine) return std::unexpected(engine.error());
  return engine->call(CheckStore{.repair = options.repair});
}

std::string to_json(const StoreReport& report) {
  api::JsonWriter out;
  api::write_store_report(out, report);
  return out.take();
}

std::string to_text(const StoreReport& report, const DoctorOptions& options) {
  std::string text;
  for (const auto& each : report.violations) {
    text += fmt::format("{}: {}{}\n", each.where, each.what, each.repaired ? " (repaired)" : "");
  }
  if (report.found > report.violations.size()) {
    text += fmt::format("… and {} more\n", report.found - report.violations.size());
  }
  text += fmt::format("{}: looked at {} executions and {} records: ", store::redacted_url(options.store),
                      report.executions, report.records);
  if (report.found == 0) return text + "nothing is wrong\n";
  text += fmt::format("{} found, {} repaired\n", report.found, report.repaired);
  if (!options.repair) text += "Run it with --repair to repair data that follows from other records.\n";
  return text;
}

}  // namespace

void add_doctor(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("doctor", "Check the consistency of a store.");
  command->footer(
      "Exit code: 0 nothing is wrong (any more), 1 something is, 2 the store cannot be checked.\n" +
      std::string(kSecretHelp) +
      "\n\nExamples:\n"
      "  flowfabric doctor --store sqlite:jobs.db\n"
      "  flowfabric doctor --store postgres://user@host/database --repair --json");
  auto options = std::make_shared<DoctorOptions>();
  command->add_option("--store", options->store, "Store URL, for example sqlite:flowfabric.db").required();
  command->add_flag("--repair", options->repair, "Repair data that follows from other records");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &chosen] {
    chosen = [options] {
      const auto report = examine(*options);
      if (!report) {
        cli::report(report.error());
        return kTrouble;
      }
      fmt::print("{}", options->json ? to_json(*report) + "\n" : to_text(*report, *options));
      return report->found == report->repaired ? kSound : kDamaged;
    };
  });
}

}  // namespace flowfabric::cli
