#include "model/merge_patch.h"

#include <boost/json.hpp>

namespace flowfabric {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 16;  // below the root
constexpr std::string_view kNull = "__ff_null__";

std::unexpected<Error> refuse(std::string detail, std::string advice) {
  return fail_with(ErrorCode::invalid_input, std::move(detail), std::move(advice));
}

// How many levels of objects and arrays are below this one.
std::size_t depth_of(const json::value& value) {
  std::size_t deepest = 0;
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (member.value().is_structured()) deepest = std::max(deepest, 1 + depth_of(member.value()));
    }
  } else if (const auto* array = value.if_array()) {
    for (const auto& item : *array) {
      if (item.is_structured()) deepest = std::max(deepest, 1 + depth_of(item));
    }
  }
  return deepest;
}

void merge(json::object& target, const json::object& patch) {
  for (const auto& member : patch) {
    if (member.value().is_null()) {
      target.erase(member.key());
      continue;
    }
    auto& value = target[member.key()];
    if (const auto* inner = member.value().if_object()) {
      if (!value.is_object()) value = json::object();
      merge(value.as_object(), *inner);
    } else {
      value = member.value();
    }
  }
}

void put_nulls(json::value& value) {
  if (const auto* text = value.if_string()) {
    if (std::string_view(*text) == kNull) value = nullptr;
  } else if (auto* object = value.if_object()) {
    for (auto& member : *object) put_nulls(member.value());
  } else if (auto* array = value.if_array()) {
    for (auto& item : *array) put_nulls(item);
  }
}

}  // namespace

Result<std::string> merge_patch(std::string_view document, std::string_view patch) {
  // The parser gives up on its own a little deeper, so that no input can use up the stack.
  json::parse_options options;
  options.max_depth = kMaxDepth + 2;
  json::error_code failed;
  const auto change = json::parse(patch, failed, {}, options);
  if (failed == json::error::too_deep || (!failed && depth_of(change) > kMaxDepth)) {
    return refuse("patch_depth_exceeded", "Nest a merge patch at most 16 levels deep.");
  }
  if (failed) return refuse("summary payload: " + failed.message(), "A summary frame is a JSON merge patch.");
  if (!change.is_object()) {
    return refuse("summary payload: not an object", "A merge patch is a JSON object at its root.");
  }
  json::parse_options any_depth;
  any_depth.max_depth = 1024;
  auto current = json::parse(document, failed, {}, any_depth);
  if (failed || !current.is_object()) {
    return fail_with(ErrorCode::corruption, "summary document", "The stored summary is no JSON object.");
  }
  merge(current.as_object(), change.as_object());
  put_nulls(current);
  return json::serialize(current);
}

}  // namespace flowfabric
