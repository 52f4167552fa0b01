#include "engine/due_operation.h"

#include <limits>

#include "core/clock/scanner_filter.h"
#include "core/keys.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

// What is due only by rules that are off is looked at again after this time, although nothing has changed.
constexpr std::int64_t kLongestLeftMs = 600'000;
constexpr std::int64_t kLeftMs = 10'000;  // where nobody can tell when something else is due

// When a record that is due only by rules that are off may be due by another.
std::int64_t rest_of(const core::ClockRule& rule, const void* record, const core::Context& at) {
  if (!rule.next) return at.now_ms + kLeftMs;
  return std::min(rule.next(record, at.off).value_or(std::numeric_limits<std::int64_t>::max()),
                  at.now_ms + kLongestLeftMs);
}

// The rule of a record that has only one; otherwise it is not known before the record was read.
core::Rule only_rule(const core::RuleSet& rules) {
  auto only = core::Rule::none;
  int count = 0;
  for (std::size_t i = 0; i < enum_size<core::Rule>(); ++i) {
    if (!rules.has(static_cast<core::Rule>(i))) continue;
    only = static_cast<core::Rule>(i);
    ++count;
  }
  return count == 1 ? only : core::Rule::none;
}

void run(core::Unit& unit, const RecordKey& key, const core::ClockScope& scope, core::Context& at,
         DueOutcome& outcome) {
  outcome.is_foreign = !core::passes(unit, scope.filter, key);
  // The store has not found it so: it belongs to others since a moment ago.
  if (outcome.is_foreign) {
    outcome.rests_until_ms = at.now_ms + kLeftMs;
    outcome.rule = core::Rule::none;
    return;
  }
  outcome.rule = core::run_clock(unit, key, at);
  if (outcome.rule != core::Rule::none || at.off.is_empty()) return;
  const void* record = key.type->clock ? unit.find(key.type->place, key.key.get()) : nullptr;
  const auto due = record ? time_in(key.type->clock, record) : std::nullopt;
  if (due && *due <= at.now_ms) outcome.rests_until_ms = rest_of(core::clock_rule(*key.type), record, at);
}

}  // namespace

std::string_view shown_rule(core::Rule rule) {
  return rule == core::Rule::none ? "unknown" : enum_name(rule);
}

Operation due_operation(const RecordKey& key, const core::ClockScope& scope, const EngineOptions& options,
                        std::function<void(const DueOutcome&)> done) {
  Operation operation;
  operation.want = [key](core::Unit& unit) {
    // What another record guards is only read under that one's lock.
    if (key.type->is_guarded) unit.want<Execution>(key.type->key->owner(key.key.get()));
    unit.want(key.type->place, key.key.get());
  };
  // As long as the rule is not known; told if it fails.
  const DueOutcome unknown{.rule = only_rule(core::clock_rule(*key.type).rules)};
  auto outcome = std::make_shared<DueOutcome>(unknown);
  operation.run = [key, outcome, unknown, &scope](core::Unit& unit, core::Context& at) {
    at.off = scope.off;
    *outcome = unknown;
    run(unit, key, scope, at, *outcome);
    return engine::Outcome::keep;
  };
  operation.answer = [outcome, done = std::move(done)](const Error* refusal) {
    if (refusal) outcome->refusal = *refusal;
    outcome->at = std::chrono::steady_clock::now();
    done(*outcome);
  };
  operation.seed = random_seed();
  if (const auto* id = key.key_of<Execution>()) operation.affinity = core::affinity_of(*id);
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  return operation;
}

}  // namespace flowfabric::engine
