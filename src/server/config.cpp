#include "server/config.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

#include "model/text.h"
#include "server/config_file.h"
#include "server/config_reference.h"
#include "server/config_settings.h"
#include "server/secret_files.h"
#include "store/store.h"

namespace flowfabric::server {

namespace {

constexpr std::string_view kRedacted = "<redacted>";
constexpr std::string_view kRedactedPassword = "***";  // as store::redacted_url shows it
constexpr const char* kConfigVariable = "FF_CONFIG";
constexpr std::size_t kMostFileBytes = 1u << 20;
constexpr std::size_t kMostShownBytes = 200;

// In the order of precedence.
enum class Source { by_default, file, environment, flag };

struct Given {
  std::string text;
  Source source{Source::by_default};
  std::string origin{"default"};
};

struct File {
  std::string path;
  std::map<std::string, std::vector<std::string>> values;
};

// ---- Words ----

std::string toml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return "\"" + escaped + "\"";
}

std::string toml_value(const Setting& setting, const std::string& text) {
  switch (setting.meaning.shape) {
    case Shape::number:
    case Shape::boolean:
      return text;
    case Shape::secret:
      return toml_text(text.empty() ? "" : kRedacted);
    case Shape::url:
      return toml_text(store::redacted_url(text));
    case Shape::text:
      return toml_text(text);
    case Shape::list:
      break;
  }
  auto parts = split_list(text);
  std::ranges::transform(parts, parts.begin(), toml_text);
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

// A value for an error text: short, on one line, without secrets.
std::string for_an_error(const Setting& setting, const std::string& text) {
  if (setting.meaning.shape == Shape::secret) return "";
  auto shown = setting.meaning.shape == Shape::url ? store::redacted_url(text) : text;
  if (!check_plain_text(shown)) return ": not plain text";
  if (shown.size() > kMostShownBytes) shown = truncate_utf8(std::move(shown), kMostShownBytes) + "…";
  return fmt::format(": '{}'", shown);
}

std::unexpected<Error> refuse(const Setting& setting, const Given& given, std::string advice) {
  return fail_with(ErrorCode::invalid_input,
                   fmt::format("{} ({}){}", setting.key, given.origin, for_an_error(setting, given.text)),
                   std::move(advice));
}

// ---- The sources ----

const std::string* find_in(const std::map<std::string, std::string>& values, std::string_view name) {
  const auto found = values.find(std::string(name));
  return found == values.end() ? nullptr : &found->second;
}

Result<File> read_file(const Sources& sources) {
  File file{sources.flags.config_file, {}};
  std::string origin = "flag --config";
  if (file.path.empty()) {
    if (const auto* path = find_in(sources.environment, kConfigVariable)) file.path = *path;
    origin = fmt::format("environment {}", kConfigVariable);
  }
  if (file.path.empty()) return file;
  const auto text = sources.read_file(file.path);
  if (!text) {
    return fail_with(ErrorCode::invalid_input, fmt::format("{}: {}", origin, text.error().detail),
                     "Name a TOML file that can be read.");
  }
  auto values = read_toml(*text, file.path);
  if (!values) return std::unexpected(values.error());
  file.values = *std::move(values);
  return file;
}

Result<void> check_keys(const File& file) {
  for (const auto& [key, values] : file.values) {
    if (find_setting(key)) continue;
    std::vector<std::string> known;
    for (const auto& setting : all_settings()) known.emplace_back(setting.key);
    return fail_with(
        ErrorCode::invalid_input, fmt::format("file {}: unknown key {}", file.path, key),
        fmt::format("Did you mean {}? --print-config shows all keys.", nearest_name(key, known)));
  }
  return {};
}

// False for an empty text where the setting is a text: that means "not given".
bool counts(const Setting& setting, const std::string& text, Source source) {
  const auto shape = setting.meaning.shape;
  if (!text.empty() || (shape != Shape::text && shape != Shape::url && shape != Shape::secret)) return true;
  return setting.meaning.is_refused_when_empty && source == Source::environment;
}

std::optional<Given> given_by_environment(const Setting& setting, const Variables& environment) {
  const auto given = [&](std::string text, std::string_view variable) {
    if (setting.meaning.shape == Shape::boolean) text = is_true_variable(text) ? "true" : "false";
    return Given{std::move(text), Source::environment, fmt::format("environment {}", variable)};
  };
  if (const auto* text = find_in(environment, setting.variable);
      text && counts(setting, *text, Source::environment)) {
    return given(*text, setting.variable);
  }
  const auto* old = find_in(environment, setting.old_variable);
  if (!old) return std::nullopt;
  const auto text = setting.from_old ? setting.from_old(*old) : std::optional(*old);
  if (!text) return std::nullopt;
  return given(*text, setting.old_variable);
}

// Absent if the file does not have the setting.
Result<std::optional<Given>> given_by_file(const Setting& setting, const File& file) {
  const auto found = file.values.find(std::string(setting.key));
  if (found == file.values.end()) return std::nullopt;
  const auto& values = found->second;
  Given given{fmt::format("{}", fmt::join(values, ",")), Source::file, "file " + file.path};
  const bool is_list = setting.meaning.shape == Shape::list;
  if (!is_list && values.size() != 1)
    return refuse(setting, given, "Give one value, in quotes if it is a text.");
  if (is_list && values.size() > 1 &&
      std::ranges::any_of(values, [](const auto& value) { return value.contains(','); })) {
    return refuse(setting, given, "Leave commas out of the entries of an array.");
  }
  const bool was_printed = (setting.meaning.shape == Shape::secret && given.text == kRedacted) ||
                           (setting.meaning.shape == Shape::url && given.text.contains(kRedactedPassword));
  if (was_printed)
    return refuse(setting, given, "--print-config hides secrets: put the real one in its place.");
  if (!counts(setting, given.text, Source::file)) return std::nullopt;
  return given;
}

Result<Given> find_given(const Setting& setting, const Sources& sources, const File& file) {
  if (const auto* text = find_in(sources.flags.by_key, setting.key);
      text && counts(setting, *text, Source::flag)) {
    return Given{*text, Source::flag, "flag " + flag_of(setting)};
  }
  if (auto given = given_by_environment(setting, sources.environment)) return *std::move(given);
  auto given = given_by_file(setting, file);
  if (!given) return std::unexpected(given.error());
  if (*given) return **std::move(given);
  return Given{std::string(setting.default_text)};
}

// ---- One configuration of them all ----

class Loader {
 public:
  Loader(const Sources& sources, const std::vector<std::string>& only) : sources_(sources), only_(only) {}

  Result<Config> load() {
    auto file = read_file(sources_);
    if (!file) return std::unexpected(file.error());
    file_ = *std::move(file);
    if (const auto checked = check_keys(file_); !checked) return std::unexpected(checked.error());
    for (const auto& setting : all_settings()) {
      if (const auto applied = apply(setting); !applied) return std::unexpected(applied.error());
    }
    for (const auto step : {&Loader::read_secret_files, &Loader::check_tls, &Loader::check_doors,
                            &Loader::check_memory, &Loader::check_variables}) {
      if (const auto done = (this->*step)(); !done) return std::unexpected(done.error());
    }
    set_clock_interval();
    return std::move(config_);
  }

 private:
  bool is_asked_for(std::string_view key) const {
    return only_.empty() || std::ranges::find(only_, key) != only_.end();
  }

  Result<void> apply(const Setting& setting) {
    Given given{std::string(setting.default_text)};
    if (is_asked_for(setting.key)) {
      auto found = find_given(setting, sources_, file_);
      if (found && setting.key == "store") found = choose_store(*std::move(found));
      if (!found) return std::unexpected(found.error());
      given = *std::move(found);
    }
    std::string printed;
    if (given.source != Source::by_default || !given.text.empty()) {
      auto applied = put(setting, given.text);
      if (!applied) return refuse(setting, given, applied.error());
      printed = *std::move(applied);
    }
    config_.settings.push_back({std::string(setting.key), toml_value(setting, printed), given.origin});
    given_.emplace(setting.key, std::move(given));
    return {};
  }

  Parsed<std::string> put(const Setting& setting, const std::string& text) {
    const auto shape = setting.meaning.shape;
    if (shape == Shape::text || shape == Shape::url) {
      if (const auto checked = check_plain_text(text); !checked) return std::unexpected(checked.error());
    }
    return setting.meaning.apply(text, config_);
  }

  Result<Given> choose_store(Given given) {
    if (given.source != Source::by_default) {
      warn_of_unused_store_variables(sources_.environment, given.origin, config_.warnings);
      return given;
    }
    const auto chosen = store_of_reference(sources_.environment, config_.warnings);
    if (!chosen) return std::unexpected(chosen.error());
    if (!*chosen) return given;
    return Given{(*chosen)->url, Source::environment, "environment " + (*chosen)->variable};
  }

  Result<void> read_secret_files() {
    for (const auto& [key, file_key] : {std::pair{"store", "store_file"},
                                        {"api_token", "api_token_file"},
                                        {"waitpoint.secret", "waitpoint.secret_file"}}) {
      if (const auto read = read_secret_file(key, file_key); !read) return read;
    }
    return {};
  }

  // The secret itself wins over a file that holds it, unless a higher source names the file.
  Result<void> read_secret_file(std::string_view key, std::string_view file_key) {
    const auto& direct = given_.at(key);
    const auto& file = given_.at(file_key);
    if (file.text.empty()) return {};
    if (direct.source >= file.source) {
      warn_of_two(file_key, key, direct);
      return {};
    }
    if (direct.source != Source::by_default) warn_of_two(key, file_key, file);
    const auto& file_setting = *find_setting(file_key);
    auto secret = sources_.read_file(file.text);
    if (!secret)
      return refuse(file_setting, file, "Name a file that can be read: " + secret.error().detail + ".");
    *secret = without_line_end(*std::move(secret));
    if (secret->empty()) return refuse(file_setting, file, "The file is empty: put the text into it.");
    const auto applied = find_setting(key)->meaning.apply(*secret, config_);
    if (!applied) return refuse(file_setting, file, "The text in the file is not usable. " + applied.error());
    config_.files_in_use.emplace(key, file.text);
    // The printed configuration can be used as a file, and must then not win over this file.
    std::ranges::find(config_.settings, key, &SettingInForce::key)->value = toml_text("");
    return {};
  }

  void warn_of_two(std::string_view unused, std::string_view used, const Given& given) {
    config_.warnings.push_back(fmt::format("{} is not used: {} is given by {}", unused, used, given.origin));
  }

  Result<void> check_tls() {
    const auto& client_ca = given_.at("tls.client_ca");
    if (!client_ca.text.empty() && config_.http.tls_certificate_file.empty()) {
      return refuse(*find_setting("tls.client_ca"), client_ca,
                    "Clients show certificates over TLS only: give tls.certificate and tls.key, too.");
    }
    const auto& certificate = given_.at("tls.certificate");
    const auto& key = given_.at("tls.key");
    if (certificate.text.empty() == key.text.empty()) return {};
    const bool needs_key = key.text.empty();
    return refuse(*find_setting(needs_key ? "tls.certificate" : "tls.key"), needs_key ? certificate : key,
                  needs_key ? "Give tls.key (FF_TLS_KEY_FILE), too: TLS needs both files."
                            : "Give tls.certificate (FF_TLS_CERTIFICATE_FILE), too: TLS needs both files.");
  }

  // An address that others can reach needs authentication.
  Result<void> check_doors() {
    const bool is_guarded = !config_.api_token.empty() || !config_.http.tls_client_ca_file.empty();
    if (!is_asked_for("listen") || is_guarded || config_.allow_anonymous) return {};
    const bool is_admin = !config_.admin_address.empty() && !is_loopback_address(config_.admin_address);
    if (!is_admin && is_loopback_address(config_.http.address)) return {};
    const auto* const key = is_admin ? "admin_listen" : "listen";
    return refuse(*find_setting(key), given_.at(key),
                  "Other machines can reach this address, and without a token they may do everything. Make "
                  "one with `openssl rand -hex 32 > token` and give --api-token-file token; or demand client "
                  "certificates (--tls-client-ca). If everybody may do everything: --allow-anonymous.");
  }

  // The largest allowed body must fit into the memory for requests.
  Result<void> check_memory() {
    const auto& sizes = config_.max_body;
    const auto largest = std::max({sizes.control, sizes.signal, sizes.large, sizes.bulk});
    const auto* const key = "http.max_body_memory";
    if (!is_asked_for(key) || config_.http.max_body_memory / 4 >= largest) return {};
    return refuse(*find_setting(key), given_.at(key),
                  fmt::format("Give at least four times the largest body that is allowed, which is {} bytes.",
                              largest));
  }

  Result<void> check_variables() {
    if (!only_.empty()) return {};
    auto known = reference_variables();
    known.emplace_back(kConfigVariable);
    for (const auto& setting : all_settings()) {
      known.emplace_back(setting.variable);
      if (!setting.old_variable.empty()) known.emplace_back(setting.old_variable);
    }
    for (const auto& [name, value] : sources_.environment) {
      if (!name.starts_with("FF_") || std::ranges::find(known, name) != known.end()) continue;
      config_.warnings.push_back(fmt::format("{} is ignored: there is no such variable; did you mean {}?",
                                             name, nearest_name(name, known)));
    }
    return check_retired_variables(sources_.environment, config_.warnings);
  }

  // Only rules that the engine has can be turned off.
  void set_clock_interval() {
    auto& shortest = config_.engine.clock_interval;
    shortest = {};
    for (const auto& [rule, interval] : config_.intervals) {
      if (interval.count() == 0) {
        if (enum_from_name<core::Rule>(rule)) config_.engine.rules_off.insert(rule);
      } else if (shortest.count() == 0 || interval < shortest) {
        shortest = interval;
      }
    }
  }

  const Sources& sources_;
  const std::vector<std::string>& only_;
  File file_;
  Config config_;
  std::map<std::string_view, Given> given_;
};

}  // namespace

Variables process_environment() {
  Variables variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    if (equals == text.npos || (!name.starts_with("FF_") && name != "RUST_LOG")) continue;
    variables.emplace(name, text.substr(equals + 1));
  }
  return variables;
}

Result<std::string> read_text_file(const std::string& path) {
  const auto refuse_file = [&path](std::string_view why) {
    return fail_with(ErrorCode::invalid_input, fmt::format("{}: {}", path, why),
                     "Name a file that can be read.");
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse_file("cannot be opened");
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return refuse_file("cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostFileBytes) return refuse_file("is larger than 1 MiB");
  return text;
}

Result<Config> load_config(const Sources& sources, const std::vector<std::string>& only) {
  return Loader(sources, only).load();
}

std::string print_config(const Config& config) {
  std::string lines;
  for (const auto& setting : config.settings) {
    lines += fmt::format("{} = {}   # from {}\n", setting.key, setting.value, setting.origin);
  }
  return lines;
}

}  // namespace flowfabric::server
