// For tests of the committer: a session that stops at a gate before every transaction, does something else
// before commits on demand, and otherwise is that of a store; and operations that note how often they were
// run and answered.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "engine/committer.h"
#include "store/store.h"

namespace flowfabric::engine {

// Shared by the test and the session that the committer owns.
class Gate {
 public:
  void open() { let_pass(1'000'000'000); }
  void let_pass(int transactions) {
    std::lock_guard lock(mutex_);
    permits_ += transactions;
    changed_.notify_all();
  }
  // Waits until this many transactions have reached the gate, including those that passed.
  void wait_for_arrivals(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrivals_ >= count; });
  }
  // The next commits do this first: throwing, they fail.
  void fail_commit(std::function<void()> how) {
    std::lock_guard lock(mutex_);
    failures_.push_back(std::move(how));
  }
  void fail_begin(std::function<void()> how) {
    std::lock_guard lock(mutex_);
    begin_failures_.push_back(std::move(how));
  }

  void pass() {
    std::unique_lock lock(mutex_);
    ++arrivals_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return permits_ > 0; });
    --permits_;
    run_first(begin_failures_, lock);
  }
  void before_commit() {
    std::unique_lock lock(mutex_);
    run_first(failures_, lock);
  }

 private:
  using Failures = std::deque<std::function<void()>>;
  static void run_first(Failures& failures, std::unique_lock<std::mutex>& lock) {
    if (failures.empty()) return;
    const auto fail = std::move(failures.front());
    failures.pop_front();
    lock.unlock();
    fail();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int permits_{0};
  int arrivals_{0};
  Failures failures_;
  Failures begin_failures_;
};

class GatedSession final : public store::Session {
 public:
  GatedSession(std::shared_ptr<Gate> gate, std::unique_ptr<store::Session> inner)
      : gate_(std::move(gate)), inner_(std::move(inner)) {}

  std::int64_t begin(core::Unit& unit) override {
    gate_->pass();
    return inner_->begin(unit);
  }
  void commit(core::Unit& unit) override {
    gate_->before_commit();
    inner_->commit(unit);
  }
  void load(core::Unit& unit) override { inner_->load(unit); }
  bool loads_instantly() const override { return inner_->loads_instantly(); }
  bool has_other_writers() const override { return inner_->has_other_writers(); }
  std::optional<std::int64_t> time_of_load() const override { return inner_->time_of_load(); }
  void rollback() noexcept override { inner_->rollback(); }
  store::DueRecords due(const store::DueScan& scan) override { return inner_->due(scan); }
  std::optional<std::int64_t> next_due(const store::DueScan& scan) override { return inner_->next_due(scan); }
  std::vector<Attempt> attempts_of(const ExecutionId& id) override { return inner_->attempts_of(id); }
  std::vector<ListedExecution> listed(const std::vector<core::ListPosition>& positions) override {
    return inner_->listed(positions);
  }
  std::map<LaneCountKey, std::int64_t> count_executions() override { return inner_->count_executions(); }
  std::map<LaneCountKey, std::int64_t> lane_counts() override { return inner_->lane_counts(); }
  std::vector<core::ListPosition> scan(const store::ListScan& scan) override { return inner_->scan(scan); }
  std::vector<Group> groups(const store::GroupFilter& filter, std::size_t limit) override {
    return inner_->groups(filter, limit);
  }
  std::vector<ExecutionId> expired_leases(const store::ExpiredLeaseScan& scan) override {
    return inner_->expired_leases(scan);
  }
  store::FlowCounts count_flow(const FlowId& flow,
                               const std::vector<std::string>& harmless_reasons) override {
    return inner_->count_flow(flow, harmless_reasons);
  }
  std::vector<Edge> edges_of(const FlowKey& flow) override { return inner_->edges_of(flow); }
  std::vector<EdgeGroup> joins_of(const FlowKey& flow) override { return inner_->joins_of(flow); }
  std::vector<store::NodeName> node_names(const FlowId& flow) override { return inner_->node_names(flow); }
  std::vector<SuspensionKey> suspended(const store::SuspendedScan& scan) override {
    return inner_->suspended(scan);
  }
  std::vector<Frame> frames(const store::FrameScan& scan) override { return inner_->frames(scan); }
  std::vector<Stream> streams_of(const ExecutionId& id) override { return inner_->streams_of(id); }
  std::vector<OperatorEvent> operator_events_of(const ExecutionId& id) override {
    return inner_->operator_events_of(id);
  }
  std::vector<store::LeaseCount> count_leases(const std::vector<std::string>& instances,
                                              std::int64_t now_ms) override {
    return inner_->count_leases(instances, now_ms);
  }
  std::vector<LeaseEvent> pauses_of(const ExecutionId& id, std::size_t limit) override {
    return inner_->pauses_of(id, limit);
  }
  store::EventRange event_range(EventFamily family) override { return inner_->event_range(family); }
  std::optional<std::int64_t> oldest_event() override { return inner_->oldest_event(); }
  void fill(store::KeyPage& page) override { inner_->fill(page); }
  void fill(store::EventPage& page) override { inner_->fill(page); }
  std::map<PublicState, std::int64_t> count_lane(const std::string& lane) override {
    return inner_->count_lane(lane);
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::unique_ptr<store::Session> inner_;
};

// The outcomes of numbered operations.
class Answers {
 public:
  struct Fate {
    int runs{0};
    std::vector<std::optional<ErrorCode>> answers;
    std::string last_detail;
  };

  void ran(int number) {
    std::lock_guard lock(mutex_);
    ++fates_[number].runs;
  }
  void answered(int number, const Error* refusal) {
    std::lock_guard lock(mutex_);
    auto& fate = fates_[number];
    fate.answers.push_back(refusal ? std::optional(refusal->code) : std::nullopt);
    fate.last_detail = refusal ? refusal->detail : "";
    ++count_;
    changed_.notify_all();
  }
  Fate wait_for(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !fates_[number].answers.empty(); });
    return fates_[number];
  }
  bool wait_for_count(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }
  std::map<int, Fate> all() {
    std::lock_guard lock(mutex_);
    return fates_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Fate> fates_;
  std::size_t count_{0};
};

// Changes a lane's count, so that there is something to commit.
inline Operation numbered(Answers& answers, int number, std::size_t bytes = 1) {
  Operation operation;
  operation.run = [&answers, number](core::Unit& unit, core::Context&) {
    answers.ran(number);
    unit.count("lane", PublicState::waiting, +1);
    return Outcome::keep;
  };
  operation.answer = [&answers, number](const Error* refusal) { answers.answered(number, refusal); };
  operation.bytes = bytes;
  operation.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  return operation;
}

}  // namespace flowfabric::engine
