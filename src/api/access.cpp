#include "api/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "model/encoding.h"

namespace flowfabric::api {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

// `[::1]:9090` is `::1`, `localhost.:80` is `localhost`.
std::string name_of_host(std::string_view host) {
  auto name = lower_case(host.starts_with('[') ? host.substr(1, host.find(']') - 1)
                                               : host.substr(0, host.rfind(':')));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_loopback_ipv4(const std::string& name) {
  in_addr address{};
  return inet_pton(AF_INET, name.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// True if this server served the page.
bool is_own(const std::string& origin, const http::Request& head) {
  const auto scheme_end = origin.find("://");
  const auto* host = head.header("host");
  return scheme_end != origin.npos && host && lower_case(origin.substr(scheme_end + 3)) == lower_case(*host);
}

// True for a followed link, whose answer the linking page cannot see. (Frames and objects would show the page
// whether there is an answer, and whether it is an error.)
bool is_navigation(const http::Request& head) {
  const auto says = [&](std::string_view name, std::string_view value) {
    const auto* given = head.header(name);
    return given && *given == value;
  };
  return head.method == "GET" && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document");
}

// True if the answer may be empty (204) or a download. The window then stays as it was, and the page that
// opened it can see that.
bool may_leave_window_empty(const http::Request& head) {
  return head.path.ends_with("/wait") || head.path.ends_with("/result");
}

bool says_foreign_site(const http::Request& head) {
  const auto* site = head.header("sec-fetch-site");
  return site && (*site == "cross-site" || *site == "same-site");
}

bool comes_from_elsewhere(const http::Request& head, const std::vector<std::string>& origins) {
  const auto* origin = head.header("origin");
  if (origin) return !is_own(*origin, head) && !is_listed(origins, *origin);
  return says_foreign_site(head) && (!is_navigation(head) || may_leave_window_empty(head));
}

}  // namespace

void Token::set(std::string value) {
  auto next = std::make_shared<const std::string>(std::move(value));
  std::lock_guard lock(mutex_);
  value_ = std::move(next);
}

std::shared_ptr<const std::string> Token::current() const {
  std::lock_guard lock(mutex_);
  return value_;
}

bool Token::is_in(const http::Request& head) const {
  constexpr std::string_view scheme = "Bearer ";
  const auto* header = head.header("authorization");
  if (!header || !header->starts_with(scheme)) return false;
  const auto given = std::string_view(*header).substr(scheme.size());
  const auto wanted = current();
  return equal_in_constant_time(given, *wanted);
}

bool is_listed(const std::vector<std::string>& origins, const std::string& origin) {
  return std::ranges::any_of(origins, [&](const auto& listed) { return listed == "*" || listed == origin; });
}

bool is_sent_across_origins(const http::Request& head, const std::vector<std::string>& origins) {
  const auto* origin = head.header("origin");
  return says_foreign_site(head) && !(origin && is_listed(origins, *origin));
}

bool is_loopback_host(std::string_view host) {
  const auto name = name_of_host(host);
  return name == "localhost" || name.ends_with(".localhost") || name == "::1" || is_loopback_ipv4(name);
}

std::optional<std::string> refuse_foreign_page(const http::Request& head, const PageRules& rules) {
  const auto* host = head.header("host");
  if (rules.loopback_names_only && host && !is_loopback_host(*host)) {
    return "Without a token this server answers to localhost and loopback addresses only. Give it a token "
           "(FF_API_TOKEN), or start it with --allow-anonymous.";
  }
  if (comes_from_elsewhere(head, rules.origins)) {
    return "A page of another origin may not call this server. List its origin in cors_origins "
           "(FF_CORS_ORIGINS).";
  }
  return std::nullopt;
}

}  // namespace flowfabric::api
