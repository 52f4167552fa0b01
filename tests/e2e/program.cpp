#include "e2e/program.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

namespace flowfabric::e2e {

Ended run_program(const std::string& arguments, const Surroundings& surroundings) {
  const auto command = surroundings.before + " timeout 60 '" FLOWFABRIC_PROGRAM "' " + arguments +
                       (surroundings.only_output ? " 2>/dev/null" : " 2>&1") +
                       (surroundings.before.ends_with('|') ? "" : " </dev/null");
  auto* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  Ended ended;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    ended.said.append(part.data(), n);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

}  // namespace flowfabric::e2e
