#include "server/partition_collisions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/partition.h"
#include "model/text.h"

namespace flowfabric::server {

namespace {

using LanesByPartition = std::map<std::uint16_t, std::set<std::string>>;

Result<LanesByPartition> by_partition(const std::vector<std::string>& lanes, std::uint16_t flow_partitions) {
  LanesByPartition found;
  for (const auto& lane : lanes) {
    if (const auto checked = check_lane(lane); !checked) return std::unexpected(checked.error());
    if (!found[partition_of_lane(lane, flow_partitions)].insert(lane).second) {
      return fail_with(ErrorCode::invalid_input, fmt::format("lanes: '{}' twice", lane),
                       "Name every lane once.");
    }
  }
  return found;
}

std::string table_of(const LanesByPartition& partitions, std::size_t width) {
  std::string table = fmt::format("{:>9} | {:<{}} | collides_with\n", "partition", "lane", width);
  for (const auto& [partition, lanes] : partitions) {
    for (const auto& lane : lanes) {
      auto others = lanes;
      others.erase(lane);
      table += fmt::format("{:>9} | {:<{}} | {}\n", partition, lane, width,
                           others.empty() ? "-" : fmt::format("{}", fmt::join(others, ", ")));
    }
  }
  return table;
}

constexpr const char* kHints =
    "\nWhat to do about it:\n"
    "  - Rename one of the lanes that collide: a lane's name alone decides its partition.\n"
    "  - Or make a new store with more partitions (FF_FLOW_PARTITIONS); those of a store never change.\n";

}  // namespace

std::string_view collision_severity(std::size_t colliding, std::size_t lanes) {
  if (colliding == 0) return "Clean";
  if (colliding * 100 < lanes * 5) return "Watch";
  if (colliding * 100 <= lanes * 15) return "Elevated";
  return "Remediate";
}

Result<std::string> partition_collisions_report(const std::vector<std::string>& lanes,
                                                std::uint16_t flow_partitions) {
  if (flow_partitions == 0 || lanes.empty()) {
    return fail_with(ErrorCode::invalid_input, "lanes and partitions",
                     "Give at least one lane and one partition.");
  }
  const auto partitions = by_partition(lanes, flow_partitions);
  if (!partitions) return std::unexpected(partitions.error());
  std::size_t colliding = 0;
  for (const auto& [partition, sharing] : *partitions) {
    if (sharing.size() > 1) colliding += sharing.size();
  }
  const auto longest = std::ranges::max(lanes, {}, &std::string::size).size();
  return fmt::format(
      "FlowFabric lanes by partition\n"
      "num_flow_partitions: {}\n"
      "lanes configured: {}\n"
      "lanes colliding: {} ({:.1f}%)\n"
      "severity: {}\n\n{}{}",
      flow_partitions, lanes.size(), colliding,
      100.0 * static_cast<double>(colliding) / static_cast<double>(lanes.size()),
      collision_severity(colliding, lanes.size()),
      table_of(*partitions, std::max(longest, std::string_view("lane").size())), colliding > 0 ? kHints : "");
}

}  // namespace flowfabric::server
