// What the simulation asks of a store, and what it is answered: plain, comparable values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/expiry.h"
#include "flowfabric/operations.h"
#include "store/store.h"

namespace flowfabric::simulation {

// The clock looks at one record.
struct RunDue {
  using Answer = core::Rule;
  store::DueKey key;
};

using Request = std::variant<CreateExecution, ClaimTasks, RenewLease, UpdateProgress, CompleteExecution,
                             FailExecution, DelayExecution, CancelExecution, RunDue>;

using Answer =
    std::variant<Result<Creation>, Result<std::vector<ClaimedTask>>, Result<Renewal>, Result<ProgressUpdated>,
                 Result<Completed>, Result<Failed>, Result<Delayed>, Result<Cancelled>, Result<core::Rule>>;

struct Step {
  Request request;
  std::uint64_t seed{};  // of the operation's random bits
};

template <class R>
inline constexpr const char* request_name = "";
template <>
inline constexpr const char* request_name<CreateExecution> = "create";
template <>
inline constexpr const char* request_name<ClaimTasks> = "claim";
template <>
inline constexpr const char* request_name<RenewLease> = "renew";
template <>
inline constexpr const char* request_name<UpdateProgress> = "progress";
template <>
inline constexpr const char* request_name<CompleteExecution> = "complete";
template <>
inline constexpr const char* request_name<FailExecution> = "fail";
template <>
inline constexpr const char* request_name<DelayExecution> = "delay";
template <>
inline constexpr const char* request_name<CancelExecution> = "cancel";
template <>
inline constexpr const char* request_name<RunDue> = "due";

inline std::string name_of(const Request& request) {
  return std::visit([](const auto& r) { return request_name<std::remove_cvref_t<decltype(r)>>; }, request);
}

// For messages: the error, or what tells answers of this kind apart.
inline std::string to_text(const Answer& answer) {
  return std::visit(
      [](const auto& result) -> std::string {
        using Value = typename std::remove_cvref_t<decltype(result)>::value_type;
        if (!result) return result.error().to_string();
        if constexpr (std::is_same_v<Value, Creation>) {
          return (result->duplicate ? "duplicate " : "created ") + result->execution_id.to_string();
        } else if constexpr (std::is_same_v<Value, std::vector<ClaimedTask>>) {
          std::string text = "claimed";
          for (const auto& task : *result) text += " " + task.execution_id.to_string();
          return text;
        } else if constexpr (std::is_same_v<Value, core::Rule>) {
          return std::string("rule ") + std::string(enum_name(*result));
        } else {
          return "ok";
        }
      },
      answer);
}

}  // namespace flowfabric::simulation
