#include "support/postgres_connection.h"

#include <libpq-fe.h>

#include <stdexcept>

namespace flowfabric::tests {

namespace {

using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

PostgresConnection::Rows rows_of(const PGresult* answer) {
  PostgresConnection::Rows rows(static_cast<std::size_t>(PQntuples(answer)));
  for (int row = 0; row < PQntuples(answer); ++row) {
    for (int column = 0; column < PQnfields(answer); ++column) {
      rows[static_cast<std::size_t>(row)].emplace_back(PQgetvalue(answer, row, column));
    }
  }
  return rows;
}

}  // namespace

PostgresConnection::PostgresConnection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  // "table does not exist, skipping" is of no interest.
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

PostgresConnection::Rows PostgresConnection::query(const std::string& sql) {
  const Answer answer(PQexec(connection_.get(), sql.c_str()), &PQclear);
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()) + ("in: " + sql));
  }
  return rows_of(answer.get());
}

void PostgresConnection::Close::operator()(pg_conn* connection) const {
  PQfinish(connection);
}

}  // namespace flowfabric::tests
