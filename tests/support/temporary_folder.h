// A folder for one test, removed with everything in it at the end of the scope.
#pragma once

#include "cli/temporary_folder.h"

namespace flowfabric::tests {

class TemporaryFolder : public cli::TemporaryFolder {
 public:
  TemporaryFolder() : cli::TemporaryFolder("flowfabric-test") {}
  std::string file(const std::string& name) const { return path() + "/" + name; }
};

}  // namespace flowfabric::tests
