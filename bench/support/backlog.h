// Fills a schema with many executions at once, by copies that the database makes of what an engine made.
#pragma once

#include <string>

#include "support/bench.h"

namespace flowfabric::bench {

struct Backlog {
  std::int64_t terminal{};
  std::int64_t waiting{};
};

// Into an empty schema, on the lane kLane of raw_lifecycle.h; submitted evenly over the last hour.
void fill(const std::string& url, const Backlog& backlog);

}  // namespace flowfabric::bench
