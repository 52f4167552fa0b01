// Configurations without a process and without a disk.
#pragma once

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <sstream>

#include "server/config.h"

namespace flowfabric::server {

inline constexpr const char* kFile = "ff.toml";

// `files`: contents by path.
inline Sources sources_of(Variables environment, std::map<std::string, std::string> files = {}) {
  Sources sources{.environment = std::move(environment)};
  sources.read_file = [files = std::move(files)](const std::string& path) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return fail_with(ErrorCode::invalid_input, path + ": cannot be opened", "");
    return found->second;
  };
  return sources;
}

inline Sources with_file(const std::string& toml, Variables environment = {}) {
  environment["FF_CONFIG"] = kFile;
  return sources_of(std::move(environment), {{kFile, toml}});
}

inline Config load(const Sources& sources) {
  auto loaded = load_config(sources);
  if (loaded) return *std::move(loaded);
  ADD_FAILURE() << loaded.error().to_string();
  return {};
}

inline Config load(Variables environment) {
  return load(sources_of(std::move(environment)));
}

inline std::string refusal_of(const Sources& sources) {
  const auto loaded = load_config(sources);
  if (!loaded) {
    EXPECT_EQ(loaded.error().code, ErrorCode::invalid_input);
    EXPECT_FALSE(loaded.error().advice.empty());
    return loaded.error().detail + " | " + loaded.error().advice;
  }
  ADD_FAILURE() << "loaded:\n" << print_config(*loaded);
  return "";
}

inline std::string refusal_of(Variables environment) {
  return refusal_of(sources_of(std::move(environment)));
}

inline std::string refusal_of_file(const std::string& toml) {
  return refusal_of(with_file(toml));
}

inline testing::AssertionResult mentions(const std::string& text, const std::string& words) {
  if (text.contains(words)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not mention '" << words << "'";
}

inline std::string all_warnings(const Config& config) {
  return fmt::format("{}", fmt::join(config.warnings, "\n"));
}

inline std::string line_of(const Config& config, const std::string& key) {
  std::istringstream lines(print_config(config));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + " =")) return line;
  }
  return "";
}

}  // namespace flowfabric::server
