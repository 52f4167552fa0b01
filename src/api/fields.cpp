#include "api/fields.h"

#include <charconv>

#include "flowfabric/operations.h"
#include "model/base64.h"
#include "model/text.h"

namespace flowfabric::api {

namespace {

constexpr std::size_t kMaxKeys = 1000;

}  // namespace

void refuse_shape(std::string detail) {
  throw Refusal{422, "invalid_input", "invalid JSON: Unprocessable Entity", std::move(detail)};
}

void refuse_input(std::string error, std::string advice) {
  throw Refusal{400, "invalid_input", std::move(error), std::move(advice)};
}

void refuse(const Error& error) {
  throw error;
}

Fields::Fields(JsonView object, std::string where) : object_(object), where_(std::move(where)) {
  const auto named_object = [&] { return where_.empty() ? "The body" : where_; };
  if (object_.kind() != JsonView::Kind::object) refuse_shape(named_object() + " must be a JSON object.");
  // Every lookup compares with all keys, so their number is bounded.
  if (object_.size() > kMaxKeys) refuse_shape(named_object() + " has too many keys.");
}

std::string Fields::named(std::string_view key) const {
  return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
}

std::optional<JsonView> Fields::find_any(std::string_view key) const {
  std::optional<JsonView> found;
  for (const auto member : object_) {
    if (member.key() != key) continue;
    if (found) refuse_shape(named(key) + " is there twice.");
    found = member;
  }
  return found;
}

std::optional<JsonView> Fields::find(std::string_view key) const {
  const auto found = find_any(key);
  return found && !found->is_null() ? found : std::nullopt;
}

JsonView Fields::require(std::string_view key) const {
  const auto found = find_any(key);
  if (!found) refuse_shape(named(key) + " is missing.");
  return *found;
}

std::string Fields::as_text(std::string_view key, JsonView value) const {
  if (value.kind() != JsonView::Kind::string) refuse_shape(named(key) + " must be a string.");
  return std::string(value.text());
}

std::string Fields::text_or(std::string_view key, std::string_view otherwise) const {
  const auto value = find(key);
  return value ? as_text(key, *value) : std::string(otherwise);
}

std::optional<std::string> Fields::maybe_text(std::string_view key) const {
  const auto value = find(key);
  return value ? std::optional(as_text(key, *value)) : std::nullopt;
}

std::int64_t Fields::as_int64(std::string_view key, JsonView value, std::int64_t least,
                              std::int64_t most) const {
  const auto number = value.to_int64();
  if (!number || *number < least || *number > most) {
    refuse_shape(named(key) + " must be a whole number in range.");
  }
  return *number;
}

std::uint64_t Fields::as_uint64(std::string_view key, JsonView value, std::uint64_t most) const {
  const auto number = value.to_uint64();
  if (!number || *number > most) refuse_shape(named(key) + " must be a whole number in range, not negative.");
  return *number;
}

bool Fields::flag_or(std::string_view key, bool otherwise) const {
  const auto value = find(key);
  if (!value) return otherwise;
  if (value->kind() != JsonView::Kind::boolean) refuse_shape(named(key) + " must be true or false.");
  return value->boolean();
}

std::string Fields::lane(std::string_view key, std::string_view otherwise) const {
  const auto value = otherwise.empty() ? std::optional(require(key)) : find(key);
  if (!value) return std::string(otherwise);
  auto lane = as_text(key, *value);
  if (!check_lane(lane)) refuse_shape(named(key) + " must be 1 to 64 printable ASCII characters.");
  return lane;
}

std::vector<std::string> Fields::texts(std::string_view key) const {
  std::vector<std::string> all;
  const auto value = find_any(key);
  if (!value) return all;
  if (value->kind() != JsonView::Kind::array) refuse_shape(named(key) + " must be an array of strings.");
  for (const auto item : *value) all.push_back(as_text(key, item));
  return all;
}

std::map<std::string, std::string> Fields::text_map(std::string_view key) const {
  std::map<std::string, std::string> all;
  const auto value = find_any(key);
  if (!value) return all;
  for (const auto item : as_object(key, *value)) {
    all.insert_or_assign(std::string(item.key()), as_text(key, item));
  }
  return all;
}

std::map<std::string, std::string> Fields::tags() const {
  if (const auto given = find_any("tags"); given && given->size() > kMaxTags) {
    refuse_input(named("tags") + ": there are " + std::to_string(given->size()), "Give at most 64 tags.");
  }
  return text_map("tags");
}

JsonView Fields::array(std::string_view key, std::size_t least, std::size_t most) const {
  const auto items = array(key);
  if (items.size() < least || items.size() > most) {
    refuse_input(named(key) + ": give " + std::to_string(least) + " to " + std::to_string(most),
                 "Give fewer in one call.");
  }
  return items;
}

JsonView Fields::array(std::string_view key) const {
  const auto value = require(key);
  if (value.kind() != JsonView::Kind::array) refuse_shape(named(key) + " must be an array.");
  return value;
}

JsonView Fields::as_object(std::string_view key, JsonView value) const {
  if (value.kind() != JsonView::Kind::object) refuse_shape(named(key) + " must be an object.");
  return value;
}

Fields Fields::object(std::string_view key) const {
  return Fields(require(key), named(key));
}

std::optional<Fields> Fields::maybe_object(std::string_view key) const {
  const auto value = find(key);
  return value ? std::optional(Fields(*value, named(key))) : std::nullopt;
}

std::string Fields::byte_array(std::string_view key, JsonView value) const {
  const auto refuse_it = [&] { refuse_shape(named(key) + " must be an array of integers from 0 to 255."); };
  if (value.kind() != JsonView::Kind::array) refuse_it();
  std::string bytes;
  bytes.reserve(value.size());
  for (const auto item : value) {
    const auto number = item.to_uint64();
    if (!number || *number > 255) refuse_it();
    bytes += static_cast<char>(*number);
  }
  return bytes;
}

Fields::Payload Fields::payload(std::string_view name, std::string_view base64_name) const {
  const auto json = find_any(name);
  const auto base64 = find(base64_name);
  if (json && base64) refuse_shape("Give " + named(name) + " or " + named(base64_name) + ", not both.");
  if (base64) {
    auto bytes = from_base64(as_text(base64_name, *base64));
    if (!bytes) refuse_shape(named(base64_name) + " is not base64.");
    return {std::move(bytes), false};
  }
  if (!json) return {};
  // An empty payload is null.
  if (json->is_null()) return {std::string(), true};
  return {json->compact(), true};
}

std::string Fields::to_snake_case(std::string_view word) {
  std::string snake;
  for (const char c : word) {
    if (c >= 'A' && c <= 'Z') {
      if (!snake.empty()) snake += '_';
      snake += static_cast<char>(c - 'A' + 'a');
    } else {
      snake += c;
    }
  }
  return snake;
}

// ---- queries ----------------------------------------------------------------------------------------------

std::optional<std::string> percent_decode_text(std::string_view text, Plus plus) {
  auto decoded = percent_decode(text, plus);
  if (decoded && !is_valid_utf8(*decoded)) return std::nullopt;
  return decoded;
}

Query::Query(std::string_view encoded) {
  while (!encoded.empty()) {
    const auto pair = encoded.substr(0, encoded.find('&'));
    encoded.remove_prefix(std::min(pair.size() + 1, encoded.size()));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    auto name = percent_decode_text(pair.substr(0, equals), Plus::is_space);
    auto value = equals == std::string_view::npos
                     ? std::optional<std::string>("")
                     : percent_decode_text(pair.substr(equals + 1), Plus::is_space);
    if (!name || !value)
      refuse_input("the query string is not valid percent-encoding of UTF-8", kEncodingAdvice);
    parameters_.emplace_back(*std::move(name), *std::move(value));
  }
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::optional<std::string> Query::text(std::string_view name) const {
  auto values = all(name);
  if (values.empty()) return std::nullopt;
  if (values.size() > 1)
    refuse_input("query parameter " + std::string(name) + " is there twice", "Give it once.");
  return std::move(values[0]);
}

std::int64_t Query::number_between(std::string_view name, const std::string& given, std::int64_t least,
                                   std::int64_t most) const {
  std::int64_t number{};
  const auto end = given.data() + given.size();
  const auto [last, error] = std::from_chars(given.data(), end, number);
  if (given.empty() || error != std::errc{} || last != end || number < least || number > most) {
    refuse_input("query parameter " + std::string(name) + " must be a whole number in range",
                 "Give a number from " + std::to_string(least) + " to " + std::to_string(most) + ".");
  }
  return number;
}

}  // namespace flowfabric::api
