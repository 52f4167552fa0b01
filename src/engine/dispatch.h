// Which rule of the core answers which request.
#pragma once

#include "core/cancel.h"
#include "core/claim.h"
#include "core/create.h"
#include "core/lease.h"
#include "core/report.h"

namespace flowfabric::engine {

inline auto apply(core::Unit& unit, const CreateExecution& request, core::Context& at) {
  return core::create(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimTasks& request, core::Context& at) {
  return core::claim(unit, request, at);
}
inline auto apply(core::Unit& unit, const RenewLease& request, core::Context& at) {
  return core::renew(unit, request, at);
}
inline auto apply(core::Unit& unit, const UpdateProgress& request, core::Context& at) {
  return core::update_progress(unit, request, at);
}
inline auto apply(core::Unit& unit, const CompleteExecution& request, core::Context& at) {
  return core::complete(unit, request, at);
}
inline auto apply(core::Unit& unit, const FailExecution& request, core::Context& at) {
  return core::fail(unit, request, at);
}
inline auto apply(core::Unit& unit, const DelayExecution& request, core::Context& at) {
  return core::delay(unit, request, at);
}
inline auto apply(core::Unit& unit, const CancelExecution& request, core::Context& at) {
  return core::cancel(unit, request, at);
}

// Names what a request will need, so that a store across a network fetches it in its first round trip.
inline void want(core::Unit& unit, const CreateExecution& request) {
  core::want_for(unit, request);
}
inline void want(core::Unit& unit, const ClaimTasks& request) {
  for (const auto& lane : request.lanes) unit.want_routes(lane);
}
template <class Request>
void want(core::Unit& unit, const Request& request) {
  unit.want<Execution>(request.execution_id);
}

// How much memory a queued request holds, roughly.
inline std::size_t weight(const CreateExecution& request) {
  return sizeof(request) + request.input.size();
}
inline std::size_t weight(const CompleteExecution& request) {
  return sizeof(request) + request.result.size();
}
template <class Request>
std::size_t weight(const Request& request) {
  return sizeof(request);
}

}  // namespace flowfabric::engine
