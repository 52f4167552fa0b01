#include "server/config_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "model/encoding.h"
#include "server/config_settings.h"
#include "server/config_values.h"
#include "store/store.h"

namespace flowfabric::server {

namespace {

constexpr const char* kBackend = "FF_BACKEND";
constexpr const char* kSqlitePath = "FF_SQLITE_PATH";
constexpr const char* kPostgresUrl = "FF_POSTGRES_URL";
constexpr std::array kStoreVariables{kBackend, kSqlitePath, kPostgresUrl};

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

struct RetiredVariable {
  std::string_view name;
  std::uint64_t least{0};
  std::uint64_t most{0};  // zero: anything goes
  std::string_view warning{};
};

constexpr std::array kRetired{
    RetiredVariable{"FF_HOST"},
    RetiredVariable{"FF_PORT", 0, 65'535},
    RetiredVariable{"FF_TLS"},
    RetiredVariable{"FF_CLUSTER"},
    RetiredVariable{"FF_DEV_MODE"},
    RetiredVariable{"FF_FORCE_LUA_RELOAD"},
    RetiredVariable{"FF_ENV"},
    RetiredVariable{"FF_BACKEND_ACCEPT_UNREADY"},
    RetiredVariable{"FF_SENTRY_DSN"},
    RetiredVariable{"FF_SENTRY_ENVIRONMENT"},
    RetiredVariable{"FF_SENTRY_RELEASE"},
    RetiredVariable{
        "FF_POSTGRES_POOL_SIZE", 1, kMost32,
        "FF_POSTGRES_POOL_SIZE is not used: committers=N and readers=N in the URL of the store say how "
        "many connections there are"},
    RetiredVariable{"FF_SQLITE_POOL_SIZE", 1, kMost32},
};

// An empty variable counts as not set.
std::string value_of(const Variables& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::unexpected<Error> refuse(const std::string& variable, const std::string& value, std::string advice) {
  const auto shown = check_plain_text(value) ? fmt::format("'{}'", value) : "not plain text";
  return fail_with(ErrorCode::invalid_input, fmt::format("environment {}: {}", variable, shown),
                   std::move(advice));
}

Parsed<std::string> url_of_path(const std::string& path) {
  if (path == ":memory:") return "memory:";
  if (path.empty() || path.contains('?') || !check_plain_text(path)) {
    return std::unexpected(
        "Give the path of a file, without question marks and control characters, or :memory:.");
  }
  return "sqlite:" + path;
}

// SQLite's own URIs: file:PATH, file:///PATH, file:…?mode=…&cache=….
Parsed<std::string> url_of_file_uri(std::string_view uri) {
  uri.remove_prefix(std::string_view("file:").size());
  uri = uri.substr(0, uri.find('#'));
  const auto question = std::min(uri.find('?'), uri.size());
  auto path = uri.substr(0, question);
  if (path.starts_with("//")) {
    path.remove_prefix(2);
    const auto slash = std::min(path.find('/'), path.size());
    const auto host = path.substr(0, slash);
    if (!host.empty() && host != "localhost")
      return std::unexpected("Name a file of this machine: file:///PATH.");
    path.remove_prefix(slash);
  }
  auto query = std::string(uri.substr(std::min(question + 1, uri.size())));
  std::ranges::replace(query, '&', ',');
  for (const auto& parameter : split_list(query)) {
    if (parameter == "mode=memory") return "memory:";
    const bool changes_nothing =
        parameter == "mode=rwc" || parameter == "mode=rw" || parameter.starts_with("cache=");
    if (!changes_nothing)
      return std::unexpected("Of a file: URI's parameters, only mode and cache may be given.");
  }
  const auto decoded = percent_decode(path);
  if (!decoded) return std::unexpected("Behind a % in a file: URI there must be two hex digits.");
  return url_of_path(*decoded);
}

void warn_if_set(const Variables& environment, const std::string& variable, const std::string& why,
                 std::vector<std::string>& warnings) {
  if (value_of(environment, variable).empty()) return;
  warnings.push_back(fmt::format("{} is not used: {}", variable, why));
}

Result<std::optional<ChosenStore>> sqlite_store(const Variables& environment,
                                                std::vector<std::string>& warnings) {
  warn_if_set(environment, kPostgresUrl, "for PostgreSQL, set FF_BACKEND=postgres, or FF_STORE to the URL",
              warnings);
  const auto path = value_of(environment, kSqlitePath);
  if (path.empty()) {
    if (value_of(environment, kBackend).empty()) return std::nullopt;
    return ChosenStore{std::string(find_setting("store")->default_text), kBackend};
  }
  const auto url = path.starts_with("file:") ? url_of_file_uri(path) : url_of_path(path);
  if (!url) return refuse(kSqlitePath, path, url.error());
  return ChosenStore{*url, kSqlitePath};
}

Result<std::optional<ChosenStore>> postgres_store(const Variables& environment,
                                                  std::vector<std::string>& warnings) {
  warn_if_set(environment, kSqlitePath, "FF_BACKEND is postgres", warnings);
  const auto url = value_of(environment, kPostgresUrl);
  if (store::is_postgres_url(url)) return ChosenStore{url, kPostgresUrl};
  return refuse(kPostgresUrl, store::redacted_url(url),
                "With FF_BACKEND=postgres, give the database as postgres://user@host/database.");
}

}  // namespace

Result<std::optional<ChosenStore>> store_of_reference(const Variables& environment,
                                                      std::vector<std::string>& warnings) {
  const auto given = value_of(environment, kBackend);
  const auto backend = lower_case(given);
  if (backend.empty() || backend == "sqlite") return sqlite_store(environment, warnings);
  if (backend == "postgres") return postgres_store(environment, warnings);
  if (backend == "valkey") {
    return refuse(
        kBackend, given,
        "This build has no Valkey store yet: set FF_BACKEND to sqlite or postgres, or FF_STORE to a URL.");
  }
  return refuse(kBackend, given, "Give sqlite or postgres, or set FF_STORE to the URL of a store.");
}

void warn_of_unused_store_variables(const Variables& environment, const std::string& origin,
                                    std::vector<std::string>& warnings) {
  for (const auto* variable : kStoreVariables) {
    warn_if_set(environment, variable, "store is given by " + origin, warnings);
  }
}

Result<void> check_retired_variables(const Variables& environment, std::vector<std::string>& warnings) {
  for (const auto& retired : kRetired) {
    const auto found = environment.find(std::string(retired.name));
    if (found == environment.end()) continue;
    if (retired.most > 0) {
      const auto parsed = parse_number(found->second, retired.least, retired.most);
      if (!parsed) return refuse(found->first, found->second, parsed.error());
    }
    if (!retired.warning.empty()) warnings.emplace_back(retired.warning);
  }
  return {};
}

std::vector<std::string> reference_variables() {
  std::vector<std::string> names(kStoreVariables.begin(), kStoreVariables.end());
  for (const auto& retired : kRetired) names.emplace_back(retired.name);
  return names;
}

}  // namespace flowfabric::server
