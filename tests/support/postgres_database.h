// An empty, migrated database on PostgreSQL, for one test.
//
// Databases are taken from a small pool on one server and given back, because making one is slow. The server
// is the one in the folder FF_TEST_POSTGRES (see scripts/postgres-for-tests); without that, one of this
// process.
#pragma once

#include <string>
#include <utility>

#include "support/postgres_connection.h"

namespace flowfabric::tests {

class PostgresDatabase {
 public:
  // Waits while all are taken.
  PostgresDatabase();
  ~PostgresDatabase();  // the engine on it must be closed by now
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  const std::string& url() const { return url_; }
  PostgresConnection::Rows query(const std::string& sql) const { return PostgresConnection(url_).query(sql); }

 private:
  std::pair<std::string, std::string> take();  // number and comment
  void create();

  PostgresConnection server_;  // its session holds the lock: a process that dies gives the database back
  std::string name_;
  std::string url_;
};

}  // namespace flowfabric::tests
