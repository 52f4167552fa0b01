#include "store/due_sql.h"

namespace flowfabric::store {

namespace {

class Writer {
 public:
  Writer(const ScannerFilter& filter, int first, const DueDialect& dialect)
      : filter_(filter), next_(first), dialect_(dialect) {}

  DueCondition of(const core::ClockRule& rule) {
    if (rule.belonging == core::Belonging::to_namespace) {
      // An empty namespace in a key is a text, and not null.
      return given(namespace_is("t", column_named(rule.type->key->columns, "namespace") != nullptr));
    }
    if (rule.type->is<Execution>()) return given(namespace_is("t", false) + execution_has_tag("t"));
    const bool is_flow = rule.belonging == core::Belonging::to_flow;
    const bool is_join = rule.type->is<PendingCancelGroup>();
    const std::string table = is_flow ? Flow::table : Execution::table;
    const std::string id = is_flow ? "flow_id" : "execution_id";
    const std::string id_here = is_join ? "downstream_eid" : id;
    const auto conditions = namespace_is("o", false) + (is_flow ? flow_has_tag() : execution_has_tag("o"));
    return given(" and exists(select 1 from " + table + " o where o.partition_key=t.partition_key and o." +
                 id + "=t." + id_here + conditions + ")");
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

DueCondition due_condition(const core::ClockRule& rule, const ScannerFilter& filter, int first,
                           const DueDialect& dialect) {
  if (core::is_empty(filter) || rule.belonging == core::Belonging::to_nobody) return {};
  return Writer(filter, first, dialect).of(rule);
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
