#pragma once

#include <optional>
#include <string>
#include <utility>

namespace flowfabric {

// Whose time-driven work an engine sees to, where several share a store; what is absent matches all. Of what
// belongs to an execution or a flow, its namespace and its tags count; of workers, idempotency keys and
// routes, the namespace alone.
struct ScannerFilter {
  std::optional<std::string> namespace_{};
  std::optional<std::pair<std::string, std::string>> instance_tag{};  // key and value
};

}  // namespace flowfabric
