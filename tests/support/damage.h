// Damage to the file of an SQLite store, behind the engine's back. No engine may have it open.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "store/sqlite/database.h"

namespace flowfabric::tests {

inline void damage_file(const std::string& file, const std::string& sql) {
  store::sqlite::Connection connection(file, store::sqlite::Access::read_write);
  connection.run(sql);
  ASSERT_GT(sqlite3_total_changes(connection.get()), 0) << sql;
}

}  // namespace flowfabric::tests
