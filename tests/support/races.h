// Two callers at the same moment.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "flowfabric/engine.h"

namespace flowfabric::tests {

// `Base` is one of the fixtures with an engine.
template <class Base>
class Races : public Base {
 protected:
  using Base::Base;

  template <class Request>
  auto calling(Request request) {
    return [this, request = std::move(request)] { return this->engine().call(request); };
  }

  // Prepares two calls with `make`, makes them, and judges their answers with `judge`, which says whether the
  // first has won. In the first two rounds one goes after the other, so that both orders are seen; in all
  // others they go at once.
  template <class Make, class Judge>
  void race(Make make, Judge judge, int rounds = 50) {
    int wins = 0;
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      auto [id, one, other] = make();
      auto [first, second] = in_round(round, one, other);
      if (judge(id, first, second)) ++wins;
      if (Base::HasFatalFailure()) return;
      if (round == 0) {
        EXPECT_EQ(wins, 1) << "nobody was in the way of the first";
      } else if (round == 1) {
        EXPECT_EQ(wins, 1) << "the second was earlier";
      }
    }
  }

  template <class One, class Other>
  static auto in_round(int round, One one, Other other) {
    if (round == 0) {
      auto first = one();
      return std::pair{std::move(first), other()};
    }
    if (round == 1) {
      auto second = other();
      return std::pair{one(), std::move(second)};
    }
    std::barrier start(2);
    std::optional<decltype(other())> second;
    std::jthread thread([&] {
      start.arrive_and_wait();
      second = other();
    });
    start.arrive_and_wait();
    auto first = one();
    thread.join();
    return std::pair{std::move(first), *std::move(second)};
  }

  // The second of two equal calls is refused with this code.
  template <class Answer>
  static bool one_of_two(const Result<Answer>& first, const Result<Answer>& second, ErrorCode code) {
    EXPECT_NE(first.has_value(), second.has_value());
    for (const auto* answer : {&first, &second}) {
      if (!*answer) {
        EXPECT_EQ(error_name(answer->error().code), error_name(code));
      }
    }
    return first.has_value();
  }
  // Refused in any case: with the first code if this call came second.
  template <class Answer>
  static bool is_either(const Result<Answer>& refused, ErrorCode second, ErrorCode first) {
    if (!refused && refused.error().code == second) return true;
    expect_code(refused, first);
    return false;
  }
  template <class Answer>
  static void expect_code(const Result<Answer>& answer, ErrorCode code) {
    ASSERT_FALSE(answer) << "succeeded instead of answering " << error_name(code);
    EXPECT_EQ(error_name(answer.error().code), error_name(code));
  }
};

}  // namespace flowfabric::tests
