#include "engine/limit_reads.h"

#include <algorithm>

#include "core/limits/attachment.h"
#include "core/limits/breach.h"
#include "core/limits/budget.h"
#include "core/limits/quota.h"
#include "core/views/why.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxPage = 1000;
// The window of a larger policy is shown as it is counted, which may be a little late.
constexpr std::uint32_t kMaxWindow = 10'000;

Result<const Budget*> find_budget(Readers& readers, Reading& reading, const BudgetId& id) {
  const auto* budget = reading.find<Budget>({partition_of(id.uuid, readers.partitions().budget), id});
  if (!budget || budget->deleted_at_ms) return std::unexpected(core::no_such_budget(id));
  return budget;
}

Result<void> check_page(std::uint32_t limit) {
  if (limit >= 1 && limit <= kMaxPage) return {};
  return fail_with(ErrorCode::invalid_input, "limit: out of range", "Ask for 1 to 1000 at once.");
}

// The records after a key, in the order of the keys; those that `shown` refuses take no place on the page.
// `next` is set if there are more.
template <class Record, class Shown>
std::vector<const Record*> page_of(Reading& reading, std::optional<typename Record::Key> after,
                                   std::uint32_t limit, bool& more, Shown&& shown) {
  std::vector<const Record*> page;
  for (;;) {
    const auto keys = reading.session.keys_after<Record>(after, kMaxPage);
    for (const auto& key : keys) reading.unit.want<Record>(key);
    reading.session.load(reading.unit);
    for (const auto& key : keys) {
      const auto* record = reading.unit.find<Record>(key);
      if (!record || !shown(*record)) continue;
      more = page.size() == limit;
      if (more) return page;
      page.push_back(record);
    }
    if (keys.size() < kMaxPage) return page;
    after = keys.back();
  }
}

QuotaStatus status_of(Reading& reading, const QuotaPolicy& policy) {
  auto status = core::view(policy);
  const auto entries = reading.ask(core::WindowOf{policy.key(), kMaxWindow});
  if (entries.size() == kMaxWindow) return status;
  const auto left_at = reading.now_ms - core::window_ms(policy);
  status.admitted_in_window = static_cast<std::uint64_t>(
      std::ranges::count_if(entries, [&](const auto& entry) { return entry.window_at_ms > left_at; }));
  return status;
}

}  // namespace

Result<BudgetStatus> answer(Readers& readers, const ReadBudget& request) {
  return readers.read([&](Reading& reading) -> Result<BudgetStatus> {
    const auto budget = find_budget(readers, reading, request.budget_id);
    if (!budget) return std::unexpected(budget.error());
    return core::view(**budget);
  });
}

Result<BudgetPage> answer(Readers& readers, const ListBudgets& request) {
  if (auto ok = check_page(request.limit); !ok) return std::unexpected(ok.error());
  return readers.read([&](Reading& reading) -> Result<BudgetPage> {
    std::optional<BudgetKey> after;
    if (request.cursor)
      after = {partition_of(request.cursor->uuid, readers.partitions().budget), *request.cursor};
    bool more = false;
    const auto found = page_of<Budget>(reading, after, request.limit, more,
                                       [](const Budget& budget) { return !budget.deleted_at_ms; });
    BudgetPage page;
    for (const auto* budget : found) page.budgets.push_back(core::view(*budget));
    if (more) page.next_cursor = page.budgets.back().budget_id;
    return page;
  });
}

Result<BreachHistory> answer(Readers& readers, const ListBreaches& request) {
  return readers.read([&](Reading& reading) -> Result<BreachHistory> {
    const auto budget = find_budget(readers, reading, request.budget_id);
    if (!budget) return std::unexpected(budget.error());
    const auto keys = core::breach_keys((*budget)->key());
    for (const auto& key : keys) reading.unit.want<Breach>(key);
    reading.session.load(reading.unit);
    BreachHistory history;
    for (const auto& key : keys) {
      if (const auto* breach = reading.unit.find<Breach>(key))
        history.breaches.push_back(core::view(*breach));
    }
    std::ranges::sort(history.breaches, std::greater<>(), &BudgetBreach::number);
    return history;
  });
}

Result<SpendingPage> answer(Readers& readers, const ListSpending& request) {
  if (auto ok = check_page(request.limit); !ok) return std::unexpected(ok.error());
  return readers.read([&](Reading& reading) -> Result<SpendingPage> {
    const auto budget = find_budget(readers, reading, request.budget_id);
    if (!budget) return std::unexpected(budget.error());
    auto keys = reading.ask(core::SpendingOf{request.budget_id, request.cursor, request.limit + 1});
    SpendingPage page;
    if (keys.size() > request.limit) {
      keys.resize(request.limit);
      page.next_cursor = owner_of(keys.back());
    }
    for (const auto& key : keys) reading.unit.want<Spend>(key);
    reading.session.load(reading.unit);
    for (const auto& key : keys) {
      const auto* spend = reading.unit.find<Spend>(key);
      if (spend && spend->reset_count == (*budget)->reset_count && !spend->spent.empty()) {
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
    if (!policy || policy->is_deleted) return std::unexpected(core::no_such_quota_policy(id));
    return status_of(reading, *policy);
  });
}

Result<QuotaPage> answer(Readers& readers, const ListQuotaPolicies& request) {
  if (auto ok = check_page(request.limit); !ok) return std::unexpected(ok.error());
  return readers.read([&](Reading& reading) -> Result<QuotaPage> {
    std::optional<QuotaPolicyKey> after;
    if (request.cursor)
      after = {partition_of(request.cursor->uuid, readers.partitions().quota), *request.cursor};
    bool more = false;
    // The limits of a lane's keys are shown by the lane.
    const auto found = page_of<QuotaPolicy>(
        reading, after, request.limit, more,
        [](const QuotaPolicy& policy) { return !policy.is_deleted && policy.lane_id.empty(); });
    QuotaPage page;
    for (const auto* policy : found) page.policies.push_back(status_of(reading, *policy));
    if (more) page.next_cursor = page.policies.back().quota_policy_id;
    return page;
  });
}

Result<WaitingExplanation> answer(Readers& readers, const ExplainWaiting& request) {
  return readers.read([&](Reading& reading) -> Result<WaitingExplanation> {
    core::Context at{.now_ms = reading.now_ms, .partitions = readers.partitions()};
    return reading.run([&](core::Unit& unit) { return core::explain(unit, request.execution_id, at); });
  });
}

}  // namespace flowfabric::engine
