// Waiting for frames (06 §5.2; the numbers are those of §16).
#include <chrono>

#include "support/stream_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::chrono_literals;
using Tail = std::future<Result<StreamPage>>;

class Tailing : public StreamTest {
 protected:
  Tail wait_for(const ClaimedTask& task, std::string after = "0-0", std::int64_t block_ms = 20'000,
                FrameVisibility visibility = {}) {
    return engine().submit(
        TailStream{task.execution_id, task.attempt_index, std::move(after), block_ms, 50, visibility});
  }
  static bool waits(Tail& tail) { return tail.wait_for(50ms) == std::future_status::timeout; }
  static StreamPage page(Tail& tail) {
    if (tail.wait_for(10s) != std::future_status::ready) throw std::runtime_error("nobody has woken it");
    auto answer = tail.get();
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }
  static auto elapsed_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::steady_clock::now() - start;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Tailing, kStores, store_name);

TEST_P(Tailing, EndsWhenItsTimeIsUp) {  // 15
  const auto task = running();
  const auto start = std::chrono::steady_clock::now();
  auto waiting = wait_for(task, "0-0", 200);
  EXPECT_EQ(page(waiting), StreamPage{});
  EXPECT_GE(elapsed_since(start), 200ms);
}

TEST_P(Tailing, IsWokenByAFrame) {  // 16, 18
  const auto task = running();
  auto waiting = wait_for(task);
  EXPECT_TRUE(waits(waiting));
  const auto id = append(task, "now");
  EXPECT_EQ(payloads_of(page(waiting)), Log{"now"});
  // Existing frames come at once, and no frame comes twice.
  auto at_once = wait_for(task);
  EXPECT_EQ(payloads_of(page(at_once)), Log{"now"});
  auto next = wait_for(task, id);
  EXPECT_TRUE(waits(next));
  append(task, "then");
  EXPECT_EQ(payloads_of(page(next)), Log{"then"});
}

TEST_P(Tailing, IsNotWokenByOthers) {
  const auto task = running();
  const auto other = running();
  auto waiting = wait_for(task);
  append(other, "not for you");
  EXPECT_TRUE(waits(waiting));
  append(task, "for you");
  EXPECT_EQ(payloads_of(page(waiting)), Log{"for you"});
}

TEST_P(Tailing, IsWokenByTheEnd) {  // 21
  const auto task = running();
  const auto id = append(task, "all");
  auto waiting = wait_for(task, id);
  EXPECT_TRUE(waits(waiting));
  complete(task);
  const auto closed = page(waiting);
  EXPECT_TRUE(closed.frames.empty());
  EXPECT_EQ(closed.closed_reason, "attempt_success");
  auto late = wait_for(task, id);
  EXPECT_EQ(page(late).closed_reason, "attempt_success");
}

TEST_P(Tailing, WaitsForVisibleFrames) {  // 40
  const auto task = running();
  auto waiting = wait_for(task, "0-0", 20'000, FrameVisibility::exclude_best_effort);
  show(task, "a");
  show(task, "b");
  EXPECT_TRUE(waits(waiting));
  append(task, "c");
  EXPECT_EQ(payloads_of(page(waiting)), Log{"c"});
}

TEST_P(Tailing, ManyMayWait) {  // 19, 20
  const auto task = running();
  std::vector<Tail> waiting;
  for (int i = 0; i < 200; ++i) waiting.push_back(wait_for(task));
  EXPECT_TRUE(waits(waiting.back()));
  const auto start = std::chrono::steady_clock::now();
  append(task, "for all");
  EXPECT_LT(elapsed_since(start), 5s) << "those who wait are in nobody's way";
  for (auto& each : waiting) EXPECT_EQ(payloads_of(page(each)), Log{"for all"});
}

TEST_P(Tailing, EndsWithTheEngine) {
  const auto task = running();
  auto waiting = wait_for(task);
  EXPECT_TRUE(waits(waiting));
  engine().stop(1s);
  EXPECT_EQ(page(waiting), StreamPage{});
  auto late = wait_for(task);
  ASSERT_EQ(late.wait_for(10s), std::future_status::ready);
  EXPECT_FALSE(late.get());
}

// Another server writes what this one waits for.
class TailingTwoServers : public Tailing {};
INSTANTIATE_TEST_SUITE_P(TwoServers, TailingTwoServers, ::testing::Values("postgres"), store_name);

TEST_P(TailingTwoServers, IsWokenAcrossServers) {
  auto other = open(store().url());
  const auto task = running();
  std::string after = "0-0";
  for (int i = 0; i < 5; ++i) {
    auto waiting = wait_for(task, after);
    EXPECT_TRUE(waits(waiting));
    const auto start = std::chrono::steady_clock::now();
    const auto appended = other.call(frame(task, std::to_string(i)));
    ASSERT_TRUE(appended) << appended.error().to_string();
    EXPECT_EQ(payloads_of(page(waiting)), Log{std::to_string(i)});
    EXPECT_LT(elapsed_since(start), 1s) << "by the bell, not by a look now and then";
    after = appended->stream_id;
  }
  auto waiting = wait_for(task, after);
  EXPECT_TRUE(waits(waiting));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(other.call(completion(task)));
  EXPECT_EQ(page(waiting).closed_reason, "attempt_success");
  EXPECT_LT(elapsed_since(start), 1s);
}

}  // namespace
}  // namespace flowfabric
