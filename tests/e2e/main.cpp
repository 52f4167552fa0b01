// The tests of real processes. Some of them start this very program again as the process that is killed.
#include <gtest/gtest.h>

#include "e2e/kill_child.h"

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == flowfabric::e2e::kChildArgument) {
    return flowfabric::e2e::run_child(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
