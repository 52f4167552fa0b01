// The simulation's requests to a store, and its answers: plain, comparable values.
#pragma once

#include <boost/core/demangle.hpp>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

#include "core/lifecycle/bulk.h"
#include "core/lifecycle/expiry.h"
#include "core/operations.h"
#include "store/store.h"

namespace flowfabric::simulation {

// The clock looks at one record.
struct RunDue {
  using Answer = core::Rule;
  RecordKey key;
};

// One execution of a bulk operation's step, and the end of the step.
struct ApplyBulk {
  using Answer = core::BulkItem;
  OperationId operation_id;
  ExecutionId execution_id;
};
struct RecordBulk {
  using Answer = core::BulkItem;
  core::BulkStep step;
};

using Requests = boost::mp11::mp_push_back<core::Writes, ApplyBulk, RecordBulk, RunDue>;

template <class Request>
using AnswerTo = Result<typename Request::Answer>;

using Request = boost::mp11::mp_rename<Requests, std::variant>;
using Answer = boost::mp11::mp_rename<boost::mp11::mp_unique<boost::mp11::mp_transform<AnswerTo, Requests>>,
                                      std::variant>;

struct Step {
  Request request;
  std::uint64_t seed{};  // of the operation's random bits
};

// Calls f(request, answer), both with their own types.
template <class F>
void match(const Step& step, const Answer& answer, F&& f) {
  std::visit([&]<class Asked>(const Asked& request) { f(request, std::get<AnswerTo<Asked>>(answer)); },
             step.request);
}

template <class Asked>
std::string name_of() {
  return boost::core::demangle(typeid(Asked).name());
}
inline std::string name_of(const Request& request) {
  return std::visit([]<class Asked>(const Asked&) { return name_of<Asked>(); }, request);
}

// For messages: the error, or what tells answers of this kind apart.
inline std::string to_text(const Answer& answer) {
  return std::visit(
      []<class Value>(const Result<Value>& result) -> std::string {
        if (!result) return result.error().to_string();
        if constexpr (std::is_same_v<Value, Creation>) {
          return (result->duplicate ? "duplicate " : "created ") + result->execution_id.to_string();
        } else if constexpr (std::is_same_v<Value, std::vector<ClaimedTask>>) {
          std::string text = "claimed";
          for (const auto& task : *result) text += " " + task.execution_id.to_string();
          return text;
        } else if constexpr (std::is_same_v<Value, core::Rule>) {
          return "rule " + std::string(enum_name(*result));
        } else if constexpr (std::is_same_v<Value, ReclaimAnswer>) {
          return std::string(enum_name(result->status)) + " " + result->detail;
        } else if constexpr (std::is_same_v<Value, Suspended>) {
          return (result->already_satisfied ? "already satisfied " : "suspended ") +
                 result->suspension_id.to_string();
        } else if constexpr (std::is_same_v<Value, SignalDelivered>) {
          return (result->effect ? std::string(enum_name(*result->effect)) : "duplicate") + " " +
                 result->signal_id.to_string();
        } else {
          return "ok";
        }
      },
      answer);
}

}  // namespace flowfabric::simulation
