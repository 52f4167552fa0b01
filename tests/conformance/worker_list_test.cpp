// Listing workers and reading their events (02 §12): order, pages, cursors.
#include "support/engine_fixture.h"
#include "support/operator_printing.h"
#include "support/paging.h"
#include "support/worker_words.h"

namespace flowfabric {
namespace {

using namespace tests;

class WorkerList : public EngineTest, protected WorkerWords {
 protected:
  void enroll(const std::string& name_space, const std::string& instance, std::int64_t ttl_ms = 60'000) {
    must(registration({.worker_instance_id = instance, .namespace_ = name_space, .liveness_ttl_ms = ttl_ms}));
  }
  Log list(std::uint32_t limit = 1000, std::optional<std::string> name_space = {}) {
    const auto pages = pages_of(ListWorkers{.namespace_ = std::move(name_space), .limit = limit},
                                [&](const ListWorkers& request) { return must(request); });
    for (const auto size : page_sizes(pages, &WorkerPage::workers)) EXPECT_LE(size, limit);
    return instances_of(entries_of(pages, &WorkerPage::workers));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, WorkerList, kStores, store_name);

TEST_P(WorkerList, IsByNamespaceAndInstance) {
  enroll("b", "i1");
  enroll("a", "i2");
  enroll("", "i9");
  enroll("a", "i10");
  enroll("ab", "i0");
  enroll("a", "I3");

  const Log all{"/i9", "a/I3", "a/i10", "a/i2", "ab/i0", "b/i1"};
  for (const std::uint32_t limit : {1u, 2u, 3u, 5u, 6u, 7u, 1000u, 10'000u}) {
    EXPECT_EQ(list(limit), all) << "limit " << limit;
  }
  EXPECT_EQ(list(1, "a"), (Log{"a/I3", "a/i10", "a/i2"}));
  EXPECT_EQ(list(1, ""), Log{"/i9"}) << "the empty namespace is one, too";
  EXPECT_EQ(list(1, "zzz"), Log{});
}

TEST_P(WorkerList, HasACursorOnlyWhenMoreFollow) {
  enroll("", "a");
  enroll("", "b");

  EXPECT_TRUE(must(ListWorkers{.limit = 1}).next_cursor);
  EXPECT_FALSE(must(ListWorkers{.limit = 2}).next_cursor);
  EXPECT_FALSE(must(ListWorkers{.limit = 3}).next_cursor);
}

TEST_P(WorkerList, TheLapsedAreLeftOutAndHideNobody) {
  for (int i = 0; i < 20; ++i) {
    const auto instance = "i" + std::to_string(10 + i);
    enroll("", instance, i % 5 == 4 ? 60'000 : 1000);
  }
  tick(1000);

  for (const std::uint32_t limit : {1u, 3u, 100u})
    EXPECT_EQ(list(limit), (Log{"/i14", "/i19", "/i24", "/i29"}));
}

TEST_P(WorkerList, ChangesBetweenPagesDoNotDisturbIt) {
  for (const auto* instance : {"b", "d", "f", "h"}) enroll("", instance);
  const auto first = must(ListWorkers{.limit = 2});
  ASSERT_EQ(instances_of(first.workers), (Log{"/b", "/d"}));
  must(MarkWorkerDead{.worker_instance_id = "d"});
  enroll("", "a");
  enroll("", "e");

  const auto rest = must(ListWorkers{.cursor = first.next_cursor.value(), .limit = 10});
  EXPECT_EQ(instances_of(rest.workers), (Log{"/e", "/f", "/h"}));
}

TEST_P(WorkerList, ABadCursorOrLimitIsRefused) {
  enroll("", "a");
  for (const auto* cursor : {"nonsense", "!", "a", "{}"}) {
    expect_error(ListWorkers{.cursor = cursor}, ErrorCode::invalid_input);
  }
  expect_error(ListWorkers{.limit = 0}, ErrorCode::invalid_input);
  expect_error(ListWorkers{.limit = 10'001}, ErrorCode::invalid_input);
}

TEST_P(WorkerList, EventsAreReadByPosition) {
  enroll("a", "i1");
  tick(5);
  must(HeartbeatWorker{"i1", "a"});
  must(MarkWorkerDead{"i1", "a", "bye"});

  const auto all = must(ReadWorkerEvents{});
  ASSERT_EQ(event_log(all), (Log{"a/i1 registered", "a/i1 heartbeat", "a/i1 marked_dead bye"}));
  EXPECT_LT(all[0].event_id, all[1].event_id);
  EXPECT_LT(all[1].event_id, all[2].event_id);
  EXPECT_EQ(all[0].occurred_at, kStart);
  EXPECT_EQ(all[1].occurred_at, kStart + 5);
  for (const auto& event : all) EXPECT_EQ(event.worker_id, "w");
  EXPECT_EQ(must(ReadWorkerEvents{.after = all[0].event_id, .limit = 1}), std::vector{all[1]});
  EXPECT_TRUE(must(ReadWorkerEvents{.after = all[2].event_id}).empty());
}

}  // namespace
}  // namespace flowfabric
