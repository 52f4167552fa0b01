// What the clock queues for a record whose time has come: one operation, which decides under the batch's lock
// whose the record is and which rule really applies.
#pragma once

#include "core/rule.h"
#include "engine/operation.h"
#include "flowfabric/engine.h"
#include "store/store.h"

namespace flowfabric::engine {

struct DueOutcome {
  std::optional<Error> refusal{};
  bool is_foreign{false};  // it is left to other engines
  core::Rule rule{};       // none: no rule applied, or it failed before it was known which one does
  // It is still due, but for others, or only by rules that are off: this clock leaves it alone until then.
  std::optional<std::int64_t> rests_until_ms{};
  SteadyTime at{};
};

// The scope must outlive it.
Operation due_operation(const RecordKey& key, const core::ClockScope& scope, const EngineOptions& options,
                        std::function<void(const DueOutcome&)> done);

// `unknown` for none.
std::string_view shown_rule(core::Rule rule);

}  // namespace flowfabric::engine
