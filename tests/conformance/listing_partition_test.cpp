// The ids of one partition (02 §4.1).
#include <algorithm>

#include "support/bulk_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class PartitionListing : public Bulk<EngineTest> {
 protected:
  static ExecutionId id_in(std::uint16_t partition, std::uint8_t number) {
    ExecutionId id{partition, {}};
    id.uuid.bytes[0] = number;
    return id;
  }
  void make(const Ids& ids) {
    for (const auto& id : ids) create({.execution_id = id});
  }
  Ids list_partition(std::uint16_t partition, std::uint32_t limit = 50, const std::string& cursor = "") {
    const auto pages = pages_of(ListPartition{.partition = partition, .cursor = cursor, .limit = limit},
                                [&](const ListPartition& request) { return must(request); });
    for (const auto& page : pages) {
      EXPECT_LE(page.executions.size(), limit);
      if (page.next_cursor) {
        EXPECT_EQ(*page.next_cursor, page.executions.back().to_string());
      }
    }
    return entries_of(pages, &PartitionPage::executions);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, PartitionListing, kStores, store_name);

TEST_P(PartitionListing, OfAnEmptyPartitionIsEmpty) {
  make({id_in(7, 1)});

  EXPECT_EQ(must(ListPartition{.partition = 8}), PartitionPage{});
  EXPECT_EQ(must(ListPartition{.partition = 255}), PartitionPage{});
  EXPECT_EQ(must(ListPartition{.partition = 256}), PartitionPage{}) << "that there is not";
}

TEST_P(PartitionListing, IsAscendingAndOfOnePartition) {
  make({id_in(7, 200), id_in(7, 3), id_in(8, 4), id_in(7, 127), id_in(6, 5), id_in(7, 128), id_in(0, 1)});

  const Ids all{id_in(7, 3), id_in(7, 127), id_in(7, 128), id_in(7, 200)};
  for (const std::uint32_t limit : {1u, 2u, 3u, 4u, 5u, 1000u}) EXPECT_EQ(list_partition(7, limit), all);
  EXPECT_EQ(list_partition(0), Ids{id_in(0, 1)});
}

TEST_P(PartitionListing, HasThemInEveryState) {
  const auto task = running();
  complete(task);
  const auto waiting = create();
  const auto delayed = create({.delay_until = kStart + kHour});
  Ids all{task.execution_id, waiting, delayed};
  std::sort(all.begin(), all.end());

  EXPECT_EQ(list_partition(waiting.partition), all);
}

TEST_P(PartitionListing, TheCursorIsExclusiveAndNeedNotExist) {
  make({id_in(7, 10), id_in(7, 20), id_in(7, 30)});

  EXPECT_EQ(list_partition(7, 50, id_in(7, 10).to_string()), (Ids{id_in(7, 20), id_in(7, 30)}));
  EXPECT_EQ(list_partition(7, 50, id_in(7, 11).to_string()), (Ids{id_in(7, 20), id_in(7, 30)}));
  EXPECT_EQ(list_partition(7, 50, id_in(7, 30).to_string()), Ids{});
}

TEST_P(PartitionListing, AFullLastPageHasNoCursor) {
  make({id_in(7, 10), id_in(7, 20)});

  EXPECT_EQ(must(ListPartition{.partition = 7, .limit = 2}).next_cursor, std::nullopt);
  EXPECT_EQ(must(ListPartition{.partition = 7, .limit = 1}).next_cursor, id_in(7, 10).to_string());
}

TEST_P(PartitionListing, LaterOnesShowUpBehindTheCursor) {
  make({id_in(7, 10), id_in(7, 30)});
  const auto first = must(ListPartition{.partition = 7, .limit = 1});
  make({id_in(7, 5), id_in(7, 20)});

  EXPECT_EQ(list_partition(7, 1, first.next_cursor.value()), (Ids{id_in(7, 20), id_in(7, 30)}));
}

TEST_P(PartitionListing, ALimitOfZeroIsAnEmptyPage) {
  make({id_in(7, 10)});

  EXPECT_EQ(must(ListPartition{.partition = 7, .limit = 0}), PartitionPage{});
}

TEST_P(PartitionListing, APageHasAtMostAThousand) {
  auto all = create_many(1001);
  std::sort(all.begin(), all.end());
  const auto partition = all.front().partition;

  expect_error(ListPartition{.partition = partition, .limit = 1001}, ErrorCode::invalid_input);
  EXPECT_EQ(must(ListPartition{.partition = partition, .limit = 1000}).executions.size(), 1000u);
  EXPECT_EQ(list_partition(partition, 1000), all);
}

TEST_P(PartitionListing, ABadCursorIsRefused) {
  make({id_in(7, 10)});
  for (const std::string cursor :
       {"nonsense", "{fp:7}:", "{fp:7}:xyz", "00000000-0000-0000-0000-000000000000"}) {
    expect_error(ListPartition{.partition = 7, .cursor = cursor}, ErrorCode::invalid_input);
  }
  const auto elsewhere = id_in(8, 10).to_string();
  expect_error(ListPartition{.partition = 7, .cursor = elsewhere}, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace flowfabric
