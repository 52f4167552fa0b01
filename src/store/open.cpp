#include <chrono>

#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"
#include "store/url.h"

namespace flowfabric::store {

Result<StoreUrl> parse_store_url(const std::string& url) {
  const auto colon = url.find(':');
  if (colon == std::string::npos) {
    return fail_with(ErrorCode::invalid_input, "store URL: no scheme",
                     "'" + url + "' is not a store URL; use memory: or sqlite:PATH.");
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
                   "'" + url.scheme + ":' is not a store; use memory: or sqlite:PATH.");
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& url, StoreOptions options) {
  auto parsed = parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (!options.now_ms) options.now_ms = system_now_ms;
  if (parsed->scheme == "memory") return open_memory_store(*parsed, options);
  if (parsed->scheme == "sqlite") return open_sqlite_store(*parsed, options);
  return unknown_scheme(*parsed);
}

Result<std::string> migrate_store(const std::string& url, const StoreOptions& options) {
  auto parsed = parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme == "memory") return "memory: has no schema; nothing to do";
  if (parsed->scheme == "sqlite") return migrate_sqlite_store(*parsed, options);
  return unknown_scheme(*parsed);
}

}  // namespace flowfabric::store
