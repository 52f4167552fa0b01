// The SQLite schema says the same as the described records, and every query that the store really makes goes
// through an index.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>

#include "flowfabric/engine.h"
#include "model/describe.h"
#include "model/records.h"
#include "store/sqlite/database.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {
namespace {

std::vector<std::string> texts(const Connection& connection, const std::string& sql, int column) {
  std::vector<std::string> found;
  auto query = connection.prepare(sql);
  while (query.step()) {
    found.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(query.get(), column)));
  }
  return found;
}

template <class Record>
std::vector<std::string> described_columns() {
  std::vector<std::string> names;
  for_each_column<Record>([&]<class Field>(std::string_view name) { names.emplace_back(name); });
  return names;
}

TEST(SqliteSchema, EveryTableHasTheColumnsOfItsRecord) {
  const tests::TemporaryFolder folder;
  ASSERT_TRUE(migrate_store("sqlite:" + folder.file("a.db"), {}));
  const Connection connection(folder.file("a.db"), Access::read_only);
  std::size_t tables = 0;
  const auto check = [&]<class Record>() {
    auto stored =
        texts(connection, std::string("select name from pragma_table_info('") + Record::table + "')", 0);
    auto described = described_columns<Record>();
    std::ranges::sort(stored);
    std::ranges::sort(described);
    EXPECT_EQ(stored, described) << Record::table;
    ++tables;
  };
  for_each_type<Records>(check);
  for_each_type<Events>(check);
  EXPECT_EQ(tables, 44u);
}

TEST(SqliteSchema, TheFirstColumnsOfARecordAreItsPrimaryKey) {
  const tests::TemporaryFolder folder;
  ASSERT_TRUE(migrate_store("sqlite:" + folder.file("a.db"), {}));
  const Connection connection(folder.file("a.db"), Access::read_only);
  for_each_type<Records>([&]<class Record>() {
    auto key = texts(
        connection, std::string("select name from pragma_table_info('") + Record::table + "') where pk>0", 0);
    auto columns = described_columns<Record>();
    columns.resize(column_count<typename Record::Key>());
    // Some keys have their partition last.
    std::ranges::sort(key);
    std::ranges::sort(columns);
    EXPECT_EQ(key, columns) << Record::table;
  });
}

// Notes the text of every statement that any connection of this process runs.
class Listener {
 public:
  Listener() {
    heard().clear();
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Listener::attach));
  }
  ~Listener() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&Listener::attach)); }

  static std::set<std::string>& heard() {
    static std::set<std::string> all;
    return all;
  }

 private:
  static int attach(sqlite3* connection, char**, const sqlite3_api_routines*) {
    sqlite3_trace_v2(
        connection, SQLITE_TRACE_STMT,
        [](unsigned, void*, void* statement, void*) {
          static std::mutex mutex;
          std::lock_guard lock(mutex);
          heard().insert(sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
          return 0;
        },
        nullptr);
    return SQLITE_OK;
  }
};

// Makes the engine run every kind of query it has.
void exercise(const std::string& url) {
  auto engine = Engine::open(url, {.clock_interval = std::chrono::milliseconds(0)});
  ASSERT_TRUE(engine) << engine.error().to_string();
  std::optional<ExecutionId> id;
  for (int i = 0; i < 40; ++i) {
    const auto created = engine->call(CreateExecution{.execution_kind = "k",
                                                      .idempotency_key = "key-" + std::to_string(i),
                                                      .policy = {.dedup_window_ms = 1}});
    ASSERT_TRUE(created) << created.error().to_string();
    id = created->execution_id;
  }
  // Several claims of a batch read on where the one before has stopped.
  for (int round = 0; round < 4; ++round) {
    std::vector<std::future<Result<std::vector<ClaimedTask>>>> claims;
    for (int i = 0; i < 5; ++i) claims.push_back(engine->submit(ClaimTasks{.worker_id = "w"}));
    for (auto& claim : claims) {
      const auto tasks = claim.get();
      ASSERT_TRUE(tasks && tasks->size() == 1);
      ASSERT_TRUE(engine->call(CompleteExecution{
          .execution_id = tasks->at(0).execution_id, .fence = tasks->at(0).fence, .result = "r"}));
    }
  }
  ASSERT_TRUE(engine->run_due());
  ASSERT_TRUE(engine->call(DescribeExecution{*id}));
  ASSERT_TRUE(engine->call(ListAttempts{*id}));
  ASSERT_TRUE(engine->call(CountLane{}));
  ASSERT_TRUE(engine->call(ReadLeaseEvents{}));
  ASSERT_TRUE(engine->call(ReadCompletions{}));
  ASSERT_TRUE(engine->call(ReadHistory{*id}));
  for (const auto* name_space : {"", "acme"}) {
    ASSERT_TRUE(
        engine->call(RegisterWorker{.worker_id = "w", .worker_instance_id = "w", .namespace_ = name_space}));
    ASSERT_TRUE(engine->call(ListWorkers{.namespace_ = name_space}));
    ASSERT_TRUE(engine->call(MarkWorkerDead{.worker_instance_id = "w", .namespace_ = name_space}));
  }
}

void ask_when_something_is_due(const std::string& url) {
  auto store = open_store(url, {});
  ASSERT_TRUE(store) << store.error().to_string();
  auto session = (*store)->open_reader();
  core::Unit unit(*session);
  session->begin(unit);
  const std::pair<std::string, std::string> tag("app.name", "x");
  for (const ScannerFilter& filter :
       {ScannerFilter{}, ScannerFilter{.namespace_ = "n"}, ScannerFilter{.instance_tag = tag}}) {
    const DueScan scan{
        .until_ms = system_now_ms(), .scope = {.filter = filter}, .limit = 1, .purge_limit = 1};
    session->next_due(scan);
    session->due(scan);
  }
  // Whether what may be removed is needed.
  unit.ask(core::GroupsOf{.route_id = 1, .lane_id = "default", .namespace_ = "", .limit = 1});
  unit.ask(core::ExecutionsIn{1});
  session->rollback();
}

TEST(SqliteSchema, EveryQueryGoesThroughAnIndex) {
  const tests::TemporaryFolder folder;
  const auto url = "sqlite:" + folder.file("a.db");
  ASSERT_TRUE(migrate_store(url, {}));  // which counts tables and the like: not listened to
  {
    const Listener listener;
    ASSERT_NO_FATAL_FAILURE(exercise(url));
    ASSERT_NO_FATAL_FAILURE(ask_when_something_is_due(url));
  }
  const Connection connection(folder.file("a.db"), Access::read_only);
  std::map<std::string, int> through;  // index → queries
  for (const auto& sql : Listener::heard()) {
    const bool has_a_plan =
        sql.starts_with("select ") || sql.starts_with("update ") || sql.starts_with("delete ");
    const bool at_open = sql.find("sqlite_schema") != std::string::npos ||
                         sql.find("ff_partition_config") != std::string::npos ||
                         sql.find("ff_redo_past") != std::string::npos;
    if (!has_a_plan || at_open) continue;
    for (const auto& line : texts(connection, "explain query plan " + sql, 3)) {
      // The tags of one flow.
      if (line.find("VIRTUAL TABLE") != std::string::npos) continue;
      EXPECT_EQ(line.find("SCAN"), std::string::npos) << sql << "\n  " << line;
      EXPECT_EQ(line.find("TEMP B-TREE"), std::string::npos) << sql << "\n  " << line;
      for (const auto* index :
           {"ff_exec_core_offers", "ff_exec_core_due", "ff_create_dedup_due", "ff_route_due",
            "ff_lease_event_pauses", "ff_exec_core_leases", "ff_route_purge", "ff_exec_group_purge",
            "ff_exec_group_route", "ff_exec_core_listing"}) {
        if (line.find(std::string(index) + " ") != std::string::npos) ++through[index];
      }
    }
  }
  EXPECT_GE(through["ff_exec_core_offers"], 2) << "the first scan of a route, and the following ones";
  EXPECT_GE(through["ff_exec_core_due"], 2) << "what is due, and when something is";
  EXPECT_GE(through["ff_create_dedup_due"], 2);
  EXPECT_GE(through["ff_route_due"], 3) << "what is due, when, and what something is blocked on";
  EXPECT_GE(through["ff_route_purge"], 2) << "what is to be looked at, and when something is";
  EXPECT_GE(through["ff_exec_group_purge"], 2);
  EXPECT_GE(through["ff_exec_group_route"], 2) << "of one route, and of all";
  EXPECT_GE(through["ff_exec_core_listing"], 1) << "whether a group has an execution";
  EXPECT_GE(through["ff_lease_event_pauses"], 1);
  EXPECT_GE(through["ff_exec_core_leases"], 3) << "of a worker in a namespace, of one in none, and counted";
}

}  // namespace
}  // namespace flowfabric::store::sqlite
