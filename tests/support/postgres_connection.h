// A connection to PostgreSQL for what tests do behind the engine's back. Trouble throws.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct pg_conn;

namespace flowfabric::tests {

class PostgresConnection {
 public:
  using Row = std::vector<std::string>;  // as text; null is empty
  using Rows = std::vector<Row>;

  explicit PostgresConnection(const std::string& url);

  // Several statements run as one transaction; the rows are those of the last.
  Rows query(const std::string& sql);

 private:
  struct Close {
    void operator()(pg_conn* connection) const;
  };
  std::unique_ptr<pg_conn, Close> connection_;
};

}  // namespace flowfabric::tests
