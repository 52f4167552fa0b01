// The tests of what a disk may hold. They start this very program again as the process whose disk it is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "disk/backup_child.h"
#include "disk/load_child.h"
#include "disk/script_child.h"

int main(int argc, char** argv) {
  using namespace flowfabric::disk;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 4 && arguments[0] == kScriptArgument) return run_script(arguments[1], arguments[2]);
  if (arguments.size() == 4 && arguments[0] == kBackupArgument) return run_backup(arguments[1], arguments[2]);
  if (arguments.size() == 4 && arguments[0] == kLoadArgument) {
    return run_load(arguments[1], arguments[2], std::stoi(arguments[3]));
  }
  // States are written, checked and thrown away: they need no disk, and there a sync costs nothing.
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
