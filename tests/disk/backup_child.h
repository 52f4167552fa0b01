// A process that makes a backup, and records the outcome in the trace.
#pragma once

#include <string>

namespace flowfabric::disk {

inline constexpr const char* kBackupArgument = "--backup-of-disk-tests";

// Ends with 0 when the copy was announced, and with 3 when it was refused.
int run_backup(const std::string& url, const std::string& file);

}  // namespace flowfabric::disk
