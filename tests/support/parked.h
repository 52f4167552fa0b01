// Waiting until claims wait.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "flowfabric/engine.h"

namespace flowfabric::tests {

// Returns when so many claims are parked. Several committers may be at work, so that only the engine can
// tell.
inline void await_parked(Engine& engine, std::uint64_t claims) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (engine.stats().waiting_claims < claims) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "no claim is waiting";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace flowfabric::tests
