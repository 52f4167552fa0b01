#include "server/config_file.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "server/config_values.h"

namespace flowfabric::server {

namespace {

// CLI11 reads these as part of the layout even inside quotes, so there they are replaced by control
// characters before it sees them, and put back afterwards.
constexpr std::string_view kLayout = "#\"'`\\,[]= ";
constexpr char kFirstStandIn = 0x0E;

char hidden(char c) {
  const auto at = kLayout.find(c);
  return at == kLayout.npos ? c : static_cast<char>(kFirstStandIn + static_cast<char>(at));
}

std::string shown(std::string text) {
  for (char& c : text) {
    const auto at = static_cast<std::size_t>(c - kFirstStandIn);
    if (c >= kFirstStandIn && at < kLayout.size()) c = kLayout[at];
  }
  return text;
}

struct Trouble {
  std::string advice;
};

// One line without its comment, with what is quoted hidden from CLI11.
std::string prepared_line(const std::string& line) {
  std::string prepared;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') {
      throw Trouble{"Remove the control character."};
    }
    if (quote == 0) {
      if (c == '#') break;
      if (c == '"' || c == '\'') quote = c;
      prepared += c;
    } else if (c == quote) {
      quote = 0;
      prepared += c;
    } else if (c == '\\' && quote == '"') {
      ++i;
      if (i == line.size() || (line[i] != '"' && line[i] != '\\')) {
        throw Trouble{"Behind a backslash, only \\ and \" are understood; single quotes take it as it is."};
      }
      prepared += hidden(line[i]);
    } else {
      prepared += hidden(c);
    }
  }
  if (quote != 0) throw Trouble{"Close the quotes on the line where they open."};
  return CLI::detail::trim(prepared);
}

bool opens_array(const std::string& line) {
  const auto equals = line.find('=');
  return equals != line.npos && trimmed(line.substr(equals + 1)).starts_with('[') && !line.ends_with(']');
}

// CLI11 skips over what it does not understand.
void check_line(const std::string& line) {
  if (line.empty()) return;
  if (line.starts_with("[[")) throw Trouble{"Write sections as [name]; there are no lists of them."};
  if (line.starts_with('[')) {
    if (line.ends_with(']') && line.size() > 2) return;
    throw Trouble{"Write a section as [name] on a line of its own."};
  }
  const auto equals = line.find('=');
  const bool is_complete = equals != line.npos && !trimmed(line.substr(0, equals)).empty() &&
                           !trimmed(line.substr(equals + 1)).empty();
  if (!is_complete) throw Trouble{"Write key = value."};
}

// What CLI11 reads without loss. `line_number` tells how far it came.
std::string prepared(const std::string& text, int& line_number) {
  std::istringstream lines(text);
  std::string all;
  std::string array;  // one that is not closed yet
  for (std::string raw; std::getline(lines, raw);) {
    ++line_number;
    auto line = prepared_line(raw);
    if (!array.empty()) line = array + " " + line;
    array.clear();
    if (opens_array(line)) {
      array = line;
      continue;
    }
    check_line(line);
    all += line + "\n";
  }
  if (!array.empty()) throw Trouble{"Close the array with ]."};
  return all;
}

}  // namespace

Result<std::map<std::string, std::vector<std::string>>> read_toml(const std::string& text,
                                                                  const std::string& path) {
  std::map<std::string, std::vector<std::string>> values;
  int line_number = 0;
  try {
    std::istringstream input(prepared(text, line_number));
    for (auto& item : CLI::ConfigTOML().from_config(input)) {
      if (item.name == "++" || item.name == "--") continue;  // begin and end of a section
      std::ranges::transform(item.inputs, item.inputs.begin(), shown);
      if (!values.try_emplace(item.fullname(), std::move(item.inputs)).second) {
        return fail_with(ErrorCode::invalid_input, fmt::format("file {}: {} twice", path, item.fullname()),
                         "Give every key once.");
      }
    }
  } catch (const Trouble& trouble) {
    return fail_with(ErrorCode::invalid_input, fmt::format("file {}, line {}", path, line_number),
                     trouble.advice);
  } catch (const CLI::Error& error) {
    return fail_with(ErrorCode::invalid_input, fmt::format("file {}: {}", path, error.get_name()),
                     "Write the file as docs/configuration.md shows.");
  }
  return values;
}

}  // namespace flowfabric::server
