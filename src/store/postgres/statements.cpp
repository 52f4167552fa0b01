#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

std::string from_rows(const TableType& type) {
  return std::string(" from unnest($1::") + type.table + "[]) as v";
}

Lock lock_when_read(const RecordType& type) {
  if (type.is_held) return Lock::share;
  const bool is_counted = type.is<QuotaPolicy>();  // see session_counts.cpp
  return type.is_shared || type.is_guarded || is_counted ? Lock::none : Lock::update;
}

RecordStatements make_statements(const RecordType& type) {
  return {.read = select_by_keys(type, Lock::none),
          .load = select_by_keys(type, lock_when_read(type)),
          .lock = select_by_keys(type, Lock::update),
          .erase = delete_by_keys(type),
          .purge = std::string("delete from ") + type.table +
                   " t using unnest($1::int4[],$2::uuid[]) as k(partition_key,execution_id) "
                   "where t.partition_key=k.partition_key and t.execution_id=k.execution_id",
          .insert = insert_statement(type)};
}

}  // namespace

std::string offering_routes(const std::string& condition) {
  const std::string from = "select e.route_id from ff_exec_core e where e.offer_order is not null";
  const std::string first = " order by e.route_id limit 1";
  return "offering(route_id) as ((" + from + condition + first + ") union all select (" + from +
         " and e.route_id>o.route_id" + first + ") from offering o where o.route_id is not null)";
}

std::string join_offering() {
  // The limit keeps the planner from reading all routes.
  return "offering o cross join lateral (select " + columns_of<Route>("f") +
         " from ff_route f where f.route_id=o.route_id limit 1) as r";
}

const RecordStatements& statements_of(const RecordType& type) {
  static const auto all = [] {
    std::array<RecordStatements, kRecordTypes> made;
    for (const auto& each : record_types()) made[each.place] = make_statements(each);
    return made;
  }();
  return all[type.place];
}

std::string keys_as_rows(const TableType& type) {
  std::string arrays;
  for (std::size_t i = 0; i < type.keys; ++i) {
    if (i > 0) arrays += ',';
    arrays += "$" + std::to_string(i + 1) + "::" + column_type(type.columns[i].type->kind).name + "[]";
  }
  return "unnest(" + arrays + ") as k(" + listed(type.key_names()) + ")";
}

std::string same_key(const TableType& type, const std::string& left, const std::string& right) {
  std::string condition;
  for (const auto name : type.key_names()) {
    if (!condition.empty()) condition += " and ";
    condition.append(left).append(".").append(name).append("=").append(right).append(".").append(name);
  }
  return condition;
}

std::string select_by_keys(const TableType& type, const std::string& columns, Lock lock) {
  const std::string sql = "select " + columns + " from " + keys_as_rows(type) + " join " + type.table +
                          " t on " + same_key(type, "t", "k");
  if (lock == Lock::none) return sql;
  return sql + " order by " + listed(type.key_names(), "t.") +
         (lock == Lock::share ? " for share of t" : " for update of t");
}

std::string select_by_keys(const TableType& type, Lock lock) {
  return select_by_keys(type, listed(type.names, "t."), lock);
}

std::string delete_by_keys(const TableType& type) {
  return std::string("delete from ") + type.table + " t using " + keys_as_rows(type) + " where " +
         same_key(type, "t", "k");
}

std::string insert_statement(const TableType& type) {
  auto given = type.names;
  std::erase(given, "event_id");
  return std::string("insert into ") + type.table + "(" + listed(given) + ") select " + listed(given, "v.") +
         from_rows(type);
}

std::string update_statement(const TableType& type, const ColumnMask& changed) {
  std::string changes;
  for (const auto name : chosen_names(type, changed)) {
    if (!changes.empty()) changes += ',';
    changes.append(name).append("=v.").append(name);
  }
  return std::string("update ") + type.table + " t set " + changes + from_rows(type) + " where " +
         same_key(type, "t", "v");
}

Parameters key_parameters(Columns columns, std::span<const void* const> keys) {
  Parameters parameters;
  for (const auto& column : columns) parameters.add_column(column, keys);
  return parameters;
}

Parameters key_parameters(const RecordType& type, const std::vector<AnyKey>& keys) {
  std::vector<const void*> pointers;
  pointers.reserve(keys.size());
  for (const auto& key : keys) pointers.push_back(key.get());
  return key_parameters(type.key->columns, pointers);
}

}  // namespace flowfabric::store::postgres
