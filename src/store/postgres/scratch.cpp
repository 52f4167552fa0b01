#include "store/postgres/scratch.h"

#include <random>

#include "store/postgres/postgres_store.h"
#include "store/postgres/url.h"

namespace flowfabric::store::postgres {

namespace {

std::string scratch_name() {
  std::random_device random;
  return "ff_scratch_" + std::to_string(random());
}

}  // namespace

ScratchSchema::ScratchSchema(const ConnectionSettings& settings, std::string name, std::string url)
    : name_(std::move(name)), url_(std::move(url)), connection_(settings) {
  connection_.run("create schema " + name_);
}

ScratchSchema::~ScratchSchema() {
  try {
    connection_.run("drop schema if exists " + name_ + " cascade");
  } catch (const StoreFailure&) {
    // The database is away; the schema stays, and its name says what it is.
  }
}

Result<std::unique_ptr<ScratchSchema>> ScratchSchema::create(const std::string& url) {
  const auto settings = parse_postgres_url(url);
  if (!settings) return std::unexpected(settings.error());
  const auto name = scratch_name();
  const std::string joint = url.find('?') == url.npos ? "?" : "&";
  try {
    std::unique_ptr<ScratchSchema> scratch(
        new ScratchSchema(settings->connection, name, url + joint + "options=-csearch_path%3D" + name));
    const auto migrated = migrate_postgres_store(scratch->url(), {});
    if (!migrated) return std::unexpected(migrated.error());
    return scratch;
  } catch (StoreFailure& failure) {
    return std::unexpected(std::move(failure.error));
  }
}

DatabaseFigures ScratchSchema::figures() {
  DatabaseFigures figures;
  // Sessions report what they did when they are idle, a second later at the latest.
  connection_.run("select pg_sleep(1.1)");
  connection_.run(
      "select (pg_current_wal_lsn()-'0/0')::bigint,"
      "(select xact_commit from pg_stat_database where datname=current_database()),"
      "coalesce((select sum(n_dead_tup)::bigint from pg_stat_user_tables where schemaname=$1::text),0)",
      Parameters().add(name_), [&](const Rows& rows) {
        rows.read(0, 0, figures.wal_bytes);
        rows.read(0, 1, figures.commits);
        rows.read(0, 2, figures.dead_tuples);
      });
  return figures;
}

}  // namespace flowfabric::store::postgres
