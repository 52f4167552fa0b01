// An empty, migrated database on PostgreSQL, for one test.
//
// Databases come from a small pool on one server, because making one is slow. A process keeps those that its
// tests have used until it ends. The server is the one in the folder FF_TEST_POSTGRES (see
// scripts/postgres-for-tests); without that, one of this process.
#pragma once

#include <memory>
#include <string>

#include "support/postgres_connection.h"

namespace flowfabric::tests {

class PostgresDatabase {
 public:
  // Waits while other processes hold all of the pool.
  PostgresDatabase();
  ~PostgresDatabase();  // the engine on it must be closed by now
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  const std::string& url() const;
  PostgresConnection::Rows query(const std::string& sql) const {
    return PostgresConnection(url()).query(sql);
  }

  class Held;

 private:
  std::unique_ptr<Held> held_;
};

}  // namespace flowfabric::tests
