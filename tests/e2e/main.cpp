// The tests of real processes. Some of them start this very program again as another process.
#include <gtest/gtest.h>

#include "e2e/flow_child.h"
#include "e2e/kill_child.h"
#include "e2e/server_child.h"

int main(int argc, char** argv) {
  using namespace flowfabric::e2e;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 4 && arguments[0] == kChildArgument) {
    return run_child(arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]));
  }
  if (arguments.size() == 5 && arguments[0] == kServerArgument) {
    return run_server(arguments[1], arguments[2], std::stoi(arguments[3]), std::stoi(arguments[4]));
  }
  if (arguments.size() == 3 && arguments[0] == kFlowArgument) {
    return run_flows(arguments[1], std::stoi(arguments[2]));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
