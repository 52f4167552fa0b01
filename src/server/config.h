// The configuration of `flowfabric serve`: flags win over environment variables, these over a TOML file, and
// that over defaults. Every setting is one row of a table in config_settings.cpp; docs/configuration.md lists
// them.
#pragma once

#include <boost/describe.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/call.h"
#include "flowfabric/engine.h"
#include "http/server.h"

namespace CLI {
class App;
}

namespace flowfabric::server {

enum class LogLevel { trace, debug, info, warn, error, off };
BOOST_DESCRIBE_ENUM(LogLevel, trace, debug, info, warn, error, off)

enum class LogFormat { text, json };
BOOST_DESCRIBE_ENUM(LogFormat, text, json)

// One line of --print-config.
struct SettingInForce {
  std::string key;
  std::string value;   // as TOML; nothing secret
  std::string origin;  // `flag --x`, `environment FF_X`, `file PATH` or `default`
};

struct Config {
  std::string store_url;
  std::string store_file;
  // `engine.clock_interval` is the shortest nonzero one of `intervals`, because the engine has one clock for
  // all rules. It only bounds the delay: the clock sleeps until the next rule is due.
  EngineOptions engine;
  // The longest delay of each rule. Zero: the rule is off (`engine.rules_off`).
  std::map<std::string, std::chrono::milliseconds> intervals;
  http::ServerOptions http;
  std::string admin_address;  // empty: the administration has no address of its own
  std::uint16_t admin_port{};
  api::BodyLimits max_body;
  std::size_t max_json_values{};
  std::string api_token;   // empty: none is needed
  bool allow_anonymous{};  // any client, from anywhere, may do anything
  bool metrics_are_open{};
  std::uint32_t outside_signals_per_minute{};
  std::string api_token_file;
  std::vector<std::string> cors_origins;
  std::vector<std::string> lanes;  // registered at the start; as given, maybe repeated
  std::uint32_t max_stream_operations{};
  std::string waitpoint_secret_file;
  std::chrono::milliseconds waitpoint_grace{};  // how long tokens of a rotated secret stay valid
  std::chrono::milliseconds shutdown_grace{};
  LogLevel log_level{};
  LogFormat log_format{};
  bool access_log{};
  std::string otlp_endpoint;  // empty: off

  // The file that the text of a setting was read from, by setting.
  std::map<std::string, std::string, std::less<>> files_in_use;

  std::vector<std::string> warnings;  // for the operator; nothing secret
  std::vector<SettingInForce> settings;
};

// The settings of the command line.
struct FlagValues {
  std::map<std::string, std::string> by_key;
  std::string config_file;
  bool print_config{false};
};

using Variables = std::map<std::string, std::string>;
using FileReader = std::function<Result<std::string>(const std::string& path)>;

Variables process_environment();
Result<std::string> read_text_file(const std::string& path);

struct Sources {
  FlagValues flags{};
  Variables environment{};
  FileReader read_file{read_text_file};
};

// Adds --config, --print-config, and a flag for every setting that is not a secret. `flags` must outlive
// `app`.
void add_options(CLI::App& app, FlagValues& flags);
// The environment variables, for the end of a help text.
std::string environment_help();

// `only` restricts it to these settings: the others keep their defaults, and their sources are not read.
Result<Config> load_config(const Sources& sources, const std::vector<std::string>& only = {});

// One line per setting: a file for --config, once the secrets are filled in.
std::string print_config(const Config& config);

}  // namespace flowfabric::server
