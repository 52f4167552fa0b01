// Flags and help texts of the settings.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "server/config_settings.h"

namespace flowfabric::server {

namespace {

// Settings of one section are shown together.
std::string group_of(const Setting& setting) {
  const auto dot = setting.key.find('.');
  return dot == setting.key.npos ? "Options" : fmt::format("[{}]", setting.key.substr(0, dot));
}

void add_option(CLI::App& app, const Setting& setting, FlagValues& flags) {
  const std::string key(setting.key);
  const bool is_boolean = setting.meaning.shape == Shape::boolean;
  const auto keep = [&flags, key, is_boolean](const std::string& text) {
    flags.by_key[key] = is_boolean && text.empty() ? "true" : text;
  };
  auto* option = app.add_option_function<std::string>(flag_of(setting), keep, std::string(setting.help));
  option->group(group_of(setting));
  option->type_name(is_boolean ? "" : setting.meaning.shape == Shape::number ? "NUMBER" : "TEXT");
  if (is_boolean) option->expected(0, 1);  // --log-access means --log-access=true
  if (!setting.default_text.empty() && !is_boolean) option->default_str(std::string(setting.default_text));
}

}  // namespace

void add_options(CLI::App& app, FlagValues& flags) {
  app.add_option("--config", flags.config_file, "TOML file with settings (or FF_CONFIG)")->type_name("FILE");
  app.add_flag("--print-config", flags.print_config, "Print all settings and where they come from, and stop");
  for (const auto& setting : all_settings()) {
    if (!flag_of(setting).empty()) add_option(app, setting, flags);
  }
}

std::string environment_help() {
  std::string help =
      "Flags win over environment variables, those over the file of --config, that over defaults.\n\n"
      "Environment:\n";
  help += fmt::format("  {:<39} {}\n", "FF_CONFIG", "--config");
  for (const auto& setting : all_settings()) {
    const auto flag = flag_of(setting);
    help +=
        fmt::format("  {:<39} {}\n", setting.variable, flag.empty() ? setting.help : std::string_view(flag));
  }
  help += "  FF_BACKEND, FF_SQLITE_PATH, FF_POSTGRES_URL choose the store if --store and FF_STORE do not.\n";
  return help;
}

}  // namespace flowfabric::server
