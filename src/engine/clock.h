// The one clock: a thread that sleeps until something is due, asks the store what, and queues one operation
// for each. It also lets waiting claims go when their time is up, and refuses what queued too long.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/expiry.h"
#include "engine/committers.h"
#include "store/store.h"

namespace flowfabric::engine {

class Clock {
 public:
  Clock(store::Store& store, Committers& committers, WaitingClaims& waiting, const EngineOptions& options);
  ~Clock();

  // Runs every rule whose time has come and returns how many records were looked at.
  Result<std::size_t> run_due();

  // Something will be due at this time of the store.
  void note_due(std::int64_t due_at_ms);
  // Another server may have offered something that claims are waiting for here.
  void hurry();
  // A claim waits until then.
  void note_waiting(SteadyTime until);
  void stop();

  void add_to(EngineStats& stats) const;

 private:
  // What became of a due record.
  struct Outcome {
    bool succeeded{false};
    std::optional<ErrorCode> refusal{};
    bool is_foreign{false};  // it is left to other engines
    core::Rule rule{};
    SteadyTime at{};
  };
  static constexpr std::size_t kRules = enum_names<core::Rule>.size();
  struct Failures {
    int in_a_row{0};
    std::uint64_t skip_until{0};
  };

  void loop();
  void let_go();
  void look();
  void begin_look(SteadyTime began);
  // All rules were looked for; those that had nothing to do were through when that was clear.
  void end_look();
  bool act_on(const store::Agenda& agenda);
  std::optional<store::Agenda> read_agenda();
  void plan(const std::optional<store::Agenda>& agenda);
  std::vector<store::DueKey> find_due();
  bool others_are_busy();
  void run_page(const std::vector<store::DueKey>& keys);
  bool run_bulk(const store::DueKey& key);
  bool go_round_damage(const store::DueKey& key, const Outcome& outcome);
  bool run_now(std::move_only_function<engine::Outcome(core::Unit&, core::Context&)> run);
  Operation due_operation(const store::DueKey& key, std::function<void(Outcome)> done) const;
  bool has_set_aside();
  bool is_set_aside(const store::DueKey& key) const;
  void note_outcome(const store::DueKey& key, const Outcome& outcome);
  Result<std::size_t> run_due(int pages);
  Result<void> trim_events(int steps);
  bool trim_step();
  void note_success(const store::DueKey& key, bool succeeded);
  bool is_stopping();

  std::unique_ptr<store::Session> session_;  // used under session_mutex_
  const bool is_shared_;
  Committers& committers_;
  WaitingClaims& waiting_;
  const EngineOptions options_;

  std::mutex session_mutex_;
  // Records whose rule fails again and again are left alone for a while, so that they hold up nothing else.
  std::map<store::DueKey, Failures> failures_;
  std::uint64_t cycle_{0};
  // What the filter leaves to others; looked at again after a while, since tags may change.
  std::map<store::DueKey, SteadyTime> foreign_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_{false};
  SteadyTime next_rules_{};  // when to look for due records again
  SteadyTime sleeping_until_{};
  SteadyTime next_trim_{};
  bool only_set_aside_is_due_{false};
  // One moment on both clocks, to tell when a time of the store will come.
  SteadyTime anchor_{};
  std::int64_t anchor_ms_{0};
  Random random_;
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> filtered_{0};
  std::array<std::atomic<std::uint64_t>, kRules> fired_{};
  std::array<std::atomic<std::uint64_t>, kRules> failed_by_rule_{};
  // The look in progress: when it began, when what is due was known, when each rule was through. Under
  // session_mutex_.
  SteadyTime look_began_{};
  SteadyTime look_found_{};
  std::array<SteadyTime, kRules> through_at_{};
  mutable std::mutex figures_mutex_;
  std::uint64_t looks_{0};
  std::array<Distribution, kRules> seconds_{};
  SteadyTime last_look_{std::chrono::steady_clock::now()};
  std::int64_t lag_ms_{0};
  std::uint64_t resting_{0};
  std::thread thread_;
};

}  // namespace flowfabric::engine
