#include "model/condition_json.h"

#include <boost/json.hpp>
#include <limits>

#include "model/describe.h"

namespace flowfabric {

namespace {

namespace json = boost::json;

// Deeper than any condition may be, and shallow enough to be walked.
constexpr std::size_t kMaxDepth = 32;

// ---- words: DistinctSources here, distinct_sources in the code ----

std::string pascal(std::string_view snake) {
  std::string word;
  bool upper = true;
  for (const char c : snake) {
    if (c != '_') word += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return word;
}

std::string snake(std::string_view word) {
  std::string text;
  for (const char c : word) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !text.empty()) text += '_';
    text += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

// ---- writing ----

json::value written(const ResumeCondition& condition);

json::value written(const SignalMatcher& matcher) {
  if (!matcher.name) return "Wildcard";
  return json::object{{"ByName", *matcher.name}};
}
json::value written(const SingleSignal& node) {
  return json::object{
      {"Single", json::object{{"waitpoint_key", node.waitpoint_key}, {"matcher", written(node.matcher)}}}};
}
json::value written(const OperatorOnly&) {
  return "OperatorOnly";
}
json::value written(const TimeoutOnly&) {
  return "TimeoutOnly";
}
json::value written(const AllOf& node) {
  json::array members;
  for (const auto& member : node.members) members.push_back(written(member));
  return json::object{{"Composite", json::object{{"kind", "AllOf"}, {"members", std::move(members)}}}};
}
json::value written(const CountOf& node) {
  json::object body{{"kind", "Count"}, {"n", node.n}, {"count_kind", pascal(enum_name(node.count_kind))}};
  if (node.matcher.name) body["matcher"] = written(node.matcher);
  body["waitpoints"] = json::array(node.waitpoints.begin(), node.waitpoints.end());
  return json::object{{"Composite", std::move(body)}};
}
json::value written(const ResumeCondition& condition) {
  return std::visit([](const auto& node) { return written(node); }, condition.node);
}

// ---- reading ----

std::unexpected<Error> malformed(const std::string& what) {
  return fail_with(ErrorCode::invalid_input, "resume_condition: " + what,
                   "Give a Single, OperatorOnly, TimeoutOnly or Composite condition.");
}

const json::value* find(const json::object& object, std::string_view key) {
  return object.if_contains(key);
}

Result<std::string> read_text(const json::object& object, std::string_view key) {
  const auto* value = find(object, key);
  const auto* text = value ? value->if_string() : nullptr;
  if (!text) return malformed(std::string(key) + " is not a text");
  return std::string(*text);
}

// {"ByName":"x"}, "Wildcard", or nothing at all.
Result<SignalMatcher> read_matcher(const json::object& object) {
  const auto* value = find(object, "matcher");
  if (!value || value->is_null()) return SignalMatcher{};
  if (const auto* word = value->if_string(); word && snake(*word) == "wildcard") return SignalMatcher{};
  const auto* named = value->if_object();
  if (!named || named->size() != 1 || snake(named->begin()->key()) != "by_name" ||
      !named->begin()->value().is_string()) {
    return malformed("unknown matcher");
  }
  return SignalMatcher{std::string(named->begin()->value().get_string())};
}

Result<ResumeCondition> read_condition(const json::value& value);

Result<ResumeCondition> read_single(const json::object& body) {
  auto key = read_text(body, "waitpoint_key");
  if (!key) return std::unexpected(key.error());
  auto matcher = read_matcher(body);
  if (!matcher) return std::unexpected(matcher.error());
  return ResumeCondition{SingleSignal{*std::move(key), *std::move(matcher)}};
}

Result<ResumeCondition> read_all_of(const json::object& body) {
  const auto* members = find(body, "members");
  if (!members || !members->is_array()) return malformed("members is not an array");
  AllOf node;
  for (const auto& each : members->get_array()) {
    auto member = read_condition(each);
    if (!member) return member;
    node.members.push_back(*std::move(member));
  }
  return ResumeCondition{std::move(node)};
}

Result<ResumeCondition> read_count(const json::object& body) {
  CountOf node;
  const auto* n = find(body, "n");
  const auto* number = n ? n->if_int64() : nullptr;
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
    return malformed("n is not a number of signals");
  }
  node.n = static_cast<std::uint32_t>(*number);
  const auto kind = read_text(body, "count_kind");
  if (!kind) return std::unexpected(kind.error());
  const auto known = enum_from_name<CountKind>(snake(*kind));
  if (!known) return malformed("unknown count_kind");
  node.count_kind = *known;
  auto matcher = read_matcher(body);
  if (!matcher) return std::unexpected(matcher.error());
  node.matcher = *std::move(matcher);
  const auto* waitpoints = find(body, "waitpoints");
  if (!waitpoints || !waitpoints->is_array()) return malformed("waitpoints is not an array");
  for (const auto& key : waitpoints->get_array()) {
    if (!key.is_string()) return malformed("a waitpoint is not a text");
    node.waitpoints.emplace_back(key.get_string());
  }
  return ResumeCondition{std::move(node)};
}

Result<ResumeCondition> read_composite(const json::object& body) {
  const auto kind = read_text(body, "kind");
  if (!kind) return std::unexpected(kind.error());
  const auto word = snake(*kind);
  if (word == "all_of") return read_all_of(body);
  if (word == "count") return read_count(body);
  return malformed("unknown kind");
}

Result<ResumeCondition> read_condition(const json::value& value) {
  if (const auto* word = value.if_string()) {
    const auto name = snake(*word);
    if (name == "operator_only") return ResumeCondition{OperatorOnly{}};
    if (name == "timeout_only") return ResumeCondition{TimeoutOnly{}};
    return malformed("unknown condition");
  }
  const auto* object = value.if_object();
  if (!object || object->size() != 1 || !object->begin()->value().is_object()) {
    return malformed("unknown condition");
  }
  const auto name = snake(object->begin()->key());
  const auto& body = object->begin()->value().get_object();
  if (name == "single") return read_single(body);
  if (name == "composite") return read_composite(body);
  return malformed("unknown condition");
}

}  // namespace

std::string to_json(const ResumeCondition& condition) {
  return json::serialize(written(condition));
}

Result<ResumeCondition> condition_from_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code failure;
  const auto value = json::parse(text, failure, {}, options);
  if (failure) return malformed("not JSON: " + failure.message());
  return read_condition(value);
}

}  // namespace flowfabric
