// PgBouncer with transaction pooling before a PostgreSQL server.
#pragma once

#include <sys/types.h>

#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {

class PgBouncer {
 public:
  // The largest number of connections to the server, however many clients there are.
  PgBouncer(const tests::PostgresServer& server, int pool_size);
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  // The URL of the server's database `postgres`, with the parameter that tells the engine of the pooler.
  std::string url() const;

 private:
  void write_settings(const tests::PostgresServer& server, int pool_size) const;
  void start();
  bool answers() const;

  tests::TemporaryFolder folder_;
  pid_t process_{-1};
};

}  // namespace flowfabric::e2e
