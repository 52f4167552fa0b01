#include "store/sql.h"

#include <algorithm>

#include "core/index_rules.h"

namespace flowfabric::store {

namespace {

void add_to_list(std::string& list, std::string_view before, std::string_view name) {
  if (!list.empty()) list += ',';
  list.append(before).append(name);
}

// Tables whose primary key has the partition last.
bool lies_by_id(const RecordType& type) {
  return type.is<ExecutionSpec>() || type.is<Attempt>() || type.is<Edge>() || type.is<EdgeGroup>();
}

}  // namespace

std::string listed(Names names, std::string_view before) {
  std::string list;
  for (const auto name : names) add_to_list(list, before, name);
  return list;
}

std::string listed(Columns columns, std::string_view before) {
  std::string list;
  for (const auto& column : columns) add_to_list(list, before, column.name);
  return list;
}

std::string equal_to_parameters(Names names) {
  std::string condition;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) condition += " and ";
    condition.append(names[i]).append("=?").append(std::to_string(i + 1));
  }
  return condition;
}

std::string one_of(std::string_view column, std::span<const std::string_view> words) {
  std::string condition;
  for (const auto word : words) {
    condition.append(condition.empty() ? "(" : " or ").append(column).append("='").append(word).append("'");
  }
  return condition + ")";
}

std::string held_by() {
  return "ownership_state='" + std::string(enum_name(core::kHeld)) + "' and worker_instance_id=";
}

std::string keys_statement(const RecordType& type, bool goes_on, Mark mark) {
  std::vector<std::string_view> order(type.key_names().begin(), type.key_names().end());
  std::vector<std::string> parameters;
  for (const auto& column : type.key->columns) {
    parameters.push_back(mark(*column.type, static_cast<int>(parameters.size()) + 2));
  }
  std::vector<std::string_view> behind(parameters.begin(), parameters.end());
  if (lies_by_id(type)) {
    std::ranges::rotate(order, order.begin() + 1);
    std::ranges::rotate(behind, behind.begin() + 1);
  }
  std::string sql = "select " + listed(type.key_names()) + " from " + type.table;
  if (goes_on) sql += " where (" + listed(order) + ")>(" + listed(behind) + ")";
  return sql + " order by " + listed(order) + " limit " + mark(kFieldType<std::int64_t>, 1);
}

}  // namespace flowfabric::store
