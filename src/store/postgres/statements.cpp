#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

std::string from_rows(const TableText& text) {
  return std::string(" from unnest($1::") + text.table + "[]) as v";
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

std::string keys_as_rows(const TableText& text) {
  std::string arrays;
  for (std::size_t i = 0; i < text.key_types.size(); ++i) {
    if (i > 0) arrays += ',';
    arrays += "$" + std::to_string(i + 1) + "::" + text.key_types[i].name + "[]";
  }
  return "unnest(" + arrays + ") as k(" + listed(text.keys) + ")";
}

std::string same_columns(Names names, const std::string& left, const std::string& right) {
  std::string condition;
  for (const auto name : names) {
    if (!condition.empty()) condition += " and ";
    condition.append(left).append(".").append(name).append("=").append(right).append(".").append(name);
  }
  return condition;
}

std::string select_by_keys(const TableText& text, const std::string& columns, Lock lock) {
  const std::string sql = "select " + columns + " from " + keys_as_rows(text) + " join " + text.table +
                          " t on " + same_columns(text.keys, "t", "k");
  if (lock == Lock::none) return sql;
  return sql + " order by " + listed(text.keys, "t.") +
         (lock == Lock::share ? " for share of t" : " for update of t");
}

std::string delete_by_keys(const TableText& text) {
  return std::string("delete from ") + text.table + " t using " + keys_as_rows(text) + " where " +
         same_columns(text.keys, "t", "k");
}

std::string insert_statement(const TableText& text) {
  std::vector<std::string_view> given(text.columns.begin(), text.columns.end());
  std::erase(given, "event_id");
  return std::string("insert into ") + text.table + "(" + listed(given) + ") select " + listed(given, "v.") +
         from_rows(text);
}

std::string update_statement(const TableText& text, Names changed) {
  std::string changes;
  for (const auto name : changed) {
    if (!changes.empty()) changes += ',';
    changes.append(name).append("=v.").append(name);
  }
  return std::string("update ") + text.table + " t set " + changes + from_rows(text) + " where " +
         same_columns(text.keys, "t", "v");
}

}  // namespace flowfabric::store::postgres
