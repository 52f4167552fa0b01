#include "api/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>

namespace flowfabric::api {

// The parser's handler. The parser passes the text of numbers and strings in parts.
struct JsonBuilder {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  using Error = boost::json::error_code;
  using Text = boost::json::string_view;

  Json json{};
  std::vector<std::uint32_t> open{};
  std::uint32_t key{0};
  std::uint32_t key_length{0};
  std::uint32_t part_begin{0};
  bool in_part{false};
  std::size_t max_values{0};

  std::uint32_t size() const { return static_cast<std::uint32_t>(json.texts_.size()); }

  // Returns false if there are too many values, which ends the parsing.
  bool add(Error& error, JsonView::Kind kind, std::uint32_t text = 0, std::uint32_t length = 0,
           bool boolean = false) {
    if (json.nodes_.size() >= max_values) {
      error = boost::json::error::array_too_large;
      return false;
    }
    if (!open.empty()) ++json.nodes_[open.back()].count;
    const auto next = static_cast<std::uint32_t>(json.nodes_.size() + 1);
    json.nodes_.push_back({kind, boolean, text, length, key, key_length, next, 0});
    key_length = 0;
    return true;
  }
  bool begin(Error& error, JsonView::Kind kind) {
    if (!add(error, kind)) return false;
    open.push_back(static_cast<std::uint32_t>(json.nodes_.size() - 1));
    return true;
  }
  bool close() {
    json.nodes_[open.back()].next = static_cast<std::uint32_t>(json.nodes_.size());
    open.pop_back();
    return true;
  }
  void part(Text text) {
    if (!in_part) part_begin = size();
    in_part = true;
    json.texts_.append(text.data(), text.size());
  }
  std::uint32_t end_part(Text text) {
    part(text);
    in_part = false;
    return size() - part_begin;
  }
  bool number(Text text, Error& error) {
    const auto length = end_part(text);
    return add(error, JsonView::Kind::number, part_begin, length);
  }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error& error) { return begin(error, JsonView::Kind::object); }
  bool on_object_end(std::size_t, Error&) { return close(); }
  bool on_array_begin(Error& error) { return begin(error, JsonView::Kind::array); }
  bool on_array_end(std::size_t, Error&) { return close(); }
  bool on_key_part(Text text, std::size_t, Error&) {
    part(text);
    return true;
  }
  bool on_key(Text text, std::size_t, Error&) {
    key_length = end_part(text);
    key = part_begin;
    return true;
  }
  bool on_string_part(Text text, std::size_t, Error&) {
    part(text);
    return true;
  }
  bool on_string(Text text, std::size_t, Error& error) {
    const auto length = end_part(text);
    return add(error, JsonView::Kind::string, part_begin, length);
  }
  bool on_number_part(Text text, Error&) {
    part(text);
    return true;
  }
  bool on_int64(std::int64_t, Text text, Error& error) { return number(text, error); }
  bool on_uint64(std::uint64_t, Text text, Error& error) { return number(text, error); }
  bool on_double(double, Text text, Error& error) { return number(text, error); }
  bool on_bool(bool flag, Error& error) { return add(error, JsonView::Kind::boolean, 0, 0, flag); }
  bool on_null(Error& error) { return add(error, JsonView::Kind::null); }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

namespace {

constexpr std::size_t kLargeText = 64u << 10;

// A handler that accepts everything: text that the parser itself refuses is not JSON.
struct JsonChecker {
  static constexpr std::size_t max_object_size = JsonBuilder::max_object_size;
  static constexpr std::size_t max_array_size = JsonBuilder::max_array_size;
  static constexpr std::size_t max_key_size = JsonBuilder::max_key_size;
  static constexpr std::size_t max_string_size = JsonBuilder::max_string_size;

  using Error = JsonBuilder::Error;
  using Text = JsonBuilder::Text;

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(Text, std::size_t, Error&) { return true; }
  bool on_key(Text, std::size_t, Error&) { return true; }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return true; }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t, Text, Error&) { return true; }
  bool on_uint64(std::uint64_t, Text, Error&) { return true; }
  bool on_double(double, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

boost::json::parse_options parse_options() {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return options;
}

// Only spaces may follow a value.
bool is_blank(std::string_view rest) {
  return rest.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

bool Json::is_valid(std::string_view text) {
  boost::json::basic_parser<JsonChecker> parser(parse_options());
  boost::json::error_code error;
  const auto read = parser.write_some(false, text.data(), text.size(), error);
  return !error && parser.done() && is_blank(text.substr(read));
}

std::expected<Json, std::string> Json::parse(std::string_view text, std::size_t max_values) {
  boost::json::basic_parser<JsonBuilder> parser(parse_options());
  auto& builder = parser.handler();
  builder.max_values = max_values;
  if (text.size() > kLargeText) {
    // Reserves enough at the start; otherwise a growing document would be held twice. Memory that is not
    // written to costs nothing.
    builder.json.nodes_.reserve(std::min(max_values, text.size() / 2 + 1));
    builder.json.texts_.reserve(text.size());
  }
  boost::json::error_code error;
  const auto read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && !is_blank(text.substr(read))) return std::unexpected("something follows the JSON value");
  if (error == boost::json::error::array_too_large) {
    return std::unexpected(fmt::format(
        "It holds more than {} values: make several calls of it, or send bytes as base64.", max_values));
  }
  if (!error && !parser.done()) return std::unexpected("the JSON value is not complete");
  if (error) return std::unexpected(fmt::format("{} at byte {}", error.message(), read));
  return std::move(parser.handler().json);
}

JsonView::Kind JsonView::kind() const {
  return document_->nodes_[node_].kind;
}

bool JsonView::boolean() const {
  return document_->nodes_[node_].boolean;
}

std::string_view JsonView::text() const {
  const auto& node = document_->nodes_[node_];
  return std::string_view(document_->texts_).substr(node.text, node.length);
}

std::string_view JsonView::key() const {
  const auto& node = document_->nodes_[node_];
  return std::string_view(document_->texts_).substr(node.key, node.key_length);
}

namespace {

template <class Number>
std::optional<Number> whole_number(JsonView value) {
  if (value.kind() != JsonView::Kind::number) return std::nullopt;
  const auto text = value.text();
  if (text == "-0") return Number{0};
  Number number{};
  const auto end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || last != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> JsonView::to_int64() const {
  return whole_number<std::int64_t>(*this);
}

std::optional<std::uint64_t> JsonView::to_uint64() const {
  return whole_number<std::uint64_t>(*this);
}

JsonView::Iterator JsonView::begin() const {
  return {document_, node_ + 1};
}

JsonView::Iterator JsonView::end() const {
  return {document_, document_->nodes_[node_].next};
}

std::size_t JsonView::size() const {
  return document_->nodes_[node_].count;
}

JsonView::Iterator& JsonView::Iterator::operator++() {
  node_ = document_->nodes_[node_].next;
  return *this;
}

namespace {

void append_compact(std::string& out, JsonView value) {
  switch (value.kind()) {
    case JsonView::Kind::null:
      out += "null";
      return;
    case JsonView::Kind::boolean:
      out += value.boolean() ? "true" : "false";
      return;
    case JsonView::Kind::number:
      out += value.text();
      return;
    case JsonView::Kind::string:
      append_json_string(out, value.text());
      return;
    case JsonView::Kind::array:
    case JsonView::Kind::object:
      break;
  }
  const bool is_object = value.kind() == JsonView::Kind::object;
  out += is_object ? '{' : '[';
  bool first = true;
  for (const auto item : value) {
    if (!first) out += ',';
    first = false;
    if (is_object) {
      append_json_string(out, item.key());
      out += ':';
    }
    append_compact(out, item);
  }
  out += is_object ? '}' : ']';
}

}  // namespace

std::string JsonView::compact() const {
  std::string out;
  append_compact(out, *this);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text, plain, text.size() - plain);
  out += '"';
}

void JsonWriter::separate() {
  if (!first_) out_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::object() {
  separate();
  out_ += '{';
  closers_.push_back('}');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::array() {
  separate();
  out_ += '[';
  closers_.push_back(']');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end() {
  out_ += closers_.back();
  closers_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  return raw(flag ? "true" : "false");
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  return raw(fmt::format_int(number).c_str());
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  return raw(fmt::format_int(number).c_str());
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  return raw(fmt::format("{}", number));
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace flowfabric::api
