#pragma once

namespace flowfabric {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace flowfabric
