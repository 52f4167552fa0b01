#include "model/policy_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "model/text.h"

namespace flowfabric {
namespace {

namespace json = boost::json;

constexpr std::string_view kDefaultPolicyJson =
    R"({"priority":0,"max_reclaim_count":100,"max_replay_count":10,"budget_ids":[],)"
    R"("max_signals_per_execution":10000})";
constexpr std::size_t kMaxDepth = 32;

// What the default text decodes to: the cap is always written, so it comes back as given.
ExecutionPolicy decoded_default() {
  ExecutionPolicy policy;
  policy.max_reclaim_count = kDefaultMaxReclaimCount;
  return policy;
}

json::parse_options parse_options() {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  return options;
}

// Most policies fit into the buffer, so that reading one allocates nothing for the document.
struct ParsedJson {
  explicit ParsedJson(std::string_view text)
      : value(json::parse(json::string_view(text.data(), text.size()), failure, &memory, parse_options())) {}

  std::array<unsigned char, 4096> buffer;
  json::monotonic_resource memory{buffer.data(), buffer.size()};
  json::error_code failure;
  json::value value;
};

// ---- the keys of each object, in the order they are written ---------------------------------------------

template <class T, class Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

void each_field(Is<FixedBackoff> auto& backoff, auto f) {
  f("delay_ms", backoff.delay_ms);
}
void each_field(Is<ExponentialBackoff> auto& backoff, auto f) {
  f("initial_delay_ms", backoff.initial_delay_ms);
  f("max_delay_ms", backoff.max_delay_ms);
  f("multiplier", backoff.multiplier);
  f("jitter", backoff.jitter);
}
void each_field(Is<RetryPolicy> auto& retry, auto f) {
  f("max_retries", retry.max_retries);
  f("backoff", retry.backoff);
  f("retryable_categories", retry.retryable_categories);
}
void each_field(Is<TimeoutPolicy> auto& timeout, auto f) {
  f("attempt_timeout_ms", timeout.attempt_timeout_ms);
  f("execution_deadline_ms", timeout.execution_deadline_ms);
  f("max_reclaim_count", timeout.max_reclaim_count);
}
void each_field(Is<SuspensionPolicy> auto& suspension, auto f) {
  f("default_timeout_ms", suspension.default_timeout_ms);
  f("timeout_behavior", suspension.timeout_behavior);
}
void each_field(Is<FallbackTier> auto& tier, auto f) {
  f("provider", tier.provider);
  f("model", tier.model);
  f("timeout_ms", tier.timeout_ms);
}
void each_field(Is<FallbackPolicy> auto& fallback, auto f) {
  f("tiers", fallback.tiers);
}
void each_field(Is<StreamPolicy> auto& stream, auto f) {
  f("durability_mode", stream.durability_mode);
  f("retention_maxlen", stream.retention_maxlen);
  f("retention_ttl_ms", stream.retention_ttl_ms);
}
void each_field(Is<ExecutionPolicy> auto& policy, auto f) {
  f("priority", policy.priority);
  f("delay_until", policy.delay_until);
  f("retry_policy", policy.retry_policy);
  f("timeout_policy", policy.timeout_policy);
  f("max_reclaim_count", policy.max_reclaim_count);
  f("suspension_policy", policy.suspension_policy);
  f("fallback_policy", policy.fallback_policy);
  f("max_replay_count", policy.max_replay_count);
  f("budget_ids", policy.budget_ids);
  f("quota_policy_id", policy.quota_policy_id);
  f("routing_requirements", policy.routing_requirements);
  f("dedup_window_ms", policy.dedup_window_ms);
  f("stream_policy", policy.stream_policy);
  f("max_signals_per_execution", policy.max_signals_per_execution);
}

template <class T>
concept HasFields = requires(T& object) {
  each_field(object, [](auto, auto&) {});
};

// ---- writing -------------------------------------------------------------------------------------------

class Writer {
 public:
  void value(bool flag) { out_ += flag ? "true" : "false"; }
  void value(std::integral auto number) { fmt::format_to(std::back_inserter(out_), "{}", number); }
  void value(double number) {
    std::array<char, 32> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    const std::string_view text(digits.data(), written.ptr);
    out_ += text;
    if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }
  void value(std::string_view text) { out_ += json::serialize(json::string_view(text.data(), text.size())); }
  void value(const std::string& text) { value(std::string_view(text)); }
  template <class Tag>
  void value(const TypedId<Tag>& id) {
    value(id.to_string());
  }
  template <class Item>
  void value(const std::vector<Item>& items) {
    out_ += '[';
    for (const Item& item : items) {
      if (out_.back() != '[') out_ += ',';
      value(item);
    }
    out_ += ']';
  }
  template <class Value>
  void value(const std::map<std::string, Value>& entries) {
    object([&] {
      for (const auto& [key, entry] : entries) member(key, entry);
    });
  }

  void value(const HasFields auto& fields) {
    object([&] { members(fields); });
  }
  void value(const Backoff& backoff) {
    const auto* fixed = std::get_if<FixedBackoff>(&backoff);
    object([&] {
      member("type", fixed != nullptr ? "fixed" : "exponential");
      std::visit([this](const auto& kind) { members(kind); }, backoff);
    });
  }
  void value(const RoutingRequirements& routing) {
    object([&] {
      member("required_capabilities", routing.required_capabilities);
      if (!routing.preferred_locality.empty()) member("preferred_locality", routing.preferred_locality);
      if (!routing.isolation_level.empty()) member("isolation_level", routing.isolation_level);
    });
  }

  std::string take() { return std::move(out_); }

 private:
  template <class Members>
  void object(Members write_members) {
    out_ += '{';
    write_members();
    out_ += '}';
  }
  void members(const HasFields auto& fields) {
    each_field(fields, [this](std::string_view key, const auto& field) { member(key, field); });
  }
  template <class T>
  void member(std::string_view key, const T& field) {
    if (out_.back() != '{') out_ += ',';
    value(key);
    out_ += ':';
    value(field);
  }
  void member(std::string_view key, const char* word) { member(key, std::string_view(word)); }
  template <class T>
  void member(std::string_view key, const std::optional<T>& field) {
    if (field) member(key, *field);
  }

  std::string out_;
};

// ---- reading -------------------------------------------------------------------------------------------

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

// `5.0` is an integer too, as far as doubles are exact.
std::optional<std::int64_t> exact_integer(double number) {
  constexpr double largest_exact = 0x1p53;
  if (std::abs(number) > largest_exact || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

template <std::integral Int>
std::optional<Int> integer_of(const json::value& value) {
  const auto narrowed = [](std::integral auto number) -> std::optional<Int> {
    if (!std::in_range<Int>(number)) return std::nullopt;
    return static_cast<Int>(number);
  };
  if (const auto* number = value.if_int64()) return narrowed(*number);
  if (const auto* number = value.if_uint64()) return narrowed(*number);
  const auto* number = value.if_double();
  const auto exact = number != nullptr ? exact_integer(*number) : std::nullopt;
  return exact ? narrowed(*exact) : std::nullopt;
}

// Reads a document into a policy that starts out as the default. The first thing refused is kept, with the
// path of its key; reading goes on harmlessly.
class Reader {
 public:
  void read(const json::value& value, HasFields auto& fields) {
    if (const json::object* from = as_object(value)) members(*from, fields);
  }

  std::optional<Error>& error() { return error_; }

 private:
  void read(const json::value& value, Backoff& backoff) {
    const json::object* from = as_object(value);
    if (from == nullptr) return;
    std::string type;
    member(*from, "type", type);
    if (type == "exponential") {
      members(*from, backoff.emplace<ExponentialBackoff>());
    } else {
      auto& fixed = backoff.emplace<FixedBackoff>();
      if (type == "fixed") members(*from, fixed);
    }
  }
  void read(const json::value& value, FallbackTier& tier) {
    const json::object* from = as_object(value);
    if (from == nullptr) return;
    members(*from, tier);
    for (const std::string_view key : {"provider", "model"}) {
      if (find(*from, key) == nullptr) within(fmt::format(".{}", key), [&] { expect("a string"); });
    }
  }
  void read(const json::value& value, RoutingRequirements& routing) {
    const json::object* from = value.if_object();
    if (from == nullptr) {
      return refuse(ErrorCode::invalid_policy_json, "routing_requirements:not_object",
                    "`routing_requirements` must be an object.");
    }
    if (const json::value* tokens = find(*from, "required_capabilities")) {
      read_capabilities(*tokens, routing.required_capabilities);
    }
    member(*from, "preferred_locality", routing.preferred_locality);
    member(*from, "isolation_level", routing.isolation_level);
  }
  void read_capabilities(const json::value& value, std::vector<std::string>& capabilities) {
    constexpr const char* advice =
        "`routing_requirements.required_capabilities` must be an array of strings.";
    const json::array* tokens = value.if_array();
    if (tokens == nullptr) return refuse(ErrorCode::invalid_capabilities, "required:not_array", advice);
    for (const json::value& token : *tokens) {
      if (!token.is_string()) {
        return refuse(ErrorCode::invalid_capabilities, "required:non_string_token", advice);
      }
      capabilities.emplace_back(view(token.get_string()));
    }
    if (auto normal = normalize_capabilities("required", std::move(capabilities))) {
      capabilities = std::move(*normal);
    } else if (!error_) {
      error_ = std::move(normal.error());
    }
  }

  template <std::integral Int>
  void read(const json::value& value, Int& number) {
    using Limits = std::numeric_limits<Int>;
    if (const auto exact = integer_of<Int>(value)) {
      number = *exact;
    } else {
      expect(fmt::format("an integer from {} to {}", Limits::min(), Limits::max()));
    }
  }
  void read(const json::value& value, double& number) {
    json::error_code failure;
    number = value.to_number<double>(failure);
    if (failure) expect("a number");
  }
  void read(const json::value& value, bool& flag) {
    if (!value.is_bool()) return expect("true or false");
    flag = value.get_bool();
  }
  void read(const json::value& value, std::string& text) {
    if (!value.is_string()) return expect("a string");
    text = view(value.get_string());
  }
  template <class Tag>
  void read(const json::value& value, TypedId<Tag>& id) {
    const json::string* text = value.if_string();
    const auto parsed = text != nullptr ? TypedId<Tag>::parse(view(*text)) : std::nullopt;
    if (!parsed) return expect("a UUID");
    id = *parsed;
  }
  template <class Item>
  void read(const json::value& value, std::vector<Item>& items) {
    const json::array* from = value.if_array();
    if (from == nullptr) return expect("an array");
    for (std::size_t i = 0; i < from->size(); ++i) {
      within(fmt::format("[{}]", i), [&] { read((*from)[i], items.emplace_back()); });
    }
  }

  // Null counts as absent.
  static const json::value* find(const json::object& from, std::string_view key) {
    const json::value* value = from.if_contains(json::string_view(key.data(), key.size()));
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  void members(const json::object& from, HasFields auto& fields) {
    each_field(fields, [&](std::string_view key, auto& field) { member(from, key, field); });
  }
  template <class T>
  void member(const json::object& from, std::string_view key, T& field) {
    if (const json::value* value = find(from, key)) {
      within(fmt::format("{}{}", path_.empty() ? "" : ".", key), [&] { read(*value, field); });
    }
  }
  template <class T>
  void member(const json::object& from, std::string_view key, std::optional<T>& field) {
    if (find(from, key) != nullptr) member(from, key, field.emplace());
  }
  const json::object* as_object(const json::value& value) {
    const json::object* object = value.if_object();
    if (object == nullptr) expect("an object");
    return object;
  }

  template <class Reading>
  void within(std::string_view step, Reading reading) {
    const std::size_t outer = path_.size();
    path_ += step;
    reading();
    path_.resize(outer);
  }
  void expect(std::string_view what) {
    const std::string subject = path_.empty() ? "The policy" : fmt::format("`{}`", path_);
    refuse(ErrorCode::invalid_policy_json, "malformed", fmt::format("{} must be {}.", subject, what));
  }
  void refuse(ErrorCode code, std::string detail, std::string advice) {
    if (!error_) error_ = Error{code, std::move(detail), std::move(advice)};
  }

  std::string path_;
  std::optional<Error> error_;
};

// Readers of the text need not know where the cap comes from; sets are in ascending order.
ExecutionPolicy canonical(ExecutionPolicy policy) {
  policy.max_reclaim_count = policy.reclaim_cap();
  if (policy.routing_requirements) {
    auto& tokens = policy.routing_requirements->required_capabilities;
    std::ranges::sort(tokens);
    tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  }
  return policy;
}

std::unexpected<Error> unreadable_tags(std::string advice) {
  return fail_with(ErrorCode::corruption, "tags", std::move(advice));
}

}  // namespace

std::string to_json(const ExecutionPolicy& policy) {
  static const ExecutionPolicy unset;
  static const ExecutionPolicy decoded = decoded_default();
  if (policy == unset || policy == decoded) return std::string(kDefaultPolicyJson);
  Writer writer;
  writer.value(canonical(policy));
  return writer.take();
}

Result<ExecutionPolicy> policy_from_json(std::string_view text) {
  if (text == kDefaultPolicyJson) return decoded_default();
  const ParsedJson parsed(text);
  if (parsed.failure) {
    return fail_with(ErrorCode::invalid_policy_json, "malformed",
                     fmt::format("The policy is not valid JSON: {}.", parsed.failure.message()));
  }
  ExecutionPolicy policy;
  Reader reader;
  reader.read(parsed.value, policy);
  if (reader.error()) return std::unexpected(std::move(*reader.error()));
  if (auto checked = validate(policy); !checked) return std::unexpected(std::move(checked.error()));
  return policy;
}

std::string to_json(const Tags& tags) {
  if (tags.empty()) return "";
  Writer writer;
  writer.value(tags);
  return writer.take();
}

Result<Tags> tags_from_json(std::string_view text) {
  if (text.empty()) return Tags{};
  const ParsedJson parsed(text);
  if (parsed.failure) {
    return unreadable_tags(fmt::format("Tags are not valid JSON: {}.", parsed.failure.message()));
  }
  const json::object* object = parsed.value.if_object();
  if (object == nullptr) return unreadable_tags("Tags must be a JSON object of strings.");
  Tags tags;
  for (const auto& [key, value] : *object) {
    if (!value.is_string()) return unreadable_tags("Every tag's value must be a string.");
    tags.emplace(std::string_view(key.data(), key.size()), view(value.get_string()));
  }
  return tags;
}

std::string to_json(const std::vector<std::string>& strings) {
  if (strings.empty()) return "";
  Writer writer;
  writer.value(strings);
  return writer.take();
}

Result<std::vector<std::string>> strings_from_json(std::string_view text) {
  std::vector<std::string> strings;
  if (text.empty()) return strings;
  const ParsedJson parsed(text);
  const json::array* array = parsed.failure ? nullptr : parsed.value.if_array();
  const auto refused = fail_with(ErrorCode::corruption, "list", "Not a JSON array of strings.");
  if (array == nullptr) return refused;
  for (const auto& value : *array) {
    if (!value.is_string()) return refused;
    strings.emplace_back(view(value.get_string()));
  }
  return strings;
}

std::string to_json(const Amounts& amounts) {
  if (amounts.empty()) return "";
  Writer writer;
  writer.value(amounts);
  return writer.take();
}

Result<Amounts> amounts_from_json(std::string_view text) {
  Amounts amounts;
  if (text.empty()) return amounts;
  const ParsedJson parsed(text);
  const json::object* object = parsed.failure ? nullptr : parsed.value.if_object();
  const auto refused = fail_with(ErrorCode::corruption, "amounts", "Not a JSON object of whole numbers.");
  if (object == nullptr) return refused;
  for (const auto& [key, value] : *object) {
    boost::system::error_code failure;
    const auto amount = value.to_number<std::uint64_t>(failure);
    if (failure) return refused;
    amounts.emplace(std::string_view(key.data(), key.size()), amount);
  }
  return amounts;
}

}  // namespace flowfabric
