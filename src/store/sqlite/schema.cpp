#include "store/sqlite/schema.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "flowfabric/version.h"
#include "store/sqlite/mapping.h"

namespace flowfabric::store::sqlite {

namespace {

constexpr int kApplicationId = 0x46464142;  // "FFAB": tells our files from those of other programs
// The file format of SQLite, as documented.
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kSchemaCookieOffset = 40;
constexpr std::size_t kApplicationOffset = 68;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

[[noreturn]] void refuse_foreign(const std::string& path) {
  throw StoreFailure{{ErrorCode::invalid_input, path + ": a database of another program",
                      "Give the path of a FlowFabric database, or of a file that does not exist yet."}};
}

void check_owner(Connection& connection) {
  const auto application = connection.number("pragma application_id");
  const bool has_tables = connection.number("select count(*) from sqlite_schema") > 0;
  if (application != kApplicationId && (application != 0 || has_tables)) refuse_foreign(connection.path());
}

// A big-endian number of the header that every SQLite file begins with.
std::uint32_t header_number(const std::string& header, std::size_t offset) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<std::uint8_t>(header[offset + i]);
  return number;
}

void check_partitions(Connection& connection, const PartitionCounts& wanted) {
  auto statement = connection.prepare(
      "select num_flow_partitions,num_budget_partitions,num_quota_partitions from ff_partition_config");
  if (!statement.step()) {
    connection.run("insert into ff_partition_config values(1," + std::to_string(wanted.flow) + "," +
                   std::to_string(wanted.budget) + "," + std::to_string(wanted.quota) + ",'" + kVersion +
                   "')");
    return;
  }
  PartitionCounts stored;
  read(statement.get(), 0, stored.flow);
  read(statement.get(), 1, stored.budget);
  read(statement.get(), 2, stored.quota);
  if (stored == wanted) return;
  const auto text = [](const PartitionCounts& counts) {
    return std::to_string(counts.flow) + "/" + std::to_string(counts.budget) + "/" +
           std::to_string(counts.quota);
  };
  throw StoreFailure{{ErrorCode::invalid_input, "partition counts differ",
                      connection.path() + " was made with " + text(stored) +
                          " flow/budget/quota partitions, but " + text(wanted) +
                          " are configured. Use the counts it was made with; they cannot be changed."}};
}

void apply(Connection& connection, const Migration& migration, const StoreOptions& options) {
  connection.run(migration.sql);
  auto note = connection.prepare("insert into ff_migration_annotation values(?,?,?,1)");
  const std::string name = migration.name;
  bind(note.get(), 1, migration.version);
  bind(note.get(), 2, name);
  bind(note.get(), 3, options.now_ms());
  note.run();
  connection.run("pragma user_version=" + std::to_string(migration.version));
}

}  // namespace

namespace {

constexpr std::int64_t kPageBytes = 4096;

bool has_bytes(const std::string& path) {
  const auto file = File::open_if_there(path, O_RDONLY);
  return file && file->size() > 0;
}

// The disk, or the power, failed while the database was made: of its first page only the length is there.
// With anything beside it that comes later it would be damage.
bool was_never_made(const File& file) {
  if (file.size() == 0 || file.size() > kPageBytes) return false;
  const auto bytes = file.read_all();
  return std::ranges::all_of(bytes, [](char byte) { return byte == 0; }) &&
         std::ranges::none_of(std::array{"-wal", "-redo1", "-redo2"},
                              [&](const char* suffix) { return has_bytes(file.path() + suffix); });
}

}  // namespace

void check_file(const File& file) {
  if (was_never_made(file)) return file.truncate(0);
  const auto header = file.read(0, kHeaderBytes);
  if (header.empty()) return;  // new
  const bool is_database = header.size() == kHeaderBytes && header.starts_with(kMagic);
  // The power failed while it was made; SQLite will undo that.
  if (!is_database && File::open_if_there(file.path() + "-journal", O_RDONLY)) return;
  if (!is_database) throw StoreFailure{explain(SQLITE_NOTADB, file.path(), "file is not a database")};
  const auto application = header_number(header, kApplicationOffset);
  const bool has_schema = header_number(header, kSchemaCookieOffset) != 0;
  if (application != kApplicationId && (application != 0 || has_schema)) refuse_foreign(file.path());
}

void check_schema(Connection& connection) {
  check_owner(connection);
  const auto stored = connection.number("pragma user_version");
  const auto newest = migrations().back().version;
  if (stored <= newest) return;
  throw StoreFailure{
      {ErrorCode::invalid_input, connection.path() + ": schema version " + std::to_string(stored),
       "The database was written by a newer FlowFabric; this one knows schema versions up to " +
           std::to_string(newest) + ". Upgrade the program; going back is not possible."}};
}

std::vector<std::string> migrate(Connection& connection, const StoreOptions& options) {
  const auto stored = connection.number("pragma user_version");
  connection.run("pragma application_id=" + std::to_string(kApplicationId));
  std::vector<std::string> done;
  for (const auto& migration : migrations()) {
    if (migration.version <= stored) continue;
    apply(connection, migration, options);
    done.push_back(std::to_string(migration.version) + " " + migration.name);
  }
  check_partitions(connection, options.partitions);
  return done;
}

}  // namespace flowfabric::store::sqlite
