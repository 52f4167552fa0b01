#include "store/sql.h"

#include <algorithm>

#include "core/index_rules.h"

namespace flowfabric::store {

std::string listed(Names names, std::string_view before) {
  std::string list;
  for (const auto name : names) {
    if (!list.empty()) list += ',';
    list.append(before).append(name);
  }
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

std::string statement_of(const KeyListing& listing) {
  std::vector<std::string_view> order(listing.keys.begin(), listing.keys.end());
  std::vector<std::string_view> behind(listing.behind.begin(), listing.behind.end());
  if (listing.partition_last) {
    std::ranges::rotate(order, order.begin() + 1);
    if (!behind.empty()) std::ranges::rotate(behind, behind.begin() + 1);
  }
  std::string sql = "select " + listed(listing.keys) + " from " + listing.table;
  if (!behind.empty()) sql += " where (" + listed(order) + ")>(" + listed(behind) + ")";
  return sql + " order by " + listed(order) + " limit " + listing.limit;
}

}  // namespace flowfabric::store
