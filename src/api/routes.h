// The routes, by subject. Each file reads its requests, asks the engine, and writes the answers; the rules
// are the engine's.
#pragma once

#include <span>

#include "api/call.h"

namespace flowfabric::api {

inline constexpr Cap kLargeBody = &BodyLimits::large;
inline constexpr Cap kMediumBody = &BodyLimits::signal;
inline constexpr Cap kSmallBody = &BodyLimits::control;
inline constexpr Cap kBulkBody = &BodyLimits::bulk;

std::span<const Route> execution_routes();  // create, read, list, stop
std::span<const Route> signal_routes();     // waitpoints, signals, suspensions, secrets
std::span<const Route> stream_routes();     // output and events, also live
std::span<const Route> flow_routes();
std::span<const Route> limit_routes();     // budgets and quotas
std::span<const Route> task_routes();      // claims and reports of workers
std::span<const Route> registry_routes();  // lanes and workers
std::span<const Route> operator_routes();  // holding, bulk operations, overview
std::span<const Route> system_routes();    // health, metrics, the document

}  // namespace flowfabric::api
