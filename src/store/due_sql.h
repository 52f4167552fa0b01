// The part of a query for what is due that leaves out what is for other clocks (core/scanner_filter.h);
// the same for every SQL store.
#pragma once

#include <string>
#include <vector>

#include "core/scanner_filter.h"
#include "store/sql.h"

namespace flowfabric::store {

// " and …", and the values of its parameters in their order.
struct DueCondition {
  std::string sql;
  std::vector<std::string> values;
};

// How a store writes things.
struct DueDialect {
  std::string (*text_parameter)(int number);
  // Whether the tags of the flow `o` have this one.
  std::string (*flow_has_tag)(const std::string& key, const std::string& value);
  // A column in a comparison that is not to choose the index.
  std::string (*no_index)(const std::string& column);
};

// Who a record belongs to, in SQL. Its table is `t`.
struct DueOwner {
  core::Belonging belonging{};
  bool is_execution{};       // it is one
  bool has_namespace_key{};  // whose empty namespace is a text, and not null
  std::string id_column;     // of the execution or flow
};
template <class Record>
DueOwner due_owner() {
  using Key = typename Record::Key;
  constexpr bool is_group = std::is_same_v<Key, EdgeGroupKey>;
  constexpr bool is_of_flow = core::kBelonging<Record> == core::Belonging::to_flow;
  DueOwner owner;
  owner.belonging = core::kBelonging<Record>;
  owner.is_execution = std::is_same_v<Record, Execution>;
  owner.has_namespace_key = requires(const Key& key) {
    key.namespace_;
  };
  owner.id_column = is_of_flow ? "flow_id" : is_group ? "downstream_eid" : "execution_id";
  return owner;
}

// Parameters are numbered from `first` on.
DueCondition due_condition(const DueOwner& owner, const ScannerFilter& filter, int first,
                           const DueDialect& dialect);

// "x'00ff…'", for people.
std::string shown_bytes(std::string_view bytes);

}  // namespace flowfabric::store
