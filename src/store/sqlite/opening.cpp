#include "store/sqlite/opening.h"

#include "store/sqlite/redo/replay.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/wal_file.h"

namespace flowfabric::store::sqlite {

namespace {

template <class Work>
void in_transaction(Connection& connection, Work work) {
  connection.run("begin immediate");
  try {
    work();
    connection.run("commit");
  } catch (...) {
    sqlite3_exec(connection.get(), "rollback", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace

Opened open_database(const std::string& given, const StoreOptions& options) {
  Opened opened{.lock = nullptr, .path = real_path(given), .migrations = {}};
  opened.lock = std::make_unique<ProcessLock>(opened.path);
  check_file(opened.lock->database());
  RedoContent redo(opened.path);
  Connection connection(opened.path, Access::read_write);
  check_schema(connection);

  const WalFile wal(opened.path);
  in_transaction(connection, [&] {
    wal.write_again();
    redo.run_missing(connection);
  });
  wal.sync();
  remove_redo_files(opened.path);
  sync_folder_of(opened.path);

  in_transaction(connection, [&] {
    opened.migrations = migrate(connection, options);
    begin_new_log(connection);
  });
  wal.sync();
  return opened;
}

}  // namespace flowfabric::store::sqlite
