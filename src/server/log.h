// The server's log: one line at a time, on standard error.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "server/config.h"

namespace flowfabric::server {

class Log {
 public:
  Log(LogLevel least, LogFormat format) : least_(least), format_(format) {}

  void info(std::string_view text) { say(LogLevel::info, text); }
  void warn(std::string_view text) { say(LogLevel::warn, text); }
  void error(std::string_view text) { say(LogLevel::error, text); }
  // Writes a JSON object unchanged, whatever the level.
  void record(std::string_view json);
  // The last line of a process: skipped if nobody reads the log, or if a writing thread is stuck.
  void last_words(std::string_view text);

 private:
  std::string line_of(LogLevel level, std::string_view text) const;
  void say(LogLevel level, std::string_view text);
  void write(std::string_view text);

  const LogLevel least_;
  const LogFormat format_;
  std::timed_mutex mutex_;
};

}  // namespace flowfabric::server
