// PostgreSQL: what a claim read of a quota policy, without a lock, may be out of date when the claim commits.
#include <gtest/gtest.h>

#include <set>

#include "core/lifecycle/claim.h"
#include "flowfabric/engine.h"
#include "support/postgres_database.h"
#include "unit/engine_gated_session.h"

namespace flowfabric::engine {
namespace {

const QuotaPolicyId kQuota{*Uuid::parse("cccccccc-0000-4000-8000-000000000001")};

class RefusedClaim : public testing::Test {
 protected:
  RefusedClaim() {
    auto opened = Engine::open(database_.url(), {.clock_interval = std::chrono::milliseconds(0),
                                                 .now_ms = [this] { return now(); }});
    engine_ = std::make_unique<Engine>(*std::move(opened));
    store_ = *store::open_store(database_.url(), {.now_ms = [this] { return now(); }});
    waiting_ = std::make_unique<WaitingClaims>(1, [](SteadyTime) {});
    gate_->open();
    committer_ = std::make_unique<Committer>(std::make_unique<GatedSession>(gate_, store_->open_writer()),
                                             EngineOptions{}, *waiting_, [](const BatchEffects&) {});
  }

  template <class Request>
  typename Request::Answer must(Request request) {
    auto answer = engine_->call(std::move(request));
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }
  ExecutionId create() { return must(CreateExecution{.policy = {.quota_policy_id = kQuota}}).execution_id; }
  std::vector<ClaimedTask> claim() { return must(ClaimTasks{.worker_id = "w"}); }
  void complete(const ClaimedTask& task) {
    must(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence});
  }
  void advance(std::int64_t ms) {
    now_ += ms;
    ASSERT_TRUE(engine_->run_due());
  }
  // Through another server's session, which does `meanwhile` when it has decided and before it commits.
  std::vector<ClaimedTask> claim_elsewhere(std::function<void()> meanwhile) {
    gate_->fail_commit(std::move(meanwhile));
    auto claimed = std::make_shared<std::promise<Result<std::vector<ClaimedTask>>>>();
    auto found = std::make_shared<Result<std::vector<ClaimedTask>>>();
    Operation operation;
    operation.run = [found](core::Unit& unit, core::Context& at) {
      *found = core::apply(unit, ClaimTasks{.worker_id = "elsewhere"}, at);
      return *found ? Outcome::keep : Outcome::undo;
    };
    operation.answer = [found, claimed](const Error* refusal) {
      if (refusal) *found = std::unexpected(*refusal);
      claimed->set_value(*found);
    };
    operation.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    committer_->submit(std::move(operation));
    auto tasks = claimed->get_future().get();
    if (!tasks) throw std::runtime_error(tasks.error().to_string());
    return *std::move(tasks);
  }

 private:
  std::int64_t now() const { return now_; }

  tests::PostgresDatabase database_;
  std::atomic<std::int64_t> now_{1'750'000'000'000};
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<Gate> gate_{std::make_shared<Gate>()};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<WaitingClaims> waiting_;
  std::unique_ptr<Committer> committer_;
};

TEST_F(RefusedClaim, IsNotHeldBackByWhatWasClearedMeanwhile) {
  must(CreateQuotaPolicy{.quota_policy_id = kQuota, .max_concurrent = 1});
  create();
  const auto first = claim();
  ASSERT_EQ(first.size(), 1u);
  std::set<ExecutionId> left{create()};
  ASSERT_TRUE(claim().empty()) << "so the policy knows already that it holds something back";
  left.insert(create());

  bool was_refused = false;
  auto tasks = claim_elsewhere([&] {
    // It has found the only slot taken. Now the slot is free, the clock lets go what waited for it, and finds
    // nothing else that does.
    was_refused = true;
    complete(first.front());
    advance(0);
    advance(1000);
  });
  EXPECT_TRUE(was_refused);
  for (int round = 0; round < 10 && !left.empty(); ++round) {
    for (const auto& task : tasks) {
      complete(task);
      left.erase(task.execution_id);
    }
    advance(30'000);
    tasks = claim();
  }
  EXPECT_TRUE(left.empty()) << "an execution waits for good";
}

}  // namespace
}  // namespace flowfabric::engine
