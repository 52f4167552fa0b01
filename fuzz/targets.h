// The fuzz targets. `scripts/fuzz` feeds them made-up input, and the unit tests run them on fuzz/corpus. Each
// throws when a promise of the code under test is broken.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace flowfabric::fuzz {

void waitpoint_token(std::string_view input);
void resume_condition(std::string_view input);
void condition_tree(std::string_view input);
void http_edge(std::string_view input);

inline void require(bool holds, const char* promise) {
  if (!holds) throw std::logic_error(promise);
}

}  // namespace flowfabric::fuzz
