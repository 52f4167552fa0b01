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

// What statements are made of: templates would compile all of it anew for every record.
struct TableText {
  const char* table;
  Names columns;
  Names keys;
  std::span<const ColumnType> key_types;
};
std::string keys_as_rows(const TableText& text);
std::string same_columns(Names names, const std::string& left, const std::string& right);
std::string select_by_keys(const TableText& text, const std::string& columns, Lock lock);
std::string delete_by_keys(const TableText& text);
std::string insert_statement(const TableText& text);
std::string update_statement(const TableText& text, Names changed);

// Events have no key of their own.
template <class Record>
TableText text_of() {
  if constexpr (key_columns < Record >> 0)
    return {Record::table, column_names<Record>(), key_names<Record>(), kColumnTypes<typename Record::Key>};
  else
    return {Record::table, column_names<Record>(), {}, {}};
}

// "unnest($1::int4[],$2::uuid[]) as k(partition_key,execution_id)"
template <class Record>
std::string keys_as_rows() {
  return keys_as_rows(text_of<Record>());
}

// "t.a=k.a and t.b=k.b", over the key columns.
template <class Record>
std::string same_key(const std::string& left, const std::string& right) {
  return same_columns(key_names<Record>(), left, right);
}

// "t.a,t.b,…"
template <class Record>
std::string columns_of(const std::string& alias) {
  return listed(column_names<Record>(), alias + ".");
}

// Of an execution that may be in the cache: which it is, and who wrote it last.
inline constexpr const char* kVersionColumns = "t.partition_key,t.execution_id,t.xmin";

// Locks are always taken in the order of the keys.
template <class Record>
std::string select_by_keys(const std::string& columns, Lock lock) {
  return select_by_keys(text_of<Record>(), columns, lock);
}
template <class Record>
std::string select_by_keys(Lock lock) {
  return select_by_keys<Record>(columns_of<Record>("t"), lock);
}

template <class Record>
std::string delete_by_keys() {
  return delete_by_keys(text_of<Record>());
}

// Rows are given whole, as an array of the table's row type. Events are numbered by the database.
template <class Record>
std::string insert_statement() {
  return insert_statement(text_of<Record>());
}

template <class Record>
std::string update_statement(const ColumnMask<Record>& changed) {
  return update_statement(text_of<Record>(), chosen_names(column_names<Record>(), changed));
}

// One array per key column.
template <class Key, class Keys>
Parameters key_parameters(const Keys& keys) {
  Parameters parameters;
  boost::mp11::mp_for_each<PublicMembers<Key>>([&](auto member) {
    using Field = std::remove_cvref_t<decltype(std::declval<Key&>().*member.pointer)>;
    parameters.add_array<Field>(
        keys, [&](std::string& bytes, const Key& key) { append_value(bytes, key.*member.pointer); });
  });
  return parameters;
}

}  // namespace flowfabric::store::postgres
