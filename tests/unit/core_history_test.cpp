// The story of an execution tells its pauses, whatever else a store takes for one.
#include <gtest/gtest.h>

#include "core/views/history.h"

namespace flowfabric::core {
namespace {

TEST(History, TellsOnlyPauses) {
  const Execution execution{.created_at_ms = 1};
  const ExecutionSpec spec;
  Life life{.execution = execution, .spec = spec};
  life.pauses = {{.event_type = LeaseEventType::released, .reason = kWorkerDelay, .occurred_at_ms = 2},
                 {.event_type = LeaseEventType::released, .reason = "completed", .occurred_at_ms = 3},
                 {.event_type = LeaseEventType::acquired, .reason = kClaimResumed, .occurred_at_ms = 4},
                 {.event_type = LeaseEventType::acquired, .reason = "", .occurred_at_ms = 5}};
  std::vector<std::string> told;
  for (const auto& entry : history(life)) told.push_back(entry.what);
  EXPECT_EQ(told, (std::vector<std::string>{"created", "delayed", "attempt_resumed"}));
}

}  // namespace
}  // namespace flowfabric::core
