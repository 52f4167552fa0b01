// Listings: pages of executions, lanes and workers. Every listing walks an index, in the order of the index.
//
// The next page begins at `next_cursor`, which is absent on the last page. A page may hold fewer than `limit`
// entries although more follow, because a listing looks at a bounded number of candidates per call.
#pragma once

#include <utility>

#include "flowfabric/operations.h"

namespace flowfabric {

// Every condition that is given must match.
struct ExecutionFilter {
  std::optional<std::string> lane_id{};
  std::vector<PublicState> states{};  // any of them; empty: all
  std::optional<std::string> namespace_{};
  std::optional<std::string> execution_kind{};
  std::optional<FlowId> flow_id{};
  Tags tags{};                                   // all of them
  std::optional<std::int64_t> created_after{};   // exclusive
  std::optional<std::int64_t> created_before{};  // exclusive
  bool operator==(const ExecutionFilter&) const = default;
};

// Reads a filter from the words of a query: `lane`, `state` (repeatable), `namespace`, `kind`, `flow`, `tag`
// (`key=value`, repeatable), `created_after`, `created_before`. The error names an unknown word.
Result<ExecutionFilter> parse_filter(const std::vector<std::pair<std::string, std::string>>& words);

struct ExecutionSummary {
  ExecutionId execution_id;
  std::string execution_kind;
  std::string namespace_;
  std::string lane_id;
  PublicState public_state{};
  std::int32_t priority{};
  std::optional<FlowId> flow_id;
  std::int64_t created_at{};
  std::optional<std::int64_t> started_at;
  std::optional<std::int64_t> completed_at;
  std::uint32_t attempts{};
  Tags tags;
  bool operator==(const ExecutionSummary&) const = default;
};
struct ExecutionPage {
  std::vector<ExecutionSummary> executions;
  std::optional<std::string> next_cursor;
  bool operator==(const ExecutionPage&) const = default;
};

enum class ListOrder : std::uint8_t { newest, oldest };
BOOST_DESCRIBE_ENUM(ListOrder, newest, oldest)

struct ListExecutions {
  using Answer = ExecutionPage;
  ExecutionFilter filter{};
  ListOrder order{ListOrder::newest};  // by time of creation
  std::uint32_t limit{50};             // 1–1 000
  std::string cursor{};
};

// The ids of one partition, ascending.
struct PartitionPage {
  std::vector<ExecutionId> executions;
  std::optional<std::string> next_cursor;  // an execution id
  bool operator==(const PartitionPage&) const = default;
};
struct ListPartition {
  using Answer = PartitionPage;
  std::uint16_t partition{};
  std::string cursor{};
  std::uint32_t limit{50};  // up to 1 000; 0: an empty page
};

struct ExpiredLease {
  ExecutionId execution_id;
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  std::string worker_instance_id;
  std::int64_t expires_at{};
  std::uint32_t attempt_index{};
  bool operator==(const ExpiredLease&) const = default;
};
struct ExpiredLeasePage {
  std::vector<ExpiredLease> leases;
  std::optional<std::string> next_cursor;
  bool operator==(const ExpiredLeasePage&) const = default;
};
// Leases that have run out and that no worker has taken over yet, by (expiry, execution id).
struct ListExpiredLeases {
  using Answer = ExpiredLeasePage;
  std::optional<std::int64_t> as_of{};  // the store's time when absent or later
  std::optional<std::string> namespace_{};
  std::uint32_t limit{1000};  // 1–10 000
  std::string cursor{};
};

}  // namespace flowfabric
