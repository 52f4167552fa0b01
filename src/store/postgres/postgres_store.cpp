#include "store/postgres/postgres_store.h"

#include "store/postgres/bell.h"
#include "store/postgres/schema.h"
#include "store/postgres/session.h"
#include "store/postgres/url.h"

namespace flowfabric::store {

namespace postgres {

namespace {

class PostgresStore final : public Store {
 public:
  PostgresStore(StoreSettings settings, const StoreOptions& options, Connection& connection)
      : settings_(std::move(settings)),
        session_{.connection = settings_.connection,
                 .now_ms = options.now_ms,
                 .row_types = std::make_shared<const RowTypes>(connection),
                 .cursors = std::make_shared<ClaimCursors>(),
                 .cache = std::make_shared<ExecutionCache>(),
                 .offering = std::make_shared<OfferingRoutes>(),
                 .inserted = std::make_shared<std::atomic<std::uint64_t>>(0)} {}

  std::unique_ptr<Session> open_writer() override {
    return std::make_unique<PostgresSession>(session_, Access::write);
  }
  std::unique_ptr<Session> open_reader() override {
    return std::make_unique<PostgresSession>(session_, Access::read);
  }
  std::size_t writers() const override { return settings_.committers; }
  std::size_t readers() const override { return settings_.readers; }
  bool is_shared() const override { return true; }
  bool waits_when_away() const override { return settings_.waits_when_away; }
  std::unique_ptr<Bell> open_bell(HeardBell heard) override {
    if (!settings_.notify) return nullptr;
    return std::make_unique<PostgresBell>(settings_.connection, std::move(heard));
  }

 private:
  const StoreSettings settings_;
  const SessionSettings session_;
};

template <class F>
Result<std::string> with_connection(const std::string& url, F&& f) {
  const auto settings = parse_postgres_url(url);
  if (!settings) return std::unexpected(settings.error());
  try {
    Connection connection(settings->connection);
    return f(connection);
  } catch (StoreFailure& failure) {
    return std::unexpected(std::move(failure.error));
  }
}

}  // namespace

}  // namespace postgres

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& url, const StoreOptions& options) {
  auto settings = postgres::parse_postgres_url(url);
  if (!settings) return std::unexpected(settings.error());
  try {
    postgres::Connection connection(settings->connection);
    postgres::check_schema(connection, options.partitions);
    return std::make_unique<postgres::PostgresStore>(*std::move(settings), options, connection);
  } catch (StoreFailure& failure) {
    return std::unexpected(std::move(failure.error));
  }
}

Result<std::string> migrate_postgres_store(const std::string& url, const StoreOptions& options) {
  return postgres::with_connection(url, [&](postgres::Connection& connection) {
    return postgres::migrate(connection, options.partitions);
  });
}

Result<std::string> plan_postgres_migration(const std::string& url, const StoreOptions& options) {
  return postgres::with_connection(url, [&](postgres::Connection& connection) {
    return postgres::plan_migration(connection, options.partitions);
  });
}

}  // namespace flowfabric::store
