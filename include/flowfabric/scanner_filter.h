#pragma once

#include <optional>
#include <string>
#include <utility>

namespace flowfabric {

// The records whose deadlines an engine handles, where several engines share a store. An absent condition
// matches all. Records of an execution or a flow are matched by namespace and tags; workers, idempotency keys
// and routes by namespace alone.
struct ScannerFilter {
  std::optional<std::string> namespace_{};
  std::optional<std::pair<std::string, std::string>> instance_tag{};  // key and value
};

}  // namespace flowfabric
