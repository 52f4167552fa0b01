// An embedded store whose process is killed under load.
#include <gtest/gtest.h>

#include "e2e/kill_rounds.h"
#include "store/sqlite/database.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {
namespace {

using store::sqlite::Access;
using store::sqlite::Connection;

TEST(Kill, NothingThatWasAcknowledgedIsEverLost) {
  const tests::TemporaryFolder folder;
  const auto file = folder.file("kill.db");
  const auto number = [&](const std::string& sql) { return Connection(file, Access::read_only).number(sql); };
  kill_again_and_again({.url = "sqlite:" + file, .number = number}, 24);
  EXPECT_EQ(number("select count(*) from pragma_integrity_check where integrity_check='ok'"), 1);
}

}  // namespace
}  // namespace flowfabric::e2e
