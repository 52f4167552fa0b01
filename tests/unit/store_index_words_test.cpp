// The words in the conditions of partial indexes are those of the rules that they stand for: an index that
// was made with other words would hide rows.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "core/index_rules.h"
#include "store/sqlite/database.h"
#include "store/store.h"
#include "support/postgres_database.h"
#include "support/temporary_folder.h"

namespace flowfabric::tests {
namespace {

using Words = std::set<std::string>;
using WordsByIndex = std::map<std::string, Words>;

// The quoted words of each index that has any.
void add_words(WordsByIndex& found, const std::string& index, const std::string& definition) {
  static const std::regex word("'([^']*)'");
  for (auto it = std::sregex_iterator(definition.begin(), definition.end(), word);
       it != std::sregex_iterator(); ++it) {
    found[index].insert((*it)[1]);
  }
}

WordsByIndex expected() {
  return {{"ff_lease_event_pauses", Words(core::kPauseReasons.begin(), core::kPauseReasons.end())},
          {"ff_exec_core_leases", {std::string(enum_name(core::kHeld))}},
          {"ff_exec_core_expired", {std::string(enum_name(OwnershipState::lease_expired_reclaimable))}},
          {"ff_exec_core_blocked", {std::string(enum_name(EligibilityState::blocked_by_route))}}};
}

TEST(IndexWords, AreTheRulesInSqlite) {
  const TemporaryFolder folder;
  ASSERT_TRUE(store::migrate_store("sqlite:" + folder.file("a.db"), {}));
  const store::sqlite::Connection connection(folder.file("a.db"), store::sqlite::Access::read_only);
  WordsByIndex found;
  auto query =
      connection.prepare("select name, sql from sqlite_schema where type='index' and sql is not null");
  const auto text = [&](int column) {
    return std::string(reinterpret_cast<const char*>(sqlite3_column_text(query.get(), column)));
  };
  while (query.step()) add_words(found, text(0), text(1));
  EXPECT_EQ(found, expected());
}

TEST(IndexWords, AreTheRulesInPostgres) {
  const PostgresDatabase database;
  WordsByIndex found;
  for (const auto& row :
       database.query("select indexname, indexdef from pg_indexes where indexname like 'ff\\_%'")) {
    add_words(found, row.at(0), row.at(1));
  }
  EXPECT_EQ(found, expected());
}

}  // namespace
}  // namespace flowfabric::tests
