// Reads from all stores at once: what one answers, all must answer.
#pragma once

#include <gtest/gtest.h>

#include "simulation/dice.h"
#include "simulation/replica.h"

namespace flowfabric::simulation {

class ReplicaReads {
 public:
  ReplicaReads(Dice& dice, std::vector<Replica*> replicas) : dice_(dice), replicas_(std::move(replicas)) {}

 protected:
  // All pages of all stores.
  template <class List>
  std::vector<typename List::Answer> pages(List request) {
    std::vector<typename List::Answer> expected;
    for (auto* replica : replicas_) {
      std::vector<typename List::Answer> found;
      auto next = request;
      for (bool more = true; more;) {
        auto page = replica->read(next);
        if (!page) throw std::runtime_error(replica->name() + ": " + page.error().to_string());
        more = page->next_cursor.has_value();
        if (more) cursor_of(next) = *page->next_cursor;
        found.push_back(*std::move(page));
      }
      if (replica == replicas_.front())
        expected = std::move(found);
      else
        EXPECT_TRUE(found == expected) << replica->name() << " lists something else";
    }
    return expected;
  }

  template <class Read>
  Result<typename Read::Answer> compare_read(const Read& request) {
    auto expected = replicas_.front()->read(request);
    for (auto* replica : replicas_) {
      EXPECT_TRUE(replica->read(request) == expected)
          << replica->name() << " reads something else: " << boost::core::demangle(typeid(Read).name());
    }
    return expected;
  }

  std::uint32_t limit() { return static_cast<std::uint32_t>(dice_.pick({1, 3, 20, 1000})); }
  const Execution* some_execution(const State& state) {
    const auto& all = state.rows<Execution>();
    if (all.empty()) return nullptr;
    return &std::next(all.begin(), dice_.below(static_cast<std::int64_t>(all.size())))->second;
  }

  Dice& dice_;

 private:
  template <class List>
  static auto& cursor_of(List& request) {
    if constexpr (requires { request.cursor; })
      return request.cursor;
    else
      return request.after;
  }

  std::vector<Replica*> replicas_;
};

}  // namespace flowfabric::simulation
