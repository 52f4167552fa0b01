// The clock's thread, with a clock that really runs: nothing that is thrown on it ends the process, and it is
// told when it does not come round.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "flowfabric/engine.h"
#include "support/test_store.h"

namespace flowfabric::tests {
namespace {

using namespace std::chrono_literals;

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Time that cannot be told on the clock's thread while `fails`.
class Time {
 public:
  std::int64_t now() {
    std::lock_guard lock(mutex_);
    const auto me = std::this_thread::get_id();
    if (learns_) clock_thread_ = me;
    if (fails && me == clock_thread_) throw std::runtime_error("nobody knows what time it is");
    return wall_ms();
  }
  // No other caller may ask meanwhile.
  void learn_thread() {
    set_learns(true);
    for (;;) {
      std::this_thread::sleep_for(10ms);
      std::lock_guard lock(mutex_);
      if (clock_thread_ == std::thread::id()) continue;
      learns_ = false;
      return;
    }
  }
  std::atomic<bool> fails{false};

 private:
  void set_learns(bool learns) {
    std::lock_guard lock(mutex_);
    learns_ = learns;
  }
  std::mutex mutex_;
  bool learns_{false};
  std::thread::id clock_thread_;
};

class ClockThread : public ::testing::TestWithParam<const char*> {
 protected:
  Engine open(std::function<void(const std::string&)> failure) {
    auto engine = Engine::open(store_.url(), {.clock_interval = 50ms,
                                              .failure = std::move(failure),
                                              .now_ms = [time = time_] { return time->now(); }});
    if (!engine) throw std::runtime_error(engine.error().to_string());
    time_->learn_thread();
    return *std::move(engine);
  }
  static ExecutionId delayed(Engine& engine) {
    const auto created = engine.call(CreateExecution{.execution_kind = "k", .delay_until = wall_ms() + 100});
    if (!created) throw std::runtime_error(created.error().to_string());
    return created->execution_id;
  }
  static bool is_promoted_within(Engine& engine, const ExecutionId& id, std::chrono::seconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
      const auto seen = engine.call(DescribeExecution{id});
      if (seen && seen->state.public_state == PublicState::waiting) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  TestStore store_{GetParam()};
  std::shared_ptr<Time> time_ = std::make_shared<Time>();
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClockThread, ::testing::Values("memory", "sqlite", "postgres"),
                         [](const auto& store) { return std::string(store.param); });

TEST_P(ClockThread, GoesOnAfterAnException) {
  std::mutex mutex;
  std::vector<std::string> told;
  auto engine = open([&](const std::string& text) {
    std::lock_guard lock(mutex);
    told.push_back(text);
  });
  time_->fails = true;
  const auto id = delayed(engine);
  std::this_thread::sleep_for(10'500ms);
  const auto stats = engine.stats();
  EXPECT_TRUE(stats.clock_is_stalled) << stats.since_clock_look_ms;
  EXPECT_NE(stats.clock_trouble.find("nobody knows what time it is"), std::string::npos);
  {
    std::lock_guard lock(mutex);
    ASSERT_EQ(told.size(), 1u) << "once a minute";
    EXPECT_NE(told[0].find("nobody knows what time it is"), std::string::npos) << told[0];
  }
  time_->fails = false;
  EXPECT_TRUE(is_promoted_within(engine, id, 10s));
  // The rule takes effect a moment before the look is over.
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (engine.stats().clock_is_stalled && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(engine.stats().clock_is_stalled);
  EXPECT_EQ(engine.stats().clock_trouble, "");
}

// Not even if the callback throws something that is not an exception.
TEST_P(ClockThread, SurvivesWhoeverIsTold) {
  auto engine = open([](const std::string&) { throw 42; });
  time_->fails = true;
  const auto id = delayed(engine);
  std::this_thread::sleep_for(500ms);
  EXPECT_GE(engine.stats().clock_restarts, 1u);
  time_->fails = false;
  EXPECT_TRUE(is_promoted_within(engine, id, 10s)) << "after a rest of five seconds";
}

}  // namespace
}  // namespace flowfabric::tests
