// A schema of its own inside a database, for whoever measures or tests there and must leave no trace.
#pragma once

#include "store/postgres/connection.h"

namespace flowfabric::store::postgres {

// What the database has done so far; the difference of two says what was done in between.
struct DatabaseFigures {
  std::int64_t wal_bytes{};  // of the whole server
  std::int64_t commits{};
  std::int64_t dead_tuples{};  // there are now, in the scratch schema
};

class ScratchSchema {
 public:
  // Makes the schema and migrates it.
  static Result<std::unique_ptr<ScratchSchema>> create(const std::string& url);
  ~ScratchSchema();  // drops it

  // Leads into the schema.
  const std::string& url() const { return url_; }
  DatabaseFigures figures();

 private:
  ScratchSchema(const ConnectionSettings& settings, std::string name, std::string url);

  const std::string name_;
  const std::string url_;
  Connection connection_;
};

}  // namespace flowfabric::store::postgres
