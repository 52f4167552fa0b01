#include "api/match.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "api/router.h"

namespace flowfabric::api {

namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const auto slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

// A path of the routes' tables, with its methods.
struct Pattern {
  std::vector<std::string_view> parts;
  std::size_t open{};  // number of segments in braces
  std::vector<const Route*> routes;
  std::string allowed;  // methods, as the header wants them
};

bool is_open(std::string_view part) {
  return part.starts_with('{');
}

bool have_same_shape(const Pattern& one, const Pattern& other) {
  return std::ranges::equal(one.parts, other.parts,
                            [](auto a, auto b) { return a == b || (is_open(a) && is_open(b)); });
}

class Patterns {
 public:
  Patterns() {
    for (const auto& route : routes()) add(route);
    // A pattern with a word in a segment wins over one with braces there.
    std::ranges::stable_sort(all_, {}, &Pattern::open);
    for (const auto& pattern : all_) {
      if (pattern.open == 0) words_.emplace(pattern.routes.front()->pattern, &pattern);
    }
  }

  // Null if no pattern fits. Fills `open` with the segments in place of the braces.
  const Pattern* find(std::string_view path, std::vector<std::string_view>& open) const {
    if (const auto found = words_.find(path); found != words_.end()) return found->second;
    if (!path.starts_with('/')) return nullptr;
    const auto parts = split(path);
    const auto found = std::ranges::find_if(all_, [&](const Pattern& each) { return fits(each, parts); });
    if (found == all_.end()) return nullptr;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (is_open(found->parts[i])) open.push_back(parts[i]);
    }
    return &*found;
  }

 private:
  void add(const Route& route) {
    Pattern pattern{.parts = split(route.pattern)};
    pattern.open = static_cast<std::size_t>(std::ranges::count_if(pattern.parts, is_open));
    auto found =
        std::ranges::find_if(all_, [&](const Pattern& each) { return have_same_shape(each, pattern); });
    if (found == all_.end()) found = all_.insert(all_.end(), std::move(pattern));
    found->routes.push_back(&route);
    if (!found->allowed.empty()) found->allowed += ", ";
    found->allowed += route.method;
    if (route.method == "GET") found->allowed += ", HEAD";
  }

  // Paths are compared undecoded, so `%2F` is never a separator.
  static bool fits(const Pattern& pattern, const std::vector<std::string_view>& parts) {
    return std::ranges::equal(pattern.parts, parts, [](auto wanted, auto part) {
      return is_open(wanted) ? !part.empty() : wanted == part;
    });
  }

  std::vector<Pattern> all_;
  std::unordered_map<std::string_view, const Pattern*> words_;  // patterns without braces
};

}  // namespace

Match match(std::string_view method, std::string_view path) {
  static const Patterns patterns;
  Match found;
  const auto* pattern = patterns.find(path, found.open);
  if (pattern == nullptr) return found;
  const auto wanted = method == "HEAD" ? std::string_view("GET") : method;
  const auto route = std::ranges::find(pattern->routes, wanted, &Route::method);
  if (route != pattern->routes.end()) found.route = *route;
  found.allowed = pattern->allowed;
  found.pattern = found.route ? found.route->pattern : pattern->routes.front()->pattern;
  return found;
}

}  // namespace flowfabric::api
