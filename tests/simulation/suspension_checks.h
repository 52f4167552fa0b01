// Checks of the stored suspensions that hold after any operation.
#pragma once

#include <gtest/gtest.h>

#include "core/suspension/suspension.h"
#include "simulation/state.h"

namespace flowfabric::simulation {

// An execution's suspensions, past and present, with everything that is kept for them.
class SuspensionsOf {
 public:
  SuspensionsOf(const State& state, const Suspension& row)
      : state_(state), row_(row), id_(row.owner()), name_(id_.to_string()) {
    for (std::uint32_t i = 0; i + 1 < row.suspension_count; ++i) {
      const auto past = state.rows<PastSuspension>().find({id_.partition, id_.uuid, i});
      if (past != state.rows<PastSuspension>().end()) all_.push_back(&past->second.details);
    }
    if (row.suspension_count > 0) all_.push_back(&row.details);
    for (std::uint32_t i = 0; i < row.signal_count; ++i) {
      const auto signal = state.rows<Signal>().find({id_.partition, id_.uuid, i});
      if (signal != state.rows<Signal>().end()) signals_.push_back(&signal->second);
    }
  }

  void check() const {
    ASSERT_EQ(all_.size(), row_.suspension_count) << name_ << ": its history has gaps";
    ASSERT_EQ(signals_.size(), row_.signal_count) << name_ << ": its signals have gaps";
    const bool open = core::is_open(row_);
    EXPECT_EQ(row_.next_due_at_ms, open ? row_.details.timeout_at_ms : std::nullopt) << name_;
    for (const auto* details : all_) check(*details, open && details == &row_.details);
    check_signals();
  }

  // A signal that was enough has resumed one suspension, and each was resumed once.
  void check_signals() const {
    const auto enough = [](const Signal* signal) {
      return signal->observed_effect == SignalEffect::resume_condition_satisfied;
    };
    const auto resumed = [](const SuspensionDetails* details) { return was_resumed_by_signal(*details); };
    EXPECT_EQ(std::ranges::count_if(signals_, enough), std::ranges::count_if(all_, resumed)) << name_;
    std::map<WaitpointId, std::uint32_t> arrived, matched;
    for (const auto* signal : signals_) {
      ++arrived[signal->waitpoint_id];
      // A timeout signals without anybody having delivered it.
      if (signal->signal_category == "timeout") --arrived[signal->waitpoint_id];
    }
    for (const auto& [waitpoint_id, count] : arrived) {
      EXPECT_EQ(waitpoint(waitpoint_id).signal_count, count) << name_;
      EXPECT_LE(waitpoint(waitpoint_id).matched_signal_count, count) << name_;
    }
  }

 private:
  // A timeout signals, too, unless it is told to let the execution go on without one.
  static bool was_resumed_by_signal(const SuspensionDetails& details) {
    const bool goes_on_without = details.resume_trigger == ResumeTrigger::timeout &&
                                 details.timeout_behavior == TimeoutBehavior::auto_resume;
    return core::is_shown_to_worker(details) && !goes_on_without;
  }

  const Waitpoint& waitpoint(const WaitpointId& waitpoint_id) const {
    return state_.rows<Waitpoint>().at(core::waitpoint_key(id_, waitpoint_id));
  }

  void check(const SuspensionDetails& details, bool open) const {
    EXPECT_EQ(details.closed_at_ms.has_value(), !open) << name_;
    EXPECT_EQ(details.close_reason.empty(), open) << name_;
    EXPECT_TRUE(open || details.satisfied_set.empty()) << name_ << ": what was met is dropped with the end";
    for (const auto& key : core::waitpoints_of(id_, details)) {
      const auto& bound = waitpoint(key.waitpoint_id);
      EXPECT_EQ(bound.suspension_id, details.suspension_id) << name_;
      EXPECT_TRUE(open || bound.state == WaitpointState::closed) << name_ << ": an open waitpoint was left";
      EXPECT_NE(bound.state, WaitpointState::pending) << name_;
    }
    std::size_t enough = 0;
    for (const auto& key : core::signal_keys(id_, details.satisfier_signals)) {
      ASSERT_LT(key.signal_index, signals_.size()) << name_;
      const auto effect = signals_[key.signal_index]->observed_effect;
      EXPECT_TRUE(core::is_satisfier(effect)) << name_ << ": " << enum_name(effect);
      if (effect == SignalEffect::resume_condition_satisfied) ++enough;
    }
    EXPECT_EQ(enough, was_resumed_by_signal(details) ? 1u : 0u) << name_;
  }

  const State& state_;
  const Suspension& row_;
  ExecutionId id_;
  std::string name_;
  std::vector<const SuspensionDetails*> all_;  // oldest first
  std::vector<const Signal*> signals_;         // in the order of acceptance
};

inline void check_waitpoint(const State& state, const Waitpoint& waitpoint) {
  const auto id = waitpoint.owner();
  const auto name = id.to_string() + " " + waitpoint.waitpoint_id.to_string();
  const auto row = state.rows<Suspension>().find(core::suspension_key(id));
  ASSERT_NE(row, state.rows<Suspension>().end()) << name;
  const bool pending = waitpoint.state == WaitpointState::pending;
  EXPECT_EQ(waitpoint.next_due_at_ms, pending ? waitpoint.expires_at_ms : std::nullopt) << name;
  EXPECT_EQ(waitpoint.closed_at_ms.has_value(), waitpoint.state == WaitpointState::closed) << name;
  EXPECT_EQ(waitpoint.suspension_id.has_value(), waitpoint.activated_at_ms.has_value()) << name;
  EXPECT_FALSE(pending && waitpoint.activated_at_ms) << name;
  if (waitpoint.state == WaitpointState::active) {
    EXPECT_TRUE(core::is_open(row->second)) << name << " takes signals that nobody waits for";
    EXPECT_EQ(waitpoint.suspension_id, row->second.details.suspension_id) << name;
  }
}

inline void check_suspensions(const State& state) {
  for (const auto& [key, row] : state.rows<Suspension>()) SuspensionsOf(state, row).check();
  for (const auto& [key, waitpoint] : state.rows<Waitpoint>()) check_waitpoint(state, waitpoint);
  for (const auto& [id, execution] : state.rows<Execution>()) {
    const auto row = state.rows<Suspension>().find(core::suspension_key(id));
    const bool open = row != state.rows<Suspension>().end() && core::is_open(row->second);
    EXPECT_EQ(execution.state.lifecycle_phase == LifecyclePhase::suspended, open) << id.to_string();
    if (open) {
      EXPECT_EQ(row->second.details.attempt_index, execution.attempt.attempt_index) << id.to_string();
    }
  }
  // No record of the parts is left alone.
  std::size_t history = 0;
  std::size_t signals = 0;
  for (const auto& [key, row] : state.rows<Suspension>()) {
    history += row.suspension_count - (row.suspension_count > 0 ? 1 : 0);
    signals += row.signal_count;
  }
  EXPECT_EQ(state.rows<PastSuspension>().size(), history);
  EXPECT_EQ(state.rows<Signal>().size(), signals);
  std::size_t active = 0;
  for (const auto& [key, secret] : state.rows<HmacKey>()) {
    EXPECT_EQ(secret.active, !secret.expires_at_ms.has_value()) << secret.kid;
    active += secret.active ? 1 : 0;
  }
  EXPECT_EQ(active, state.rows<Keystore>().size()) << "one secret signs";
}

}  // namespace flowfabric::simulation
