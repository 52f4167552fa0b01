#include "disk/state_checks.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "flowfabric/engine.h"
#include "store/sqlite/database.h"

namespace flowfabric::disk {

namespace {

using store::sqlite::Access;
using store::sqlite::Connection;
using store::sqlite::Durability;

// The executions of a store, which must be in order.
void look_into(const std::string& url, std::vector<std::string>& ids) {
  EngineOptions options;
  options.clock_interval = std::chrono::milliseconds(0);
  auto engine = Engine::open(url, std::move(options));
  ASSERT_TRUE(engine) << "does not open: " << engine.error().to_string();
  const auto report = engine->call(CheckStore{});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->found, 0u) << report->violations.front().where << ": " << report->violations.front().what;
  ListExecutions request{.limit = 1000};
  do {
    const auto page = engine->call(request);
    ASSERT_TRUE(page) << page.error().to_string();
    for (const auto& execution : page->executions) ids.push_back(execution.execution_id.to_string());
    request.cursor = page->next_cursor.value_or("");
  } while (!request.cursor.empty());
  EXPECT_EQ(ids.size(), report->executions);
}

void check_nothing_is_made_up(const std::vector<std::string>& ids, const Witness& witness) {
  for (const auto& id : ids) {
    EXPECT_TRUE(witness.asked().contains(id)) << id << ": nobody had asked for it";
    EXPECT_FALSE(witness.refused().contains(id)) << id << ": it was refused as not stored, and is there";
  }
}

void check_nothing_is_lost_again(const std::vector<std::string>& ids, const Witness& witness) {
  const std::set<std::string> there(ids.begin(), ids.end());
  for (const auto& id : witness.stored()) {
    EXPECT_TRUE(there.contains(id)) << id << ": it was on disk when the process began, and is lost again";
  }
}

// The last execution that was asked for says how much there must be.
std::size_t last_asked(const std::vector<std::string>& ids, const Witness& witness) {
  std::size_t last = 0;
  for (const auto& id : ids) {
    const auto asked = witness.asked().find(id);
    if (asked != witness.asked().end()) last = std::max(last, asked->second);
  }
  return last;
}

void check_everything(const std::string& folder, Promise promise, const Witness& witness) {
  const auto url = url_of(folder, promise);
  std::vector<std::string> ids;
  ASSERT_NO_FATAL_FAILURE(look_into(url, ids));
  check_nothing_is_made_up(ids, witness);
  check_nothing_is_lost_again(ids, witness);
  if (promise == Promise::full) {
    e2e::check_acknowledged(url, witness.ledger());
  } else {
    Witness before(witness.trace());
    before.advance_to(last_asked(ids, witness));
    e2e::check_acknowledged(url, before.ledger());
  }
  Connection connection(folder + "/a.db", Access::read_only);
  const auto number = [&](const std::string& sql) { return connection.number(sql); };
  e2e::expect_none(number, "SQLite finds it unsound",
                   "select 1 from pragma_integrity_check where integrity_check<>'ok'");
  e2e::check_nothing_is_half_there(number);
}

// In words. They are no failures of the running test: it tells what it makes of them.
template <class Check>
std::vector<std::string> failures_of(Check check) {
  testing::TestPartResultArray results;
  {
    using Reporter = testing::ScopedFakeTestPartResultReporter;
    const Reporter reporter(Reporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    try {
      check();
    } catch (const std::exception& thrown) {
      ADD_FAILURE() << "thrown: " << thrown.what();
    } catch (const store::StoreFailure& failure) {
      ADD_FAILURE() << "thrown: " << failure.error.to_string();
    }
  }
  std::vector<std::string> failures;
  for (int i = 0; i < results.size(); ++i) {
    if (!results.GetTestPartResult(i).passed()) failures.emplace_back(results.GetTestPartResult(i).message());
  }
  return failures;
}

}  // namespace

std::string url_of(const std::string& folder, Promise promise) {
  return "sqlite:" + folder + "/a.db" + (promise == Promise::normal ? "?synchronous=normal" : "");
}

std::set<std::string> executions_in(const std::string& folder, Promise promise) {
  std::vector<std::string> ids;
  failures_of([&] { look_into(url_of(folder, promise), ids); });
  return {ids.begin(), ids.end()};
}

std::vector<std::string> check_state(const std::string& folder, Promise promise, const Witness& witness) {
  auto complaints = witness.complaints();
  std::ranges::move(failures_of([&] { check_everything(folder, promise, witness); }),
                    std::back_inserter(complaints));
  return complaints;
}

}  // namespace flowfabric::disk
