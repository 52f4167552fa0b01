#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "flowfabric/version.h"
#include "model/text.h"
#include "store/store.h"

namespace flowfabric::cli {

int report(const Error& error) {
  fmt::print(stderr, "flowfabric: {}\n", one_line(error.to_string()));
  return kRefused;
}

namespace {

void add_commands(Command& app, Action& chosen) {
  const auto in_group = [&](const char* group, auto... adders) {
    const auto before = app.commands().size();
    (adders(app, chosen), ...);
    for (auto i = before; i < app.commands().size(); ++i) app.commands()[i]->group(group);
  };
  in_group("Work", add_submit, add_inspect, add_change, add_signal, add_flow);
  in_group("Watch and operate", add_watch, add_fleet, add_top);
  in_group("Run", add_serve, add_demo, add_migrate, add_backup, add_doctor, add_bench, add_completion);
}

constexpr const char* kOfMostCommands = "Most commands take these; they may stand before the command, too";

// The words of the command line, with shared options moved behind their command: `flowfabric --store URL flow
// list` is `flowfabric flow list --store URL`.
struct Words {
  std::vector<std::string> in_order;
  std::string unknown_command;  // the first word that should be a command and is not; empty: none
};

const Command* subcommand(const Command& of, const std::string& word) {
  for (const auto& command : of.commands()) {
    if (command->name() == word) return command.get();
  }
  return nullptr;
}

std::optional<Option> option_of_most(const Command& app, const std::string& word) {
  if (!word.starts_with("--")) return std::nullopt;
  const auto option = app.find_option(word.substr(0, word.find('=')));
  return option && option->group() == kOfMostCommands ? option : std::nullopt;
}

Words words_of(const Command& app, const std::vector<std::string>& given) {
  Words words;
  std::vector<std::string> moved;
  const auto* at = &app;
  std::size_t i = 0;
  for (; i < given.size(); ++i) {
    if (const auto* command = subcommand(*at, given[i])) {
      words.in_order.push_back(given[i]);
      at = command;
      continue;
    }
    const auto option = option_of_most(app, given[i]);
    if (!option) break;
    moved.push_back(given[i]);
    const bool has_value = option->takes_value() && given[i].find('=') == std::string::npos;
    if (has_value && i + 1 < given.size()) moved.push_back(given[++i]);
  }
  const bool needs_command = !at->commands().empty();
  if (i < given.size() && needs_command && !given[i].starts_with('-')) words.unknown_command = given[i];
  words.in_order.insert(words.in_order.end(), moved.begin(), moved.end());
  words.in_order.insert(words.in_order.end(), given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
  return words;
}

// Every user of the machine can read command lines. The program has its own copies by now.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto shown = store::redacted_url(argv[i]);
    const std::size_t size = std::strlen(argv[i]);
    if (shown == argv[i]) continue;
    std::memset(argv[i], 0, size);
    std::memcpy(argv[i], shown.data(), std::min(shown.size(), size));
  }
}

// Output that could not be written is a failure. (Uses fputs: standard error may be full as well.)
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
  Command app("FlowFabric: a durable execution engine.", "flowfabric");
  app.set_version_flag("--version", std::string("flowfabric ") + kVersion);
  app.require_subcommand();
  app.footer(
      "Commands of the first two groups talk to the server http://127.0.0.1:9090, or to what --store or the\n"
      "variable FF_STORE names: another server, or a store that they open directly. FF_API_TOKEN or\n"
      "FF_API_TOKEN_FILE holds the server's token. `flowfabric COMMAND --help` has examples.\n\n" +
      std::string(kExitCodes));
  // For help and completion only; the options are read where they are moved to.
  CommonOptions shown_only;
  add_common_options(app, shown_only);
  for (auto option : app.options()) {
    const bool is_own = option.is_called("--help") || option.is_called("--version");
    if (!is_own) option.group(kOfMostCommands).variable("");
  }
  Action chosen;
  add_commands(app, chosen);
  auto words = words_of(app, {argv + 1, argv + argc});
  if (!words.unknown_command.empty()) {
    return tell(
        {kUsage, "usage", words.unknown_command + ": no such command", "`flowfabric --help` names them all."},
        false);
  }
  if (const auto ended = app.parse(std::move(words.in_order))) return ended->is_error ? kUsage : kDone;
  hide_passwords(argc, argv);
  return run_chosen(chosen);
}

}  // namespace

}  // namespace flowfabric::cli

int main(int argc, char** argv) {
  umask(077);  // files are private to the user
  return flowfabric::cli::run_program(argc, argv);
}
