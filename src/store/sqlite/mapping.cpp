#include "store/sqlite/mapping.h"

namespace flowfabric::store::sqlite {

std::string update_statement(const char* table, Names keys, Names changed) {
  std::string changes;
  auto parameter = keys.size();
  for (const auto name : changed) {
    if (!changes.empty()) changes += ',';
    changes.append(name).append("=?").append(std::to_string(++parameter));
  }
  return std::string("update ") + table + " set " + changes + " where " + equal_to_parameters(keys);
}

std::string insert_statement(const char* table, Names columns) {
  std::string marks;
  for (std::size_t i = 0; i < columns.size(); ++i) marks += i == 0 ? "?" : ",?";
  return std::string("insert into ") + table + "(" + listed(columns) + ") values(" + marks + ")";
}

}  // namespace flowfabric::store::sqlite
