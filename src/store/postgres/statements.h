// The SQL that follows from a record's description. Every statement works on a set of rows.
#pragma once

#include <algorithm>
#include <limits>

#include "store/postgres/types.h"

namespace flowfabric::store::postgres {

enum class Lock { none, share, update };

inline std::int64_t as_limit(std::size_t limit) {
  return static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int64_t>::max()));
}

// The routes on which something is offered, one probe of the claim index each, whatever else is registered:
// the table `offering`, for a `with recursive`. `condition` may leave out all.
std::string offering_routes(const std::string& condition = "");
// Their records, as `r`.
std::string join_offering();

// "unnest($1::int4[],$2::uuid[]) as k(partition_key,execution_id)"
std::string keys_as_rows(const TableType& type);
// "t.a=k.a and t.b=k.b", over the key columns.
std::string same_key(const TableType& type, const std::string& left, const std::string& right);
// Locks are always taken in the order of the keys.
std::string select_by_keys(const TableType& type, const std::string& columns, Lock lock);
std::string select_by_keys(const TableType& type, Lock lock);
std::string delete_by_keys(const TableType& type);
// Rows are given whole, as an array of the table's row type. Events are numbered by the database.
std::string insert_statement(const TableType& type);
std::string update_statement(const TableType& type, const ColumnMask& changed);

// The statements of a record's table that need no mask, made once.
struct RecordStatements {
  std::string read;   // without a lock
  std::string load;   // with the lock that whoever reads it takes
  std::string lock;   // by who changes it
  std::string erase;  // by key
  std::string purge;  // all rows of executions
  std::string insert;
};
const RecordStatements& statements_of(const RecordType& type);

// "t.a,t.b,…"
template <class Struct>
std::string columns_of(const std::string& alias) {
  return listed(described_columns<Struct>(), alias + ".");
}
template <class Record>
std::string same_key(const std::string& left, const std::string& right) {
  return same_key(record_type<Record>(), left, right);
}

// Of an execution that may be in the cache: which it is, and who wrote it last.
inline constexpr const char* kVersionColumns = "t.partition_key,t.execution_id,t.xmin";

// One array per key column.
Parameters key_parameters(Columns columns, std::span<const void* const> keys);
template <class Key>
Parameters key_parameters(const std::vector<Key>& keys) {
  std::vector<const void*> pointers;
  pointers.reserve(keys.size());
  for (const auto& key : keys) pointers.push_back(&key);
  return key_parameters(described_columns<Key>(), pointers);
}
Parameters key_parameters(const RecordType& type, const std::vector<AnyKey>& keys);

}  // namespace flowfabric::store::postgres
