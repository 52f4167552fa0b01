// Arguments of the command line: JSON, files, times, ids, filters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/client.h"

namespace flowfabric::cli {

// `TEXT`, `@FILE`, or `-` for standard input. Refuses text that is not JSON; `name` is the argument's name in
// the error.
std::string json_argument(const std::string& name, const std::string& given);
// The content of a file, or of standard input for `-`; JSON, too.
std::string json_file(const std::string& path);

// `TEXT`, or `@FILE` for the content of a file without ends of lines behind it.
std::string text_argument(const std::string& given);

// 500ms, 30s, 5m, 2h, 7d; a number alone is in seconds.
std::int64_t duration_argument(const std::string& name, const std::string& given);
// 2026-11-16T21:00:00Z, milliseconds since the epoch, or a duration before now.
std::int64_t time_argument(const std::string& name, const std::string& given);

// `key=value`, repeated.
std::map<std::string, std::string> tags_argument(const std::vector<std::string>& given);

// Refuses malformed ids before any request is made.
std::string execution_argument(const std::string& given);
std::string uuid_argument(const std::string& what, const std::string& given);

// The path of an execution's route: `/v1/executions/{id}` and `rest`.
std::string execution_path(const std::string& id, const std::string& rest = "");

// An option that may be repeated. It takes one value each time, so that an argument may follow it.
Option add_list(Command& command, const std::string& name, std::vector<std::string>& values,
                const std::string& help);

// The options that select executions.
struct FilterOptions {
  std::optional<std::string> lane;
  std::vector<std::string> states;
  std::optional<std::string> name_space;
  std::optional<std::string> kind;
  std::optional<std::string> flow;
  std::vector<std::string> tags;
  std::optional<std::string> created_after;
  std::optional<std::string> created_before;

  bool empty() const { return words().empty(); }
  // The filter in the API's words: `lane`, `state` (repeated), …
  Parameters words() const;
};
void add_filter_options(Command& command, FilterOptions& filter);

}  // namespace flowfabric::cli
