#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cli/commands.h"
#include "cli/failure.h"
#include "flowfabric/version.h"
#include "store/store.h"

namespace flowfabric::cli {

int report(const Error& error) {
  fmt::print(stderr, "flowfabric: {}\n", error.to_string());
  return kRefused;
}

namespace {

void add_commands(CLI::App& app, Action& chosen) {
  const auto in_group = [&](const char* group, auto... adders) {
    const auto before = app.get_subcommands([](const CLI::App*) { return true; }).size();
    (adders(app, chosen), ...);
    const auto all = app.get_subcommands([](const CLI::App*) { return true; });
    for (auto i = before; i < all.size(); ++i) all[i]->group(group);
  };
  in_group("Work", add_submit, add_inspect, add_change, add_signal, add_flow);
  in_group("Watch and operate", add_watch, add_fleet, add_top);
  in_group("Run", add_serve, add_demo, add_migrate, add_backup, add_doctor, add_bench, add_completion);
}

// The first word that should be a command and is none; empty: there is none.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const auto* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty()) return "";
    const auto named = [&](const CLI::App* command) { return command->get_name() == argv[i]; };
    const auto found = std::find_if(commands.begin(), commands.end(), named);
    if (found == commands.end()) return argv[i];
    at = *found;
  }
  return "";
}

// Command lines can be read by every user of the machine; the program has its own copies by now.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto shown = store::redacted_url(argv[i]);
    const std::size_t size = std::strlen(argv[i]);
    if (shown == argv[i]) continue;
    std::memset(argv[i], 0, size);
    std::memcpy(argv[i], shown.data(), std::min(shown.size(), size));
  }
}

// What could not be written was not told. (With fputs: standard error may be as full as standard output.)
int run_chosen(const Action& chosen) {
  std::string trouble = "the output cannot be written";
  try {
    const int exit_code = chosen();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  } catch (const std::system_error& problem) {
    trouble = problem.what();
  }
  std::fputs(("flowfabric: " + trouble + "\n").c_str(), stderr);
  return kRefused;
}

int run_program(int argc, char** argv) {
  CLI::App app("FlowFabric: a durable execution engine.", "flowfabric");
  app.set_version_flag("--version", std::string("flowfabric ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Commands of the first two groups talk to the server http://127.0.0.1:9090, or to what --store or the\n"
      "variable FF_STORE names: another server, or a store that they open directly. FF_API_TOKEN or\n"
      "FF_API_TOKEN_FILE holds the server's token. `flowfabric COMMAND --help` has examples.\n\n" +
      std::string(kExitCodes));
  Action chosen;
  add_commands(app, chosen);
  if (const auto word = unknown_command(app, argc, argv); !word.empty()) {
    return tell({kUsage, "usage", word + ": no such command", "`flowfabric --help` names them all."}, false);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  hide_passwords(argc, argv);
  return run_chosen(chosen);
}

}  // namespace

}  // namespace flowfabric::cli

int main(int argc, char** argv) {
  umask(077);  // whatever it writes is nobody else's business
  return flowfabric::cli::run_program(argc, argv);
}
