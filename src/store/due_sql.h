// The part of a query for what is due that leaves out what is for other clocks (core/clock/scanner_filter.h);
// the same for every SQL store.
#pragma once

#include <string>
#include <vector>

#include "core/clock/scanner_filter.h"
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

// Its table is `t`. Parameters are numbered from `first` on.
DueCondition due_condition(const core::ClockRule& rule, const ScannerFilter& filter, int first,
                           const DueDialect& dialect);

// "x'00ff…'", for people.
std::string shown_bytes(std::string_view bytes);

}  // namespace flowfabric::store
