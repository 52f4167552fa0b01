#include "support/postgres_database.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "flowfabric/engine.h"
#include "store/postgres/schema.h"
#include "support/postgres_server.h"

namespace flowfabric::tests {

namespace {

std::string server_url(const std::string& database) {
  if (const char* folder = std::getenv("FF_TEST_POSTGRES")) return url_of_server(folder, database);
  static PostgresServer own;
  return own.url(database);
}

// The first of the pool that nobody holds, which is then ours, and its comment. A test that was killed may
// have left sessions behind that still commit: they are ended. 255 keeps clear of other locks.
constexpr const char* kTake = R"sql(
with taken as materialized (
  select number from generate_series(0, 7) number where pg_try_advisory_lock(255, number) limit 1)
select number, shobj_description(database.oid, 'pg_database'),
  (select count(pg_terminate_backend(pid, 5000)) from pg_stat_get_activity(null) where datid = database.oid)
from taken left join pg_database database on datname = 'ff_test_' || number)sql";

// Deleting is faster than truncating, unless there is much; and the sequence starts again. What a migration
// has written stays.
constexpr const char* kEmpty = R"sql(
do $$
declare
  ff_table regclass;
begin
  for ff_table in
    select oid from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname like 'ff\_%' and relname not in ('ff_partition_config', 'ff_migration_annotation')
  loop
    if pg_relation_size(ff_table) > 1000000 then
      execute format('truncate %s', ff_table);
    else
      execute format('delete from %s', ff_table);
    end if;
  end loop;
  perform setval('ff_event_id_seq', 1, false);
end $$)sql";

// Another schema has another one. It is kept as the comment on a database that was completely made.
std::string schema_fingerprint() {
  std::string all;
  for (const auto& migration : store::postgres::migrations()) all += migration.sql;
  return std::to_string(std::hash<std::string>()(all));
}

bool try_to_empty(const std::string& url) {
  try {
    PostgresConnection(url).query(kEmpty);
    return true;
  } catch (const std::exception&) {
    return false;  // whatever was done to it, a new one is better
  }
}

}  // namespace

PostgresDatabase::PostgresDatabase() : server_(server_url("postgres")) {
  const auto [number, comment] = take();
  name_ = "ff_test_" + number;
  url_ = server_url(name_);
  const bool usable = comment == schema_fingerprint() && try_to_empty(url_);
  if (!usable) create();
}

PostgresDatabase::~PostgresDatabase() {
  try {
    // Closing the connection would do, but a moment later: the next test would take, and make, another one.
    server_.query("select pg_advisory_unlock_all()");
  } catch (const std::exception&) {
    // The server was stopped, and the lock with it.
  }
}

std::pair<std::string, std::string> PostgresDatabase::take() {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
    if (const auto taken = server_.query(kTake); !taken.empty()) return {taken[0][0], taken[0][1]};
  }
}

void PostgresDatabase::create() {
  server_.query("drop database if exists " + name_ + " with (force)");
  server_.query("create database " + name_);
  if (const auto migrated = migrate(url_); !migrated) throw std::runtime_error(migrated.error().to_string());
  server_.query("comment on database " + name_ + " is '" + schema_fingerprint() + "'");
}

}  // namespace flowfabric::tests
