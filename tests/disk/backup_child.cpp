#include "disk/backup_child.h"

#include "disk/marks.h"
#include "flowfabric/backup.h"

namespace flowfabric::disk {

int run_backup(const std::string& url, const std::string& file) {
  const auto done = backup(url, file);
  mark(done ? "B" : "X " + done.error().to_string());
  return done ? 0 : 3;
}

}  // namespace flowfabric::disk
