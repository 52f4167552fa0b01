// The program, run to its end.
#pragma once

#include <string>

namespace flowfabric::e2e {

struct Ended {
  int code{-1};
  std::string said;  // on both streams, unless told otherwise
};

struct Surroundings {
  std::string before{};     // in the shell: variables, or a command and a pipe
  bool only_output{false};  // what it says on standard error is not told
};

// The arguments are those of a shell.
Ended run_program(const std::string& arguments, const Surroundings& surroundings = {});

}  // namespace flowfabric::e2e
