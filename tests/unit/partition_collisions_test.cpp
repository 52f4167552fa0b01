#include "server/partition_collisions.h"

#include <gtest/gtest.h>

#include <set>

#include "model/partition.h"
#include "server/config.h"

namespace flowfabric::server {
namespace {

using Lanes = std::vector<std::string>;

constexpr std::uint16_t kPartitions = 1024;

// The first `sharing` of them share one partition, every other one has its own.
Lanes lanes_with(std::size_t sharing, std::size_t total) {
  Lanes together{"lane"};
  Lanes apart;
  const auto shared = partition_of_lane("lane", kPartitions);
  std::set<std::uint16_t> taken{shared};
  for (int i = 0;
       together.size() < std::max<std::size_t>(sharing, 1) || together.size() + apart.size() < total; ++i) {
    const auto lane = "lane-" + std::to_string(i);
    const auto partition = partition_of_lane(lane, kPartitions);
    if (partition == shared && together.size() < sharing) together.push_back(lane);
    if (apart.size() + sharing < total && taken.insert(partition).second) apart.push_back(lane);
  }
  together.insert(together.end(), apart.begin(), apart.end());
  return together;
}

std::string report_of(const Lanes& lanes, std::uint16_t partitions = kPartitions) {
  const auto report = partition_collisions_report(lanes, partitions);
  EXPECT_TRUE(report) << report.error().to_string();
  return report.value_or("");
}

TEST(PartitionCollisions, ShowsEveryLaneByPartitionAndName) {
  EXPECT_EQ(
      report_of({"b", "a"}, 1),
      "FlowFabric lanes by partition\n"
      "num_flow_partitions: 1\n"
      "lanes configured: 2\n"
      "lanes colliding: 2 (100.0%)\n"
      "severity: Remediate\n"
      "\n"
      "partition | lane | collides_with\n"
      "        0 | a    | b\n"
      "        0 | b    | a\n"
      "\n"
      "What to do about it:\n"
      "  - Rename one of the lanes that collide: a lane's name alone decides its partition.\n"
      "  - Or make a new store with more partitions (FF_FLOW_PARTITIONS); those of a store never change.\n");
}

TEST(PartitionCollisions, GivesNoHintsWhenNothingCollides) {
  const auto partition = std::to_string(partition_of_lane("default", 256));
  const auto row = std::string(9 - partition.size(), ' ') + partition + " | default | -\n";
  const auto report = report_of({"default"}, 256);
  EXPECT_TRUE(report.ends_with(row)) << report;
  EXPECT_TRUE(report.contains("lanes colliding: 0 (0.0%)\nseverity: Clean\n"));
}

TEST(PartitionCollisions, IsJudgedByTheShareOfLanesThatCollide) {
  const auto severity = [](std::size_t sharing, std::size_t total) {
    const auto report = report_of(lanes_with(sharing, total));
    EXPECT_TRUE(report.contains("lanes colliding: " + std::to_string(sharing) + " (")) << report;
    const auto start = report.find("severity: ") + 10;
    return report.substr(start, report.find('\n', start) - start);
  };
  EXPECT_EQ(severity(0, 20), "Clean");
  EXPECT_EQ(severity(2, 41), "Watch");      // 4.9 %
  EXPECT_EQ(severity(2, 40), "Elevated");   // 5 %
  EXPECT_EQ(severity(3, 20), "Elevated");   // 15 %
  EXPECT_EQ(severity(2, 13), "Remediate");  // 15.4 %
}

TEST(PartitionCollisions, RefusesBadAndRepeatedLanes) {
  const auto refusal = partition_collisions_report({"a", "b", "a"}, 256);
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().detail, "lanes: 'a' twice");
  EXPECT_FALSE(partition_collisions_report({"a\n"}, 256));
  EXPECT_FALSE(partition_collisions_report({}, 256));
  EXPECT_FALSE(partition_collisions_report({"a"}, 0));
}

TEST(PartitionCollisions, NeedOnlyLanesAndPartitionsToBeConfigured) {
  const Sources sources{.environment = {{"FF_LANES", "a,b,a"},
                                        {"FF_FLOW_PARTITIONS", "8"},
                                        {"FF_PORT", "none"},
                                        {"FF_BACKEND", "valkey"},
                                        {"FF_LISTEN_ADDR", "nowhere"}}};
  EXPECT_FALSE(load_config(sources));
  const auto config = load_config(sources, {"lanes", "partitions.flow"});
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->lanes, (Lanes{"a", "b", "a"}));
  EXPECT_EQ(config->engine.flow_partitions, 8);
  EXPECT_EQ(config->http.port, 9090);
  const auto bad = load_config({.environment = {{"FF_LANES", ""}}}, {"lanes"});
  EXPECT_FALSE(bad);
}

}  // namespace
}  // namespace flowfabric::server
