#include "store/postgres/schema.h"

#include "flowfabric/version.h"

namespace flowfabric::store::postgres {

namespace {

// Whoever migrates holds it, so that two that start at once do not both.
constexpr std::int64_t kMigrationLock = 0x466C6F77466162;  // "FlowFab"

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    lines.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return std::string(text.substr(0, text.find_first_of(" (;")));
}

std::string quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += c;
    quoted += c;
  }
  return quoted + "'";
}

// Splits a migration into its statements and turns its comments into statements of their own.
class Splitter {
 public:
  std::vector<std::string> split(std::string_view sql) {
    for (const auto& line : lines_of(sql)) take(line);
    statements_.insert(statements_.end(), comments_.begin(), comments_.end());
    return std::move(statements_);
  }

 private:
  void take(const std::string& line) {
    if (line.starts_with("-- ")) {
      heading_ = line.substr(3);
      return;
    }
    for (const std::string kind : {"table", "sequence"}) {
      if (!line.starts_with("create " + kind + " ")) continue;
      table_ = first_word(std::string_view(line).substr(8 + kind.size()));
      comments_.push_back("comment on " + kind + " " + table_ + " is " + quoted(heading_));
    }
    const auto dashes = line.find(" -- ");
    const auto code = line.substr(0, dashes);
    if (dashes != line.npos) {
      comments_.push_back("comment on column " + table_ + "." + first_word(line) + " is " +
                          quoted(line.substr(dashes + 4)));
    }
    if (code.empty()) return;
    statement_ += (statement_.empty() ? "" : "\n") + code;
    if (!code.ends_with(';')) return;
    statement_.pop_back();
    statements_.push_back(std::exchange(statement_, ""));
  }

  std::vector<std::string> statements_;
  std::vector<std::string> comments_;
  std::string heading_;
  std::string table_;
  std::string statement_;
};

bool has_schema(Connection& connection) {
  bool there = false;
  connection.run("select to_regclass('ff_migration_annotation') is not null", {},
                 [&](const Rows& rows) { there = rows.bytes(0, 0) == std::string_view("\1", 1); });
  return there;
}

std::int32_t version_of(Connection& connection) {
  std::int32_t version = 0;
  if (!has_schema(connection)) return 0;
  connection.run("select max(version) from ff_migration_annotation", {},
                 [&](const Rows& rows) { version = rows.get<std::int32_t>(0, 0); });
  return version;
}

void refuse_newer(std::int32_t version) {
  const auto newest = migrations().back().version;
  if (version <= newest) return;
  throw StoreFailure{{ErrorCode::invalid_input,
                      "schema version " + std::to_string(version) + " is newer than this program's " +
                          std::to_string(newest),
                      "Use a newer flowfabric: this one does not know what the database holds."}};
}

std::string text_of(const PartitionCounts& counts) {
  return std::to_string(counts.flow) + "/" + std::to_string(counts.budget) + "/" +
         std::to_string(counts.quota);
}

void check_partitions(Connection& connection, const PartitionCounts& wanted) {
  PartitionCounts stored;
  connection.run(
      "select num_flow_partitions,num_budget_partitions,num_quota_partitions from ff_partition_config", {},
      [&](const Rows& rows) {
        if (rows.size() == 0) return;
        rows.read(0, 0, stored.flow);
        rows.read(0, 1, stored.budget);
        rows.read(0, 2, stored.quota);
      });
  if (stored == wanted) return;
  throw StoreFailure{{ErrorCode::invalid_input, "partition counts differ",
                      "The database was made with " + text_of(stored) +
                          " flow/budget/quota partitions, but " + text_of(wanted) +
                          " are configured. Use the counts it was made with; they cannot be changed."}};
}

std::int32_t checked_version(Connection& connection, const PartitionCounts& partitions) {
  const auto version = version_of(connection);
  refuse_newer(version);
  if (version > 0) check_partitions(connection, partitions);
  return version;
}

std::string insert_config(const PartitionCounts& counts) {
  return "insert into ff_partition_config values(true," + std::to_string(counts.flow) + "," +
         std::to_string(counts.budget) + "," + std::to_string(counts.quota) + "," + quoted(kVersion) +
         ") on conflict do nothing";
}

std::string insert_annotation(const Migration& migration) {
  return "insert into ff_migration_annotation values(" + std::to_string(migration.version) + "," +
         quoted(migration.name) + ",(extract(epoch from clock_timestamp())*1000)::bigint," +
         (migration.backward_compatible ? "true" : "false") + ")";
}

// Everything that brings the schema from a version up to date.
std::vector<std::string> plan(std::int32_t from, const PartitionCounts& partitions) {
  std::vector<std::string> statements;
  for (const auto& migration : migrations()) {
    if (migration.version <= from) continue;
    auto of_it = statements_of(migration);
    statements.insert(statements.end(), of_it.begin(), of_it.end());
    statements.push_back(insert_annotation(migration));
  }
  if (from == 0) statements.push_back(insert_config(partitions));
  return statements;
}

}  // namespace

std::vector<std::string> statements_of(const Migration& migration) {
  return Splitter().split(migration.sql);
}

std::string migrate(Connection& connection, const PartitionCounts& partitions) {
  connection.run("begin");
  connection.run("select pg_advisory_xact_lock($1::int8)", Parameters().add(kMigrationLock));
  const auto before = checked_version(connection, partitions);
  for (const auto& statement : plan(before, partitions)) connection.post(statement);
  connection.post("commit");
  connection.flush();
  std::string done;
  for (const auto& migration : migrations()) {
    if (migration.version <= before) continue;
    done += (done.empty() ? "applied " : ", ") + std::to_string(migration.version) + " " + migration.name;
  }
  return done.empty() ? "the schema is up to date" : done;
}

std::string plan_migration(Connection& connection, const PartitionCounts& partitions) {
  std::string sql;
  for (const auto& statement : plan(checked_version(connection, partitions), partitions)) {
    sql += statement + ";\n";
  }
  return sql.empty() ? "-- the schema is up to date\n" : "begin;\n" + sql + "commit;\n";
}

void check_schema(Connection& connection, const PartitionCounts& partitions) {
  bool read_only = false;
  connection.run("select pg_is_in_recovery() or current_setting('transaction_read_only')='on'", {},
                 [&](const Rows& rows) { read_only = rows.bytes(0, 0) == std::string_view("\1", 1); });
  if (read_only) {
    throw StoreFailure{{ErrorCode::invalid_input, "the database is read-only",
                        "This is a replica, or read-only by default: give the URL of the primary, or several "
                        "hosts with target_session_attrs=read-write."}};
  }
  const auto version = version_of(connection);
  refuse_newer(version);
  const auto newest = migrations().back().version;
  if (version < newest) {
    throw StoreFailure{{ErrorCode::invalid_input,
                        version == 0
                            ? "FlowFabric's tables are missing"
                            : "schema version " + std::to_string(version) + " of " + std::to_string(newest),
                        "Run `flowfabric migrate --store URL` with this store's URL first."}};
  }
  check_partitions(connection, partitions);
}

}  // namespace flowfabric::store::postgres
