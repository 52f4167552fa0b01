// The SQL that follows from a record's description. Every statement works on a set of rows.
#pragma once

#include "store/postgres/types.h"

namespace flowfabric::store::postgres {

template <class Record>
bool is_key_column(std::size_t column) {
  return column < key_column_count<Record>();
}

// "unnest($1::int4[],$2::uuid[]) as k(partition_key,execution_id)"
template <class Record>
std::string keys_as_rows() {
  std::string arrays;
  int parameter = 0;
  for_each_column<typename Record::Key>([&]<class Field>(std::string_view) {
    if (parameter++ > 0) arrays += ',';
    arrays += "$" + std::to_string(parameter) + "::" + column_type<Field>().name + "[]";
  });
  return "unnest(" + arrays + ") as k(" + key_list<Record>() + ")";
}

// "t.a=k.a and t.b=k.b", over the key columns.
template <class Record>
std::string same_key(const std::string& left, const std::string& right) {
  std::string condition;
  std::size_t column = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!is_key_column<Record>(column++)) return;
    if (!condition.empty()) condition += " and ";
    condition += left + "." + std::string(name) + "=" + right + "." + std::string(name);
  });
  return condition;
}

// "t.a,t.b,…"
template <class Record>
std::string columns_of(const std::string& alias) {
  std::string list;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!list.empty()) list += ',';
    list += alias + "." + std::string(name);
  });
  return list;
}

// Of an execution that may be in the cache: which it is, and who wrote it last.
inline constexpr const char* kVersionColumns = "t.partition_key,t.execution_id,t.xmin";

enum class Lock { none, share, update };

// Locks are always taken in the order of the keys.
template <class Record>
std::string select_by_keys(const std::string& columns, Lock lock) {
  std::string sql = "select " + columns + " from " + keys_as_rows<Record>() + " join " + Record::table +
                    " t on " + same_key<Record>("t", "k");
  if (lock == Lock::none) return sql;
  sql += " order by ";
  std::size_t column = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!is_key_column<Record>(column++)) return;
    if (column > 1) sql += ',';
    sql += "t." + std::string(name);
  });
  return sql + (lock == Lock::share ? " for share of t" : " for update of t");
}

template <class Record>
std::string select_by_keys(Lock lock) {
  return select_by_keys<Record>(columns_of<Record>("t"), lock);
}

template <class Record>
std::string delete_by_keys() {
  return std::string("delete from ") + Record::table + " t using " + keys_as_rows<Record>() + " where " +
         same_key<Record>("t", "k");
}

// Rows are given whole, as an array of the table's row type. Events are numbered by the database.
template <class Record>
std::string insert_statement() {
  const auto given = [](std::string_view column) { return column != "event_id"; };
  std::string columns;
  std::string values;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!given(name)) return;
    columns += (columns.empty() ? "" : ",") + std::string(name);
    values += (values.empty() ? "v." : ",v.") + std::string(name);
  });
  return std::string("insert into ") + Record::table + "(" + columns + ") select " + values +
         " from unnest($1::" + Record::table + "[]) as v";
}

template <class Record>
std::string update_statement(const ColumnMask<Record>& changed) {
  std::string changes;
  std::size_t column = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!changed.test(column++)) return;
    changes += (changes.empty() ? "" : ",") + std::string(name) + "=v." + std::string(name);
  });
  return std::string("update ") + Record::table + " t set " + changes + " from unnest($1::" + Record::table +
         "[]) as v where " + same_key<Record>("t", "v");
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
