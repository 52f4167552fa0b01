#include "server/config_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "model/text.h"
#include "server/config_values.h"

namespace flowfabric::server {

namespace {

using Values = std::map<std::string, std::vector<std::string>>;

constexpr const char* kBackslash =
    "Behind a backslash or between three quotes, write printable characters only; single quotes take a "
    "backslash "
    "as it is.";

std::string line_of(const std::string& text, std::uint32_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::uint32_t i = 0; i < number && std::getline(lines, line);) ++i;
  return line;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::unexpected<Error> refuse_line(const std::string& path, std::uint32_t line, const char* advice) {
  return fail_with(ErrorCode::invalid_input, fmt::format("file {}, line {}", path, line), advice);
}

// The key of a line `key = value`; empty if it is not one.
std::string key_of(const std::string& line) {
  const auto key = trimmed(line.substr(0, line.find('=')));
  const bool is_bare = std::ranges::all_of(
      key, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
  return line.contains('=') && is_bare ? std::string(key) : "";
}

// toml++ says what it expected and what it saw. The latter may be part of a secret, so our own words are
// shown.
std::unexpected<Error> refusal_of(const toml::parse_error& error, const std::string& text,
                                  const std::string& path) {
  const std::string said(error.description());
  const auto says = [&said](std::string_view words) { return said.contains(words); };
  const auto number = error.source().begin.line;
  const auto line = line_of(text, number);
  if (says("cannot redefine")) {
    const auto quote = said.find('\'');
    const auto name =
        quote == said.npos ? key_of(line) : said.substr(quote + 1, said.rfind('\'') - quote - 1);
    return fail_with(ErrorCode::invalid_input, fmt::format("file {}: {} twice, line {}", path, name, number),
                     "Give every key and every section once.");
  }
  if (says("utf-8")) return refuse_line(path, number, "Save the file as UTF-8.");
  if (says("escape sequence")) return refuse_line(path, number, kBackslash);
  if (says("control character") &&
      std::ranges::any_of(line, [](char c) { return is_control(c) && c != '\t' && c != '\r'; })) {
    return refuse_line(path, number, "Remove the control character.");
  }
  if (says("string:")) return refuse_line(path, number, "Close the quotes on the line where they open.");
  if (says("table header:"))
    return refuse_line(path, number, "Write a section as [name] on a line of its own.");
  if (says("array: encountered end-of-file")) return refuse_line(path, number, "Close the array with ].");
  if (says("array:")) return refuse_line(path, number, "Separate the entries of an array with commas.");
  if (says("key-value pair:") || says("root table:")) return refuse_line(path, number, "Write key = value.");
  const auto key = key_of(line);
  return fail_with(ErrorCode::invalid_input,
                   key.empty() ? fmt::format("file {}, line {}", path, number)
                               : fmt::format("{} (file {}), line {}", key, path, number),
                   "Write a text in quotes, and numbers, true and false without.");
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  // Keys of the section [default] are those of no section.
  Result<void> read(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const auto key = prefix + std::string(name.str());
      const auto read_it =
          node.is_table() ? read(*node.as_table(), key == "default" ? "" : key + ".") : add(key, node);
      if (!read_it) return read_it;
    }
    return {};
  }

  Values take() { return std::move(values_); }

 private:
  Result<void> add(const std::string& key, const toml::node& node) {
    std::vector<std::string> texts;
    const auto* const array = node.as_array();
    if (!array) {
      auto text = text_of(node);
      if (!text) return std::unexpected(text.error());
      texts.push_back(*std::move(text));
    } else {
      for (const auto& each : *array) {
        auto text = text_of(each);
        if (!text) return std::unexpected(text.error());
        texts.push_back(*std::move(text));
      }
    }
    if (values_.try_emplace(key, std::move(texts)).second) return {};
    return fail_with(ErrorCode::invalid_input, fmt::format("file {}: {} twice", path_, key),
                     "Give every key once.");
  }

  Result<std::string> text_of(const toml::node& node) const {
    const auto line = node.source().begin.line;
    if (const auto* text = node.as_string()) {
      if (std::ranges::none_of(text->get(), is_control)) return text->get();
      return refuse_line(path_, line, kBackslash);
    }
    if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* truth = node.as_boolean()) return fmt::format("{}", truth->get());
    if (node.is_table())
      return refuse_line(path_, line, "Write sections as [name]; there are no lists of them.");
    return refuse_line(path_, line, "Write a text, a number, true or false; a text in quotes.");
  }

  const std::string& path_;
  Values values_;
};

}  // namespace

Result<Values> read_toml(const std::string& text, const std::string& path) {
  const auto parsed = toml::parse(text);
  if (!parsed) return refusal_of(parsed.error(), text, path);
  Reader reader(path);
  if (const auto read = reader.read(parsed.table(), ""); !read) return std::unexpected(read.error());
  return reader.take();
}

}  // namespace flowfabric::server
