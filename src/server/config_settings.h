// The table of settings: what `flowfabric serve` can be told, and how each is read.
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
  list,    // with commas, or an array in a file
  secret,  // never shown, and no flag: command lines can be seen by everybody
};

struct Meaning {
  Shape shape;
  // Puts the text into the configuration; returns it as it is to be printed. A text or URL is plain by then.
  std::function<Parsed<std::string>(const std::string& text, Config& config)> apply;
  bool is_refused_when_empty{false};  // a variable; elsewhere, an empty text or secret is none
};

struct Setting {
  std::string_view key;  // dotted: `tls.key` is `key` in the section [tls]
  std::string_view variable;
  std::string_view default_text;
  std::string_view help;
  Meaning meaning;
  std::string_view old_variable{};  // read if `variable` is not set
  // What the old variable says in words of the new one; absent: nothing of use.
  std::optional<std::string> (*from_old)(const std::string& text){nullptr};
};

const std::vector<Setting>& all_settings();
const Setting* find_setting(std::string_view key);
// `--tls-key`; "" for a secret.
std::string flag_of(const Setting& setting);

}  // namespace flowfabric::server
