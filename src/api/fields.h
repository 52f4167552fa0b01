// Readers of requests: the keys of a JSON object and the parameters of a query, with the specification's
// rules about missing, null and repeated ones. Input that does not fit is thrown as a Refusal, which the
// router turns into an answer (errors.h); nothing has changed by then.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "flowfabric/error.h"
#include "flowfabric/ids.h"
#include "model/describe.h"
#include "model/encoding.h"

namespace flowfabric::api {

struct Refusal {
  int status{400};
  std::string code{"invalid_input"};
  std::string error;   // the words of the specification
  std::string detail;  // a sentence for people
  std::optional<bool> retryable{};
};

// 422: well-formed JSON of the wrong shape.
[[noreturn]] void refuse_shape(std::string detail);
// 400: the right shape with a value that is not allowed; `advice` says what to do.
[[noreturn]] void refuse_input(std::string error, std::string advice);
// Advice that several refusals share.
inline constexpr const char* kIdAdvice =
    "Give the id as it was answered: {fp:N}:<uuid> for an execution, a UUID for anything else.";
inline constexpr const char* kPathAdvice = "Leave it out of the body, or give the one of the path.";
inline constexpr const char* kEncodingAdvice = "Write what is no plain character as %XX, byte by byte.";
inline constexpr const char* kCursorAdvice = "Give the next_cursor of the page before, or none to begin.";
inline constexpr const char* kOrderAdvice = "Give one of them, or none for the newest first.";
inline constexpr const char* kTagAdvice = "Give the tag as key=value, percent-encoded.";
// 400, or the error's own status.
[[noreturn]] void refuse(const Error& error);

template <class T>
T unwrap(Result<T> result) {
  if (!result) throw result.error();
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// The keys of one object. Unknown keys are ignored; a known key may occur once.
class Fields {
 public:
  // `where` names the object in errors: `reports[3].lease`; empty: the body itself.
  explicit Fields(JsonView object, std::string where = "");

  // Null counts as absent.
  std::optional<JsonView> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }
  // Null is a value here.
  std::optional<JsonView> find_any(std::string_view key) const;
  JsonView require(std::string_view key) const;

  std::string text(std::string_view key) const { return as_text(key, require(key)); }
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::optional<std::string> maybe_text(std::string_view key) const;

  template <class Number>
  Number number(std::string_view key) const {
    return as_number<Number>(key, require(key));
  }
  template <class Number>
  std::optional<Number> maybe_number(std::string_view key) const {
    const auto value = find(key);
    return value ? std::optional(as_number<Number>(key, *value)) : std::nullopt;
  }
  template <class Number>
  Number number_or(std::string_view key, Number otherwise) const {
    return maybe_number<Number>(key).value_or(otherwise);
  }
  bool flag_or(std::string_view key, bool otherwise) const;

  // A bad id in a body is a wrong shape; in a path it is bad input.
  template <class Id>
  Id id(std::string_view key) const {
    return as_id<Id>(key, require(key));
  }
  template <class Id>
  std::optional<Id> maybe_id(std::string_view key) const {
    const auto value = find(key);
    return value ? std::optional(as_id<Id>(key, *value)) : std::nullopt;
  }
  std::string lane(std::string_view key, std::string_view otherwise = "") const;

  // One of the enum's words, in snake_case or PascalCase.
  template <class Enum>
  std::optional<Enum> maybe_word(std::string_view key) const {
    const auto value = find(key);
    if (!value) return std::nullopt;
    const auto found = enum_from_name<Enum>(to_snake_case(as_text(key, *value)));
    if (!found) refuse_shape(named(key) + " is none of the words it may be.");
    return found;
  }

  // May be absent, but not null.
  std::vector<std::string> texts(std::string_view key) const;
  std::map<std::string, std::string> text_map(std::string_view key) const;
  // At most kMaxTags, which is checked first: 400.
  std::map<std::string, std::string> tags() const;
  template <class Number>
  std::vector<Number> numbers(std::string_view key) const {
    std::vector<Number> all;
    for (const auto item : array(key)) all.push_back(as_number<Number>(key, item));
    return all;
  }
  template <class Number>
  std::map<std::string, Number> number_map(std::string_view key) const {
    std::map<std::string, Number> all;
    if (const auto value = find_any(key)) {
      for (const auto item : as_object(key, *value)) {
        const bool is_new = all.emplace(item.key(), as_number<Number>(key, item)).second;
        if (!is_new) refuse_shape(named(key) + " has a key that is there twice.");
      }
    }
    return all;
  }

  JsonView array(std::string_view key) const;  // required
  // The same, with between `least` and `most` items; other counts are 400.
  JsonView array(std::string_view key, std::size_t least, std::size_t most) const;
  JsonView as_object(std::string_view key, JsonView value) const;
  Fields object(std::string_view key) const;  // required
  std::optional<Fields> maybe_object(std::string_view key) const;

  // An array of integers 0–255.
  std::string byte_array(std::string_view key, JsonView value) const;
  // Bytes given as `<name>` (any JSON, kept as written except for spaces) or `<name>_base64`; empty: neither.
  struct Payload {
    std::optional<std::string> bytes{};
    bool is_json{false};
  };
  Payload payload(std::string_view name, std::string_view base64_name) const;

  std::string named(std::string_view key) const;  // the key with its place in the request
  const std::string& where() const { return where_; }

  static std::string to_snake_case(std::string_view word);

 private:
  std::string as_text(std::string_view key, JsonView value) const;
  std::int64_t as_int64(std::string_view key, JsonView value, std::int64_t least, std::int64_t most) const;
  std::uint64_t as_uint64(std::string_view key, JsonView value, std::uint64_t most) const;

  template <class Number>
  Number as_number(std::string_view key, JsonView value) const {
    using Limits = std::numeric_limits<Number>;
    if constexpr (std::is_signed_v<Number>)
      return static_cast<Number>(as_int64(key, value, Limits::min(), Limits::max()));
    else
      return static_cast<Number>(as_uint64(key, value, Limits::max()));
  }
  template <class Id>
  Id as_id(std::string_view key, JsonView value) const {
    const auto found = Id::parse(as_text(key, value));
    if (!found) refuse_shape(named(key) + " is not a valid id.");
    return *found;
  }

  JsonView object_;
  std::string where_;
};

// The parameters of a query string. A route must ask for every parameter it knows; the others are ignored.
class Query {
 public:
  Query() = default;
  // Refuses invalid percent-encoding and UTF-8.
  explicit Query(std::string_view encoded);

  std::optional<std::string> text(std::string_view name) const;  // refuses a repeated parameter
  std::vector<std::string> all(std::string_view name) const;
  bool has(std::string_view name) const { return !all(name).empty(); }

  template <class Number>
  std::optional<Number> number(std::string_view name) const {
    const auto given = text(name);
    if (!given) return std::nullopt;
    return static_cast<Number>(
        parse_number(name, *given, std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()));
  }
  template <class Id>
  std::optional<Id> id(std::string_view name) const {
    const auto given = text(name);
    if (!given || given->empty()) return std::nullopt;
    const auto found = Id::parse(*given);
    if (!found) refuse_input("query parameter " + std::string(name) + " is not a valid id", kIdAdvice);
    return found;
  }
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

 private:
  template <class Least, class Most>
  std::int64_t parse_number(std::string_view name, const std::string& given, Least least, Most most) const {
    constexpr auto highest = std::numeric_limits<std::int64_t>::max();
    const auto upper = std::cmp_greater(most, highest) ? highest : static_cast<std::int64_t>(most);
    return number_between(name, given, static_cast<std::int64_t>(least), upper);
  }
  std::int64_t number_between(std::string_view name, const std::string& given, std::int64_t least,
                              std::int64_t most) const;

  std::vector<std::pair<std::string, std::string>> parameters_;
};

// Absent if the text is not valid percent-encoding, or not valid UTF-8.
std::optional<std::string> percent_decode_text(std::string_view text, Plus plus = Plus::is_plus);

// An id in a path.
template <class Id>
Id path_id(std::string_view what, const std::string& text) {
  const auto found = Id::parse(text);
  if (!found) refuse_input("invalid " + std::string(what) + ": not an id", kIdAdvice);
  return *found;
}

}  // namespace flowfabric::api
