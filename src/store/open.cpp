#include <fmt/core.h>

#include <chrono>

#include "store/memory/memory_store.h"
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"
#include "store/url.h"

namespace flowfabric::store {

Result<StoreUrl> parse_store_url(const std::string& url) {
  const auto colon = url.find(':');
  if (colon == std::string::npos) {
    return fail_with(
        ErrorCode::invalid_input, "store URL: no scheme",
        fmt::format("'{}' is not a store URL; use memory:, sqlite:PATH or postgres://….", redacted_url(url)));
  }
  StoreUrl parsed{.scheme = url.substr(0, colon), .path = url.substr(colon + 1), .options = {}};
  const auto question = parsed.path.find('?');
  if (question == std::string::npos) return parsed;
  std::string query = parsed.path.substr(question + 1);
  parsed.path.resize(question);
  for (std::size_t start = 0; start < query.size();) {
    const auto end = std::min(query.find('&', start), query.size());
    const auto pair = query.substr(start, end - start);
    const auto equals = std::min(pair.find('='), pair.size());
    parsed.options[pair.substr(0, equals)] = equals < pair.size() ? pair.substr(equals + 1) : "";
    start = end + 1;
  }
  return parsed;
}

std::int64_t system_now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

namespace {

std::unexpected<Error> unknown_scheme(const StoreUrl& url) {
  return fail_with(ErrorCode::invalid_input, "store URL: unknown scheme",
                   "'" + url.scheme + ":' is not a store; use memory:, sqlite:PATH or postgres://….");
}

}  // namespace

bool is_postgres_url(const std::string& url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

Agenda Session::agenda(const AgendaQuestion& question) {
  core::Unit unit(*this);
  Agenda agenda;
  agenda.now_ms = begin(unit);
  agenda.next_due = next_due({.until_ms = question.until_ms, .scope = question.scope});
  agenda.oldest_event = oldest_event();
  rollback();
  return agenda;
}

void Session::commit_behind(std::unique_ptr<core::Unit> unit, bool, Settled settled) {
  if (unit->has_changes())
    commit(*unit);
  else
    rollback();
  settled(std::nullopt);
}

std::string redacted_url(const std::string& url) {
  std::string shown = url;
  // scheme://user:password@host
  const auto authority = shown.find("://");
  if (authority != shown.npos) {
    // The last @ there is: a password may hold what should have been written as %40 or %2F.
    const auto at = shown.rfind('@');
    const auto colon = shown.find(':', authority + 3);
    if (at != shown.npos && at > authority && colon < at) shown.replace(colon + 1, at - colon - 1, "***");
  }
  for (auto start = shown.find("password="); start != shown.npos; start = shown.find("password=", start)) {
    start += std::string_view("password=").size();
    shown.replace(start, std::min(shown.find('&', start), shown.size()) - start, "***");
  }
  return shown;
}

Result<std::unique_ptr<Store>> open_store(const std::string& url, StoreOptions options) {
  if (is_postgres_url(url)) return open_postgres_store(url, options);
  auto parsed = parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (!options.now_ms) options.now_ms = system_now_ms;
  if (parsed->scheme == "memory") return open_memory_store(*parsed, options);
  if (parsed->scheme == "sqlite") return open_sqlite_store(*parsed, options);
  return unknown_scheme(*parsed);
}

Result<std::string> migrate_store(const std::string& url, const StoreOptions& options) {
  if (is_postgres_url(url)) return migrate_postgres_store(url, options);
  auto parsed = parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme == "memory") return "memory: has no schema; nothing to do";
  if (parsed->scheme == "sqlite") return migrate_sqlite_store(*parsed, options);
  return unknown_scheme(*parsed);
}

Result<std::string> plan_store_migration(const std::string& url, const StoreOptions& options) {
  if (is_postgres_url(url)) return plan_postgres_migration(url, options);
  auto parsed = parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme == "memory") return "-- memory: has no schema\n";
  if (parsed->scheme == "sqlite") return plan_sqlite_migration(*parsed);
  return unknown_scheme(*parsed);
}

}  // namespace flowfabric::store
