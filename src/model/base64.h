// Standard base64, with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flowfabric {

std::string to_base64(std::string_view bytes);
// Absent: it is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace flowfabric
