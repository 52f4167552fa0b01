#include "engine/due_operation.h"

#include <limits>

#include "core/flow/cancel_flow.h"
#include "core/flow/dependency.h"
#include "core/keys.h"
#include "core/lifecycle/bulk.h"
#include "core/lifecycle/dead_worker.h"
#include "core/lifecycle/expiry.h"
#include "core/limits/budget.h"
#include "core/limits/quota.h"
#include "core/registry/registration.h"
#include "core/registry/unblock.h"
#include "core/registry/worker.h"
#include "core/scanner_filter.h"
#include "core/stream/stream.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"
#include "core/transition.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

// What is due only by rules that are off is looked at again after this time, although nothing has changed.
constexpr std::int64_t kLongestLeftMs = 600'000;
constexpr std::int64_t kLeftMs = 10'000;  // where nobody can tell when something else is due

// When a record that is due only by rules that are off may be due by another.
std::int64_t rest_of(const Execution& execution, const core::Context& at) {
  return std::min(core::earliest_clock(execution, at.off).value_or(std::numeric_limits<std::int64_t>::max()),
                  at.now_ms + kLongestLeftMs);
}
template <class Record>
std::int64_t rest_of(const Record& record, const core::Context& at) {
  if constexpr (requires { core::next_clock(record, at.off); }) {
    return std::min(core::next_clock(record, at.off).value_or(std::numeric_limits<std::int64_t>::max()),
                    at.now_ms + kLongestLeftMs);
  }
  return at.now_ms + kLeftMs;
}

// "ff_route 17", "ff_exec_core {fp:7}:…"
template <class Key>
std::string shown_key(const Key& key) {
  if constexpr (requires { key.to_string(); }) {
    return key.to_string();
  } else {
    std::string shown;
    for_each_field(key, [&]<class Field>(std::string_view, const Field& field) {
      if (!shown.empty()) shown += ' ';
      if constexpr (std::is_enum_v<Field>)
        shown += enum_name(field);
      else if constexpr (std::is_integral_v<Field>)
        shown += std::to_string(field);
      else if constexpr (requires { field.to_string(); })
        shown += field.to_string();
      else
        shown += field;
    });
    return shown;
  }
}

// The rule of a record that has only one; otherwise it is not known before the record was read.
template <class Record>
constexpr core::Rule only_rule() {
  auto only = core::Rule::none;
  int count = 0;
  for (std::size_t i = 0; i < enum_size<core::Rule>(); ++i) {
    if (!core::kRulesOf<Record>.has(static_cast<core::Rule>(i))) continue;
    only = static_cast<core::Rule>(i);
    ++count;
  }
  return count == 1 ? only : core::Rule::none;
}
core::Rule only_rule_of(const store::DueKey& key) {
  return std::visit([]<class Record>(const store::Due<Record>&) { return only_rule<Record>(); }, key);
}

}  // namespace

std::string shown(const store::DueKey& any) {
  return std::visit(
      []<class Record>(const store::Due<Record>& due) {
        std::string text = Record::table;
        return text.append(" ").append(shown_key(due.key));
      },
      any);
}

std::string_view shown_rule(core::Rule rule) {
  return rule == core::Rule::none ? "unknown" : enum_name(rule);
}

Operation due_operation(const store::DueKey& key, const core::ClockScope& scope, const EngineOptions& options,
                        std::function<void(const DueOutcome&)> done) {
  Operation operation;
  operation.want = [key](core::Unit& unit) {
    std::visit(
        [&]<class Record>(const store::Due<Record>& due) {
          // What another record guards is only read under that one's lock.
          if constexpr (is_guarded<Record>) unit.want<Execution>(owner_of(due.key));
          unit.want<Record>(due.key);
        },
        key);
  };
  // As long as the rule is not known; told if it fails.
  const DueOutcome unknown{.rule = only_rule_of(key)};
  auto outcome = std::make_shared<DueOutcome>(unknown);
  operation.run = [key, outcome, unknown, &scope](core::Unit& unit, core::Context& at) {
    at.off = scope.off;
    *outcome = unknown;
    std::visit(
        [&]<class Record>(const store::Due<Record>& due) {
          outcome->is_foreign = !core::passes<Record>(unit, scope.filter, due.key);
          // The store has not found it so: it belongs to others since a moment ago.
          if (outcome->is_foreign) outcome->rests_until_ms = at.now_ms + kLeftMs;
          outcome->rule = outcome->is_foreign ? core::Rule::none : core::run_due(unit, due.key, at);
          if (outcome->rule != core::Rule::none || outcome->is_foreign || at.off.is_empty()) return;
          if constexpr (has_clock<Record>) {
            const auto* record = unit.find<Record>(due.key);
            const bool is_due = record && record->next_due_at_ms && *record->next_due_at_ms <= at.now_ms;
            if (is_due) outcome->rests_until_ms = rest_of(*record, at);
          }
        },
        key);
    return engine::Outcome::keep;
  };
  operation.answer = [outcome, done = std::move(done)](const Error* refusal) {
    if (refusal) outcome->refusal = *refusal;
    outcome->at = std::chrono::steady_clock::now();
    done(*outcome);
  };
  operation.seed = random_seed();
  if (const auto* execution = std::get_if<store::Due<Execution>>(&key)) {
    operation.affinity = core::affinity_of(execution->key);
  }
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  return operation;
}

}  // namespace flowfabric::engine
