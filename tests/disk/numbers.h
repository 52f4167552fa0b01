// Numbers that the environment may set.
#pragma once

#include <cstdlib>
#include <string>

namespace flowfabric::disk {

inline std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

}  // namespace flowfabric::disk
