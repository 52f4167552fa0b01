// JSON on the wire.
//
// Documents keep details that the model of a general library loses and the wire needs: repeated keys, the
// exact text of numbers, the order of members. Boost.JSON's parser reads the text; this file only holds the
// result.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flowfabric::api {

inline constexpr std::size_t kMaxJsonDepth = 128;

class Json;

// A value inside a document. Valid as long as the document.
class JsonView {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  JsonView(const Json* document, std::uint32_t node) : document_(document), node_(node) {}

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool boolean() const;           // of a boolean
  std::string_view text() const;  // of a string: its content; of a number: as it was written

  // Absent if it is not a whole number of this type.
  std::optional<std::int64_t> to_int64() const;
  std::optional<std::uint64_t> to_uint64() const;

  // Iterates over the items of an array, or the values of an object (see `key`).
  class Iterator;
  Iterator begin() const;
  Iterator end() const;
  std::size_t size() const;
  std::string_view key() const;  // of a member of an object

  // The value without the spaces between its parts; numbers as they were written.
  std::string compact() const;

 private:
  const Json* document_;
  std::uint32_t node_;
};

class Json {
 public:
  // The error is a description for people, which never quotes the text. A value takes 32 bytes of memory and
  // as few as two of the text, so texts from outside are read with a limit.
  static std::expected<Json, std::string> parse(
      std::string_view text, std::size_t max_values = std::numeric_limits<std::size_t>::max());
  // True if the text is one value and nothing else.
  static bool is_valid(std::string_view text);

  JsonView root() const { return {this, 0}; }

 private:
  friend class JsonView;
  friend struct JsonBuilder;

  // Nodes are in the order of the text: a container is followed by its contents, up to `next`.
  struct Node {
    JsonView::Kind kind{};
    bool boolean{};
    std::uint32_t text{};  // its offset in `texts_`
    std::uint32_t length{};
    std::uint32_t key{};
    std::uint32_t key_length{};
    std::uint32_t next{};   // the node after it and its contents
    std::uint32_t count{};  // items or members
  };
  std::vector<Node> nodes_;
  std::string texts_;
};

class JsonView::Iterator {
 public:
  Iterator(const Json* document, std::uint32_t node) : document_(document), node_(node) {}
  JsonView operator*() const { return {document_, node_}; }
  Iterator& operator++();
  bool operator==(const Iterator&) const = default;

 private:
  const Json* document_;
  std::uint32_t node_;
};

// Writes JSON into a string: `out.object().field("a", 1).field("b", "x").end()`.
class JsonWriter {
 public:
  JsonWriter& object();
  JsonWriter& array();
  JsonWriter& end();

  JsonWriter& key(std::string_view name);

  JsonWriter& null();
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(std::int32_t number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(std::uint32_t number) { return value(static_cast<std::uint64_t>(number)); }
  JsonWriter& value(double number);
  // Values with `to_string`: ids.
  template <class T>
  requires requires(const T& id) { id.to_string(); }
  JsonWriter& value(const T& id) { return value(std::string_view(id.to_string())); }
  // An absent value is written as null.
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <class T>
  JsonWriter& value(const std::vector<T>& items) {
    array();
    for (const auto& item : items) value(item);
    return end();
  }
  template <class T>
  JsonWriter& value(const std::map<std::string, T>& members) {
    object();
    for (const auto& [name, member] : members) field(name, member);
    return end();
  }
  // Appends text that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // An absent value is left out.
  template <class T>
  JsonWriter& field_if(std::string_view name, const std::optional<T>& maybe) {
    return maybe ? field(name, *maybe) : *this;
  }

  std::string take() { return std::move(out_); }
  const std::string& text() const { return out_; }

 private:
  void separate();
  std::string out_;
  std::vector<char> closers_;
  bool first_{true};  // of its container, or after a key
};

// Appends a quoted and escaped string.
void append_json_string(std::string& out, std::string_view text);

}  // namespace flowfabric::api
