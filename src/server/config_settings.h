// The table of settings of `flowfabric serve`, and how each is read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/config.h"
#include "server/config_values.h"

namespace flowfabric::server {

enum class Shape {
  number,
  boolean,
  text,    // empty: not given
  url,     // the same, shown without its password
  list,    // separated by commas, or an array in a file
  secret,  // never shown, and without a flag: all users can see command lines
};

struct Meaning {
  Shape shape;
  // Puts the text into the configuration and returns its printed form. A text or URL has been checked for
  // plain text.
  std::function<Parsed<std::string>(const std::string& text, Config& config)> apply;
  bool is_refused_when_empty{false};  // as a variable; elsewhere, an empty text or secret means none
};

struct Setting {
  std::string_view key;  // dotted: `tls.key` is `key` in the section [tls]
  std::string_view variable;
  std::string_view default_text;
  std::string_view help;
  Meaning meaning;
  std::string_view old_variable{};  // read if `variable` is not set
  // Translates the old variable's text into the new one's; absent if it says nothing of use.
  std::optional<std::string> (*from_old)(const std::string& text){nullptr};
};

const std::vector<Setting>& all_settings();
const Setting* find_setting(std::string_view key);
// `--tls-key`; "" for a secret.
std::string flag_of(const Setting& setting);

}  // namespace flowfabric::server
