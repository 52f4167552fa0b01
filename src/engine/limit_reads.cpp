#include "engine/limit_reads.h"

#include <algorithm>

#include "core/attachment.h"
#include "core/budget.h"
#include "core/quota.h"
#include "core/why.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxPage = 1000;
// The window of a larger policy is shown as it is counted, which may be a little late.
constexpr std::uint32_t kMaxWindow = 10'000;

Result<const Budget*> find_budget(Readers& readers, Reading& reading, const BudgetId& id) {
  const auto* budget = reading.find<Budget>({partition_of(id.uuid, readers.partitions().budget), id});
  if (!budget) return std::unexpected(core::no_such_budget(id));
  return budget;
}

template <class Question>
std::vector<typename Question::Found> ask(Reading& reading, const Question& question) {
  reading.unit.want_answer(question);
  reading.session.load(reading.unit);
  return reading.unit.ask(question);
}

}  // namespace

Result<BudgetStatus> answer(Readers& readers, const ReadBudget& request) {
  return readers.read([&](Reading& reading) -> Result<BudgetStatus> {
    const auto budget = find_budget(readers, reading, request.budget_id);
    if (!budget) return std::unexpected(budget.error());
    return core::view(**budget);
  });
}

Result<SpendingPage> answer(Readers& readers, const ListSpending& request) {
  if (request.limit < 1 || request.limit > kMaxPage) {
    return fail_with(ErrorCode::invalid_input, "limit: out of range", "Ask for 1 to 1000 executions.");
  }
  return readers.read([&](Reading& reading) -> Result<SpendingPage> {
    const auto budget = find_budget(readers, reading, request.budget_id);
    if (!budget) return std::unexpected(budget.error());
    auto keys = ask(reading, core::SpendingOf{request.budget_id, request.cursor, request.limit + 1});
    SpendingPage page;
    if (keys.size() > request.limit) {
      keys.resize(request.limit);
      page.next_cursor = owner_of(keys.back());
    }
    for (const auto& key : keys) reading.unit.want<Spend>(key);
    reading.session.load(reading.unit);
    for (const auto& key : keys) {
      const auto* spend = reading.unit.find<Spend>(key);
      if (spend && spend->reset_count == (*budget)->reset_count) {
        page.spendings.push_back({owner_of(key), spend->spent});
      }
    }
    return page;
  });
}

Result<QuotaStatus> answer(Readers& readers, const ReadQuotaPolicy& request) {
  return readers.read([&](Reading& reading) -> Result<QuotaStatus> {
    const auto& id = request.quota_policy_id;
    const QuotaPolicyKey key{partition_of(id.uuid, readers.partitions().quota), id};
    const auto* policy = reading.find<QuotaPolicy>(key);
    if (!policy) return std::unexpected(core::no_such_quota_policy(id));
    auto status = core::view(*policy);
    const auto entries = ask(reading, core::WindowOf{key, kMaxWindow});
    if (entries.size() == kMaxWindow) return status;
    const auto left_at = reading.now_ms - core::window_ms(*policy);
    status.admitted_in_window = static_cast<std::uint64_t>(
        std::ranges::count_if(entries, [&](const auto& entry) { return entry.window_at_ms > left_at; }));
    return status;
  });
}

Result<WaitingExplanation> answer(Readers& readers, const ExplainWaiting& request) {
  return readers.read([&](Reading& reading) -> Result<WaitingExplanation> {
    core::Context at{.now_ms = reading.now_ms, .partitions = readers.partitions()};
    reading.unit.begin_operation();
    for (;;) {
      try {
        return core::explain(reading.unit, request.execution_id, at);
      } catch (const core::NotLoaded&) {
        reading.unit.undo();
        reading.session.load(reading.unit);
      }
    }
  });
}

}  // namespace flowfabric::engine
