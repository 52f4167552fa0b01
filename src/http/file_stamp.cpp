#include "http/file_stamp.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace flowfabric::http {

std::string file_stamp(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace flowfabric::http
