// A PostgreSQL server of a test's own, which may be stopped, crashed and started again. Takes two seconds to
// make: a test that only needs an empty database takes a PostgresDatabase.
#pragma once

#include <string>

#include "support/postgres_connection.h"
#include "support/temporary_folder.h"

namespace flowfabric::tests {

class PostgresServer {
 public:
  enum class Disk { ignored, durable };  // whether a commit waits for the disk
  enum class Stop { fast, immediate };   // immediate: as if it had crashed

  explicit PostgresServer(Disk disk = Disk::ignored);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Through its socket; `port()` is that of 127.0.0.1. Both stay the same for good.
  std::string url(const std::string& database = "postgres") const;
  int port() const;

  void start();
  void stop(Stop how = Stop::fast);
  void restart(Stop how = Stop::fast);

  PostgresConnection::Rows query(const std::string& sql, const std::string& database = "postgres") const;

 private:
  TemporaryFolder folder_;
};

// Reads a fact about the server of that folder (see scripts/postgres-for-tests).
std::string url_of_server(const std::string& folder, const std::string& database = "postgres");

}  // namespace flowfabric::tests
