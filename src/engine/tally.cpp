#include "engine/tally.h"

#include <chrono>

namespace flowfabric::engine {

namespace {

using core::Noted;

constexpr std::array kAttemptOutcomes{"ok", "error", "timeout", "cancelled", "retry"};
constexpr std::array kExecutionOutcomes{"success", "failed", "cancelled", "expired"};

std::size_t index_of(Noted what) {
  return static_cast<std::size_t>(what);
}

std::int64_t this_second() {
  using namespace std::chrono;
  return duration_cast<seconds>(steady_clock::now().time_since_epoch()).count();
}

template <class Value>
Value& entry_of(std::map<std::string, Value, std::less<>>& entries, std::string_view label) {
  const auto it = entries.find(label);
  if (it != entries.end()) return it->second;
  return entries.size() < Tally::kMaxLabels ? entries[std::string(label)] : entries["other"];
}

}  // namespace

void Tally::add(const core::Note& note, std::string_view& last_label, LaneTally*& last_lane) {
  if (note.what == Noted::warning) return;
  if (note.what > Noted::execution_expired) {
    ++entry_of(labelled_[index_of(note.what)], note.label);
    if (note.what == Noted::frame) frame_bytes_ += static_cast<std::uint64_t>(note.amount);
    return;
  }
  // Most of a batch is about one lane.
  if (!last_lane || last_label != note.label) {
    last_lane = &entry_of(lanes_, note.label);
    last_label = note.label;
  }
  if (note.what <= Noted::attempt_retry) {
    ++last_lane->attempts[index_of(note.what)];
    return;
  }
  const auto outcome = index_of(note.what) - index_of(Noted::execution_success);
  last_lane->seconds[outcome].observe(static_cast<double>(note.amount) / 1e3);
}

void Tally::add_recent(Noted what, std::int64_t second) {
  if (what == Noted::execution_created) submitted_.add(second);
  if (what == Noted::execution_success) completed_.add(second);
  if (what == Noted::execution_failed) failed_.add(second);
}

void Tally::add(const BatchEffects& effects) {
  if (effects.notes.empty() && !effects.has_lease_events) return;
  std::lock_guard lock(mutex_);
  std::string_view last_label;
  LaneTally* last_lane = nullptr;
  const auto second = this_second();
  for (const auto& note : effects.notes) {
    add(note, last_label, last_lane);
    add_recent(note.what, second);
  }
  for (std::size_t i = 0; i < lease_events_.size(); ++i) lease_events_[i] += effects.lease_events[i];
}

void Tally::count_grant_claim(const std::string& lane, double seconds) {
  std::lock_guard lock(mutex_);
  entry_of(grant_claims_, lane).observe(seconds);
}

void Tally::add_to(EngineStats& stats) const {
  stats.renewals = {{"ok", renewed_}, {"error", not_renewed_}};
  std::lock_guard lock(mutex_);
  for (const auto& [name, lane] : lanes_) {
    auto& shown = stats.lanes[name];
    for (std::size_t i = 0; i < lane.attempts.size(); ++i) {
      if (lane.attempts[i] > 0) shown.attempts[kAttemptOutcomes[i]] = lane.attempts[i];
    }
    for (std::size_t i = 0; i < lane.seconds.size(); ++i) {
      if (lane.seconds[i].count() > 0) shown.seconds.emplace(kExecutionOutcomes[i], lane.seconds[i]);
    }
  }
  const auto labelled = [&](Noted what) {
    const auto& entries = labelled_[index_of(what)];
    return Counts(entries.begin(), entries.end());
  };
  stats.grant_claims.insert(grant_claims_.begin(), grant_claims_.end());
  stats.budget_hits = labelled(Noted::budget_hit);
  stats.quota_hits = labelled(Noted::quota_hit);
  stats.budget_breaches = labelled(Noted::budget_breach);
  stats.join_policies = labelled(Noted::join_policy);
  stats.siblings_cancelled_for = labelled(Noted::sibling_dispatched);
  stats.sibling_dispositions = labelled(Noted::sibling_disposition);
  stats.sibling_reconciliations = labelled(Noted::sibling_reconciliation);
  stats.unblocked = labelled(Noted::unblocked);
  stats.created = labelled(Noted::execution_created);
  const auto now = this_second();
  stats.submitted_per_second = submitted_.per_second(now);
  stats.completed_per_second = completed_.per_second(now);
  stats.failed_per_second = failed_.per_second(now);
  stats.frames = labelled(Noted::frame);
  stats.frame_bytes = frame_bytes_;
  for (const auto& [label, count] : labelled_[index_of(Noted::budget_reset)]) stats.budget_resets += count;
  for (std::size_t i = 0; i < lease_events_.size(); ++i) {
    stats.lease_events[std::string(enum_names<LeaseEventType>[i])] = lease_events_[i];
  }
}

}  // namespace flowfabric::engine
