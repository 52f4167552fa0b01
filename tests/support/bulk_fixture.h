// Many executions at once, and listings that say what became of them. In the end the whole store is checked.
#pragma once

#include "support/operator_printing.h"
#include "support/paging.h"
#include "support/reopen_fixture.h"

namespace flowfabric::tests {

// `Fixture` is EngineTest, ReopenTest or another descendant of EngineFixture.
template <class Fixture>
class Bulk : public Fixture {
 protected:
  void TearDown() override {
    const auto report = this->must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << report;
    Fixture::TearDown();
  }

  using Ids = std::vector<ExecutionId>;

  // All must succeed.
  Ids create_all(const std::vector<CreateExecution>& requests) {
    constexpr std::size_t most = 1000;
    Ids ids;
    for (std::size_t start = 0; start < requests.size(); start += most) {
      const auto end = std::min(start + most, requests.size());
      const auto first = requests.begin() + static_cast<std::ptrdiff_t>(start);
      const auto last = requests.begin() + static_cast<std::ptrdiff_t>(end);
      for (const auto& answer : this->must(CreateExecutions{{first, last}})) {
        ids.push_back(answer.value().execution_id);
        this->remember(ids.back());
      }
    }
    return ids;
  }
  Ids create_many(std::size_t count, const CreateExecution& request = {.execution_kind = "test"}) {
    return create_all(std::vector<CreateExecution>(count, request));
  }

  std::vector<ExecutionSummary> list(ListExecutions request) {
    const auto pages =
        pages_of(std::move(request), [&](const ListExecutions& next) { return this->must(next); });
    return entries_of(pages, &ExecutionPage::executions);
  }
  // Newest first.
  Ids matching(const ExecutionFilter& filter) { return ids_of(list({.filter = filter, .limit = 1000})); }
};
// Once for all tests, in bulk_fixture.cpp.
extern template class Bulk<EngineTest>;
extern template class Bulk<ReopenTest>;

}  // namespace flowfabric::tests
