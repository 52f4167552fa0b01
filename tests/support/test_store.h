// Where an engine under test keeps its data, by the name of a store. Must outlive the engine.
#pragma once

#include <optional>
#include <string>

#include "support/postgres_database.h"
#include "support/temporary_folder.h"

namespace flowfabric::tests {

class TestStore {
 public:
  // memory, memory_deferred, sqlite or postgres; it is empty.
  explicit TestStore(const std::string& name);

  const std::string& url() const { return url_; }
  // The database file, on SQLite.
  std::string file() const { return folder_.file("flowfabric.db"); }
  // Runs SQL behind the engine's back, on a store that survives it. No engine may have it open.
  void change(const std::string& sql) const;

 private:
  TemporaryFolder folder_;
  std::optional<PostgresDatabase> database_;
  std::string url_;
};

}  // namespace flowfabric::tests
