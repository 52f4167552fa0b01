// Exit codes, and the report of a failed command.
#pragma once

#include <string>

#include "flowfabric/error.h"

namespace flowfabric::cli {

// Exit codes. docs/cli.md and `flowfabric --help` name them; doctor has its own three.
inline constexpr int kDone = 0;
inline constexpr int kRefused = 1;      // refused, or failed
inline constexpr int kUsage = 2;        // the arguments are wrong
inline constexpr int kNotFound = 3;     // the named thing does not exist
inline constexpr int kUnreachable = 4;  // neither server nor store can answer now
inline constexpr int kTimeIsUp = 5;     // the wait timed out

inline constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 refused or failed; 2 wrong arguments; 3 not found; 4 the server or the store\n"
    "cannot be reached; 5 what was waited for did not happen in time. (doctor: 0 sound, 1 not, 2 trouble.)";

// Thrown by commands, and reported in one place (see `run` in client.h).
struct Failure {
  int exit_code{kRefused};
  std::string code;    // the specification's, for programs
  std::string detail;  // the subject
  std::string advice;  // what to do
  std::string body{};  // the server's answer as JSON; empty: none

  std::string to_string() const;
  std::string to_json() const;
};

[[noreturn]] void fail(int exit_code, std::string code, std::string detail, std::string advice);
// Fails because the arguments contradict each other.
[[noreturn]] void fail_usage(std::string detail, std::string advice);
[[noreturn]] void fail_input(std::string detail, std::string advice);
[[noreturn]] void fail(const Error& error);

// Prints a line to standard error and, for programs, an object to standard output. Returns the exit code.
int tell(const Failure& failure, bool as_json);

}  // namespace flowfabric::cli
