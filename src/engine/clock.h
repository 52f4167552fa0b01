// The one clock: a thread that sleeps until something is due, asks the store what, and queues one operation
// for each. It also lets waiting claims go when their time is up, and refuses what queued too long.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/rule.h"
#include "engine/committers.h"
#include "engine/due_operation.h"
#include "engine/failure_log.h"
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
  // What is due, but not for this clock. Once it is due at another time, that may have changed.
  struct Left {
    std::int64_t due_at_ms{};
    std::int64_t until_ms{};
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
  Result<bool> act_on(const store::Agenda& agenda);
  Result<store::Agenda> read_agenda();
  store::AgendaQuestion question(std::vector<std::string> waiting_lanes);
  void plan(const store::Agenda& agenda);
  std::vector<store::DueRecord> find_due();
  bool others_are_busy();
  void run_page(const std::vector<store::DueRecord>& page);
  bool run_bulk(const RecordKey& key);
  bool go_round_damage(const RecordKey& key, const DueOutcome& outcome);
  template <class Step>
  std::optional<Error> attempt(Step step);
  void note_trouble(const Error& error);
  void recover(const Error& thrown);
  void tell_failure(const RecordKey& key, core::Rule rule, const Error& error);
  SteadyTime next_look() const { return std::max(next_rules_, not_before_); }
  bool run_now(std::move_only_function<engine::Outcome(core::Unit&, core::Context&)> run);
  bool has_set_aside();
  bool sets_aside() const;
  bool is_set_aside(const store::DueRecord& record) const;
  void note_outcome(const store::DueRecord& record, const DueOutcome& outcome);
  Result<std::size_t> run_due(int pages);
  Result<void> trim_events(int steps);
  bool trim_step();
  void note_success(const RecordKey& key, bool succeeded);
  bool is_stopping();

  std::unique_ptr<store::Session> session_;  // used under session_mutex_
  const bool is_shared_;
  Committers& committers_;
  WaitingClaims& waiting_;
  const EngineOptions options_;
  const core::ClockScope scope_;

  std::mutex session_mutex_;
  // Records whose rule fails again and again are left alone for a while, so that they hold up nothing else.
  std::map<RecordKey, Failures> failures_;
  std::uint64_t cycle_{0};
  std::map<RecordKey, Left> left_;
  bool some_are_unreadable_{false};  // of what was due at the last look
  FailureLog failure_log_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_{false};
  SteadyTime next_rules_{};  // when to look for due records again
  SteadyTime not_before_{};  // after a look that ended by an exception
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
  std::uint64_t restarts_{0};
  std::string trouble_;
  std::array<Distribution, kRules> seconds_{};
  SteadyTime last_look_{std::chrono::steady_clock::now()};
  std::int64_t lag_ms_{0};
  std::uint64_t resting_{0};
  std::thread thread_;
};

}  // namespace flowfabric::engine
