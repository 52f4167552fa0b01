#include "support/postgres_database.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

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

// Locks the first database of the pool that nobody holds. 255 keeps clear of other locks.
constexpr const char* kTake = R"sql(
with taken as materialized (
  select number from generate_series(0, 63) number where pg_try_advisory_lock(255, number) limit 1)
select number, shobj_description(database.oid, 'pg_database')
from taken left join pg_database database on datname = 'ff_test_' || number)sql";

// A test may have left sessions behind that still commit.
constexpr const char* kDisconnectOthers = R"sql(
select count(pg_terminate_backend(pid, 5000)) from pg_stat_get_activity(null)
where datid = (select oid from pg_database where datname = current_database()) and pid <> pg_backend_pid())sql";

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
  perform pg_stat_force_next_flush();  -- or this would show up in the statistics that a test reads
end $$)sql";

// Another schema has another one. It is kept as the comment on a database that was completely made.
std::string schema_fingerprint() {
  std::string all;
  for (const auto& migration : store::postgres::migrations()) all += migration.sql;
  return std::to_string(std::hash<std::string>()(all));
}

}  // namespace

// A database of the pool, which this process keeps until it ends: connecting takes longer than most tests do.
class PostgresDatabase::Held {
 public:
  Held() : server_(server_url("postgres")) {
    const auto [number, comment] = take();
    name_ = "ff_test_" + number;
    url_ = server_url(name_);
    if (comment == schema_fingerprint()) inside_.emplace(url_);
  }

  const std::string& url() const { return url_; }

  void make_empty() {
    if (!try_to_empty()) create();
  }

 private:
  std::pair<std::string, std::string> take() {  // number and comment
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      if (const auto taken = server_.query(kTake); !taken.empty()) return {taken[0][0], taken[0][1]};
    }
  }

  bool try_to_empty() {
    if (!inside_) return false;
    try {
      inside_->query(kDisconnectOthers);
      inside_->query(kEmpty);
      return true;
    } catch (const std::exception&) {
      return false;  // whatever was done to it, a new one is better
    }
  }

  void create() {
    inside_.reset();
    server_.query("drop database if exists " + name_ + " with (force)");
    server_.query("create database " + name_);
    if (const auto migrated = migrate(url_); !migrated)
      throw std::runtime_error(migrated.error().to_string());
    server_.query("comment on database " + name_ + " is '" + schema_fingerprint() + "'");
    inside_.emplace(url_);
  }

  PostgresConnection server_;  // its session holds the lock: a process that dies gives the database back
  std::string name_;
  std::string url_;
  std::optional<PostgresConnection> inside_;  // to a database that was completely made
};

namespace {

// Databases that no test of this process uses at the moment.
struct Free {
  std::mutex mutex;
  std::vector<std::unique_ptr<PostgresDatabase::Held>> databases;
};

Free& free_databases() {
  static Free all;
  return all;
}

std::unique_ptr<PostgresDatabase::Held> take_free() {
  auto& [mutex, databases] = free_databases();
  const std::lock_guard lock(mutex);
  if (databases.empty()) return nullptr;
  auto taken = std::move(databases.back());
  databases.pop_back();
  return taken;
}

}  // namespace

PostgresDatabase::PostgresDatabase() : held_(take_free()) {
  if (!held_) held_ = std::make_unique<Held>();
  held_->make_empty();
}

PostgresDatabase::~PostgresDatabase() {
  auto& [mutex, databases] = free_databases();
  const std::lock_guard lock(mutex);
  databases.push_back(std::move(held_));
}

const std::string& PostgresDatabase::url() const {
  return held_->url();
}

}  // namespace flowfabric::tests
