#include "server/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>

namespace flowfabric::server {

namespace {

// Room for the store's connections and files, which come and go; more of them with many connections.
constexpr std::size_t kLeastReserve = 64;
constexpr std::size_t kMostReserve = 1024;
constexpr std::size_t kLeastConnections = 16;

std::size_t open_now() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? kLeastReserve : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

void raise_limit_of_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t connections_that_fit(std::size_t more) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::size_t>::max();
  const auto most = static_cast<std::size_t>(limit.rlim_cur);
  const auto taken = open_now() + more + std::clamp(most / 8, kLeastReserve, kMostReserve);
  return std::max(kLeastConnections, most > taken ? most - taken : 0);
}

}  // namespace flowfabric::server
