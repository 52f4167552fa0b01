#include "disk/recording.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "disk/states.h"

namespace flowfabric::disk {

void Recording::make_folder() const {
  std::filesystem::create_directory(folder());
}

e2e::Environment Recording::environment(const Settings& settings) const {
  e2e::Environment environment{
      {"LD_PRELOAD", FF_DISK_RECORDER}, {kFolderVariable, folder()}, {kTraceVariable, trace_.path()}};
  // The address sanitizer wants to be the first library. It does well as the second one, too.
  const char* const asan = std::getenv("ASAN_OPTIONS");
  environment["ASAN_OPTIONS"] = (asan ? std::string(asan) + ":" : "") + "verify_asan_link_order=0";
  if (settings.keeps_old) environment[kKeepOldVariable] = "1";
  if (!settings.skipped_sites.empty()) environment[kSkipVariable] = settings.skipped_sites;
  if (const auto& failing = settings.failing) {
    environment[kFailVariable] = failing->call + " " + std::to_string(failing->first) + " " +
                                 std::to_string(failing->count) + " " + std::to_string(failing->reason) +
                                 " " + failing->how;
  }
  return environment;
}

std::unique_ptr<e2e::ChildProcess> Recording::start(std::vector<std::string> arguments,
                                                    const Settings& settings) const {
  return std::make_unique<e2e::ChildProcess>(std::move(arguments), environment(settings));
}

void Recording::settle() {
  trace_.settle(folder());
  ASSERT_EQ(trace_.header().is_full, 0u);
  Disk disk(trace_);
  disk.advance_to(trace_.events().size());
  const auto expected = disk.state({Strategy::everything, 0});
  const auto real = read_files(folder());
  for (const auto& [path, bytes] : real) {
    const auto found = expected.find(path);
    ASSERT_NE(found, expected.end()) << path << " is not in the trace";
    ASSERT_TRUE(found->second == bytes) << path << " was changed in a way that is not in the trace";
  }
  ASSERT_EQ(expected.size(), real.size()) << "a file is gone, and the trace does not say so";
}

}  // namespace flowfabric::disk
