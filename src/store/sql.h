// The SQL text that follows from a record's description; shared by every SQL store.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/record_type.h"

namespace flowfabric::store {

using Names = std::span<const std::string_view>;

// "t.a,t.b", each name with `before` before it.
std::string listed(Names names, std::string_view before = "");
std::string listed(Columns columns, std::string_view before = "");
// "a=?1 and b=?2"
std::string equal_to_parameters(Names names);

// "(a='x' or a='y')": the form that partial indexes have, word for word. The values are words of ours.
std::string one_of(std::string_view column, std::span<const std::string_view> words);

// "ownership_state='leased' and worker_instance_id=": whose leases, follows.
std::string held_by();

// "a,b,c"
template <class Struct>
std::string column_list() {
  return listed(described_columns<Struct>());
}

// "a=?1 and b=?2", over the key columns.
inline std::string key_condition(const TableType& type) {
  return equal_to_parameters(type.key_names());
}

// As many keys as the first parameter says, behind the one that the others give. `mark(type, number)` writes
// a parameter.
using Mark = std::string(const FieldType& type, int number);
std::string keys_statement(const RecordType& type, bool goes_on, Mark mark);

}  // namespace flowfabric::store
