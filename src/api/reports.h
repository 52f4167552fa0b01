// Reports of workers about their tasks: one operation of the engine for each `op`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "api/call.h"

namespace flowfabric::api {

// The `ok` object as JSON, or the error.
using ReportAnswer = std::function<void(Result<std::string> ok)>;

// Reads the report (throws a Refusal or an Error) and gives it to the engine. `op` comes from the path,
// unless the report has it. `in_order_with`: see Engine::post.
void send_report(Engine& engine, const Fields& report, std::string_view op, ReportAnswer answer,
                 const std::optional<ExecutionId>& in_order_with = std::nullopt);

// Writes a claimed task.
void write_task(JsonWriter& out, const ClaimedTask& task);

}  // namespace flowfabric::api
