#include "cli/arguments.h"

#include <fmt/core.h>

#include <charconv>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/output.h"
#include "flowfabric/ids.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kTimes =
    "Give a time as 2026-11-16T21:00:00Z, in milliseconds since 1970, or as 2h for that long ago.";

std::string content_of(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail_usage(path + ": cannot be read", "Give the path of a file, or - for standard input.");
  return content;
}

std::string checked_json(const std::string& where, std::string text, const std::string& advice) {
  if (const auto parsed = api::Json::parse(text); !parsed) {
    fail_usage(where + " is not JSON: " + parsed.error(), advice);
  }
  return text;
}

std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t number{};
  const auto* end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, number);
  return !digits.empty() && error == std::errc{} && last == end ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> duration(std::string_view given) {
  const auto end = given.find_first_not_of("0123456789");
  const auto number = whole_number(given.substr(0, end));
  const auto unit = end == std::string_view::npos ? "s" : given.substr(end);
  static const std::map<std::string_view, std::int64_t> units{
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const auto known = units.find(unit);
  // A hundred years are enough, and their milliseconds fit.
  if (!number || known == units.end() || *number > 36'500 * (86'400'000 / known->second)) return std::nullopt;
  return *number * known->second;
}

std::optional<std::int64_t> calendar_time(const std::string& given) {
  std::tm parts{};
  const auto* end = strptime(given.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!end) end = strptime(given.c_str(), "%Y-%m-%d", &parts);
  if (!end || (*end != '\0' && std::string_view(end) != "Z")) return std::nullopt;
  return static_cast<std::int64_t>(timegm(&parts)) * 1000;
}

}  // namespace

std::string json_argument(const std::string& name, const std::string& given) {
  if (given == "-" || given.starts_with('@')) {
    const auto path = given == "-" ? given : given.substr(1);
    return checked_json(path == "-" ? "standard input" : path, content_of(path),
                        "Give a file that holds one JSON value.");
  }
  return checked_json(
      name, given, "Give JSON in quotes, such as '{\"n\":1}' or '\"text\"', @FILE, or - for standard input.");
}

std::string json_file(const std::string& path) {
  return checked_json(path == "-" ? "standard input" : path, content_of(path),
                      "Give a file that holds one JSON value.");
}

std::string text_argument(const std::string& given) {
  if (!given.starts_with('@')) return given;
  auto text = content_of(given.substr(1));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

std::int64_t duration_argument(const std::string& name, const std::string& given) {
  if (const auto ms = duration(given)) return *ms;
  fail_usage(name + " " + given, "Give a time such as 500ms, 30s, 5m, 2h or 7d.");
}

std::int64_t time_argument(const std::string& name, const std::string& given) {
  constexpr std::size_t digits_of_ms = 12;
  if (given.size() >= digits_of_ms) {
    if (const auto ms = whole_number(given)) return *ms;
  }
  if (const auto ms = duration(given)) return now_ms() - *ms;
  if (const auto ms = calendar_time(given)) return *ms;
  fail_usage(name + " " + given, kTimes);
}

std::map<std::string, std::string> tags_argument(const std::vector<std::string>& given) {
  std::map<std::string, std::string> tags;
  for (const auto& tag : given) {
    const auto equals = tag.find('=');
    if (equals == std::string::npos) fail_usage("--tag " + tag, "Give the tag as key=value.");
    tags.insert_or_assign(tag.substr(0, equals), tag.substr(equals + 1));
  }
  return tags;
}

std::string execution_argument(const std::string& given) {
  if (const auto id = ExecutionId::parse(given)) return id->to_string();
  fail_input(given, "Give the id of an execution: {fp:N}:<uuid>, in quotes.");
}

std::string uuid_argument(const std::string& what, const std::string& given) {
  if (const auto id = FlowId::parse(given)) return id->to_string();
  fail_input(given, "Give the id of a " + what + ": a UUID.");
}

std::string execution_path(const std::string& id, const std::string& rest) {
  return "/v1/executions/" + segment(execution_argument(id)) + rest;
}

Parameters FilterOptions::words() const {
  Parameters words;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) words.emplace_back(name, *value);
  };
  add("lane", lane);
  for (const auto& state : states) words.emplace_back("state", state);
  add("namespace", name_space);
  add("kind", kind);
  add("flow", flow);
  tags_argument(tags);
  for (const auto& tag : tags) words.emplace_back("tag", tag);
  if (created_after) {
    words.emplace_back("created_after", std::to_string(time_argument("--created-after", *created_after)));
  }
  if (created_before) {
    words.emplace_back("created_before", std::to_string(time_argument("--created-before", *created_before)));
  }
  return words;
}

Option add_list(Command& command, const std::string& name, std::vector<std::string>& values,
                const std::string& help) {
  return command.add_option(name, values, help).one_at_a_time();
}

void add_filter_options(Command& command, FilterOptions& filter) {
  const auto group = [](Option option) { option.group("Filter"); };
  group(command.add_option("--lane", filter.lane, "Of this lane"));
  group(add_list(command, "--state", filter.states,
                 "In one of these states: waiting, delayed, rate_limited, waiting_children, active, "
                 "suspended, completed, failed, cancelled, expired, skipped"));
  group(command.add_option("--namespace", filter.name_space, "Of this namespace"));
  group(command.add_option("--kind", filter.kind, "Of this kind"));
  group(command.add_option("--flow", filter.flow, "Members of this flow"));
  group(add_list(command, "--tag", filter.tags, "With this tag, key=value; may be repeated"));
  group(command.add_option("--created-after", filter.created_after,
                           "Submitted after 2026-11-16T21:00:00Z, or after 2h ago: 2h"));
  group(command.add_option("--created-before", filter.created_before, "Submitted before that time"));
}

}  // namespace flowfabric::cli
