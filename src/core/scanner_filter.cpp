#include "core/scanner_filter.h"

namespace flowfabric::core {

bool is_empty(const ScannerFilter& filter) {
  return !filter.namespace_ && !filter.instance_tag;
}

bool matches(const ScannerFilter& filter, const std::string& name_space) {
  return !filter.namespace_ || *filter.namespace_ == name_space;
}

bool matches(const ScannerFilter& filter, const std::string& name_space, const Tags& tags) {
  if (!matches(filter, name_space)) return false;
  if (!filter.instance_tag) return true;
  const auto tag = tags.find(filter.instance_tag->first);
  return tag != tags.end() && tag->second == filter.instance_tag->second;
}

}  // namespace flowfabric::core
