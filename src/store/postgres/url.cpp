#include "store/postgres/url.h"

#include <charconv>

namespace flowfabric::store::postgres {

namespace {

std::unexpected<Error> bad(const std::string& name, const std::string& rule) {
  return fail_with(ErrorCode::invalid_input, "store URL: " + name, name + " must be " + rule + ".");
}

Result<std::size_t> number(const std::string& name, const std::string& text, std::size_t max) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > max) {
    return bad(name, "a number from 1 to " + std::to_string(max));
  }
  return value;
}

Result<bool> choice(const std::string& name, const std::string& text, const std::string& yes,
                    const std::string& no) {
  if (text == yes) return true;
  if (text == no) return false;
  return bad(name, yes + " or " + no);
}

template <class T>
Result<bool> assign(T& target, Result<T> value) {
  if (!value) return std::unexpected(value.error());
  target = *value;
  return true;
}

// True: the parameter is one of ours. Otherwise it is libpq's, and libpq judges it.
Result<bool> take(StoreSettings& settings, const std::string& name, const std::string& value) {
  if (name == "committers") return assign(settings.committers, number(name, value, 64));
  if (name == "readers") return assign(settings.readers, number(name, value, 256));
  if (name == "notify") return assign(settings.notify, choice(name, value, "on", "off"));
  if (name == "outage") return assign(settings.waits_when_away, choice(name, value, "wait", "fail"));
  if (name == "pooler") {
    return assign(settings.connection.pooled, choice(name, value, "transaction", "none"));
  }
  return false;
}

// libpq would take the rest of a password for a host, and show it.
bool has_stray_at(const std::string& url) {
  const auto authority_end = url.find_first_of("/?", url.find("://") + 3);
  const auto first = url.find('@');
  return first != url.npos && (first > authority_end || url.find('@', first + 1) != url.npos);
}

}  // namespace

Result<StoreSettings> parse_postgres_url(const std::string& url) {
  if (has_stray_at(url)) {
    return fail_with(ErrorCode::invalid_input, "store URL: an @ in the wrong place",
                     "Write special characters of the user's name or password as %40 (@), %2F (/), %3F (?).");
  }
  StoreSettings settings;
  const auto question = std::min(url.find('?'), url.size());
  std::string theirs;
  for (auto start = question + 1; start < url.size();) {
    const auto end = std::min(url.find('&', start), url.size());
    const auto pair = url.substr(start, end - start);
    const auto equals = std::min(pair.find('='), pair.size());
    const auto value = equals < pair.size() ? pair.substr(equals + 1) : "";
    const auto ours = take(settings, pair.substr(0, equals), value);
    if (!ours) return std::unexpected(ours.error());
    if (!*ours) theirs += (theirs.empty() ? "?" : "&") + pair;
    start = end + 1;
  }
  settings.connection.uri = url.substr(0, question) + theirs;
  // A pooler gives every transaction another backend, and none of them would be listening.
  if (settings.connection.pooled) settings.notify = false;
  char* problem = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(settings.connection.uri.c_str(), &problem);
  std::string words = problem ? problem : "";
  // libpq quotes what it cannot read, and that may be a password; the name of a parameter is not.
  if (!words.starts_with("invalid URI query parameter")) words = "cannot be read";
  PQfreemem(problem);
  PQconninfoFree(parsed);
  if (parsed) return settings;
  return fail_with(ErrorCode::invalid_input, "store URL: " + words.substr(0, words.find('\n')),
                   "Write it as postgres://user@host:port/database?sslmode=… .");
}

}  // namespace flowfabric::store::postgres
