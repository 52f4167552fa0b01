// The condition on which a suspended execution resumes: a tree over the signals that arrive at its
// waitpoints.
//
//   ResumeCondition{SingleSignal{"approval", SignalMatcher{"approved"}}}
//   ResumeCondition{AllOf{{ResumeCondition{SingleSignal{"a"}}, ResumeCondition{SingleSignal{"b"}}}}}
//   ResumeCondition{CountOf{.n = 2, .count_kind = CountKind::distinct_sources, .waitpoints = {"review"}}}
//
// "Any of" is a count of one. An empty key means the suspension's first waitpoint, whatever its key.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace flowfabric {

// Exact equality with the signal's name; absent: any.
struct SignalMatcher {
  std::optional<std::string> name{};
  bool operator==(const SignalMatcher&) const = default;
};

enum class CountKind { distinct_waitpoints, distinct_signals, distinct_sources };
BOOST_DESCRIBE_ENUM(CountKind, distinct_waitpoints, distinct_signals, distinct_sources)

struct ResumeCondition;

// At least one matching signal has arrived at the waitpoint with this key.
struct SingleSignal {
  std::string waitpoint_key;
  SignalMatcher matcher{};
  bool operator==(const SingleSignal&) const = default;
};
// No signal meets this condition; only an operator resumes.
struct OperatorOnly {
  bool operator==(const OperatorOnly&) const = default;
};
struct TimeoutOnly {
  bool operator==(const TimeoutOnly&) const = default;
};
struct AllOf {
  std::vector<ResumeCondition> members;
  bool operator==(const AllOf&) const = default;
};
// At least `n` distinct signals, as `count_kind` says, among the matching ones at any of the waitpoints.
struct CountOf {
  std::uint32_t n{1};
  CountKind count_kind{CountKind::distinct_waitpoints};
  SignalMatcher matcher{};
  std::vector<std::string> waitpoints;  // keys
  bool operator==(const CountOf&) const = default;
};

struct ResumeCondition {
  std::variant<SingleSignal, OperatorOnly, TimeoutOnly, AllOf, CountOf> node{};
  bool operator==(const ResumeCondition&) const = default;
};

}  // namespace flowfabric
