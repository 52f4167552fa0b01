// Waiting in tests.
#pragma once

#include <chrono>
#include <thread>

namespace flowfabric::e2e {

// Whether the condition came true in time.
template <class Condition>
bool wait_until(Condition is_true, std::chrono::milliseconds patience,
                std::chrono::milliseconds step = std::chrono::milliseconds(5)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(step);
  }
  return true;
}

// Measures from where it is made.
class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_{std::chrono::steady_clock::now()};
};

}  // namespace flowfabric::e2e
