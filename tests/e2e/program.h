// The program, run to its end.
#pragma once

#include <string>

namespace flowfabric::e2e {

struct Ended {
  int code{-1};
  std::string said;  // on both streams
};

// The arguments are those of a shell.
Ended run_program(const std::string& arguments);

}  // namespace flowfabric::e2e
