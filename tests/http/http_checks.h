// Checks that the tests of single routes share.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "http_fixture.h"

namespace flowfabric::tests {

// An error in one line: `409 contention: StaleGraphRevision (contention, retryable)`. What is in braces comes
// from `kind` and `retryable`, and is not there without them.
inline std::string said(const Reply& reply) {
  auto text = std::to_string(reply.status) + " " + reply.at("/error");
  if (reply.has("/kind") || reply.has("/retryable")) {
    text +=
        " (" + reply.at("/kind") + ", " + (reply.at("/retryable") == "true" ? "retryable" : "final") + ")";
  }
  return text;
}

// A body of the wrong shape.
inline void expect_shape_refused(const Reply& reply, const std::string& body) {
  EXPECT_EQ(said(reply), "422 invalid JSON: Unprocessable Entity") << body;
  EXPECT_EQ(reply.at("/code"), "invalid_input") << body;
}

// True as soon as it is; false when it does not become so.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace flowfabric::tests
