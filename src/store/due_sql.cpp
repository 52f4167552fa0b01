#include "store/due_sql.h"

namespace flowfabric::store {

namespace {

class Writer {
 public:
  Writer(const ScannerFilter& filter, int first, const DueDialect& dialect)
      : filter_(filter), next_(first), dialect_(dialect) {}

  DueCondition of(const DueOwner& owner) {
    if (owner.belonging == core::Belonging::to_namespace) {
      return given(namespace_is("t", owner.has_namespace_key));
    }
    if (owner.is_execution) return given(namespace_is("t", false) + execution_has_tag("t"));
    const bool is_flow = owner.belonging == core::Belonging::to_flow;
    const std::string id = is_flow ? "flow_id" : "execution_id";
    const std::string table = is_flow ? Flow::table : Execution::table;
    const auto conditions = namespace_is("o", false) + (is_flow ? flow_has_tag() : execution_has_tag("o"));
    return given(" and exists(select 1 from " + table + " o where o.partition_key=t.partition_key and o." +
                 id + "=t." + owner.id_column + conditions + ")");
  }

 private:
  DueCondition given(std::string sql) { return {std::move(sql), std::move(values_)}; }
  std::string parameter(const std::string& value) {
    values_.push_back(value);
    return dialect_.text_parameter(next_++);
  }

  // An empty text is stored as null, but for keys.
  std::string namespace_is(const std::string& table, bool is_key) {
    if (!filter_.namespace_) return "";
    const auto column = dialect_.no_index(table + ".namespace");
    if (filter_.namespace_->empty() && !is_key) return " and " + column + " is null";
    return " and " + column + "=" + parameter(*filter_.namespace_);
  }
  std::string execution_has_tag(const std::string& table) {
    if (!filter_.instance_tag) return "";
    const auto same = [&](const std::string& column) {
      return " and g." + column + "=" + table + "." + column;
    };
    const auto key = parameter(filter_.instance_tag->first);
    const auto value = parameter(filter_.instance_tag->second);
    return " and exists(select 1 from ff_exec_tag g where g.tag_key=" + key + " and g.tag_value=" + value +
           same("created_at_ms") + same("partition_key") + same("execution_id") + ")";
  }
  std::string flow_has_tag() {
    if (!filter_.instance_tag) return "";
    const auto key = parameter(filter_.instance_tag->first);
    return " and " + dialect_.flow_has_tag(key, parameter(filter_.instance_tag->second));
  }

  const ScannerFilter& filter_;
  int next_;
  const DueDialect& dialect_;
  std::vector<std::string> values_;
};

}  // namespace

DueCondition due_condition(const DueOwner& owner, const ScannerFilter& filter, int first,
                           const DueDialect& dialect) {
  if (core::is_empty(filter) || owner.belonging == core::Belonging::to_nobody) return {};
  return Writer(filter, first, dialect).of(owner);
}

std::string shown_bytes(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr std::size_t most = 40;
  std::string shown = "x'";
  for (const char c : bytes.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += digits[byte >> 4];
    shown += digits[byte & 15];
  }
  return shown + (bytes.size() > most ? "…'" : "'");
}

}  // namespace flowfabric::store
