// Output streams: who may append, what is kept, and when a stream is closed (specification 06 §1–§4).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

StreamKey stream_key(const ExecutionId& id, std::uint32_t attempt_index);

Result<FrameAppended> apply(Unit& unit, const AppendFrame& request, Context& at);

// Its frames are gone, whether somebody has removed them or not.
bool has_expired(const Stream& stream, std::int64_t now_ms);

// When the stream of an attempt was closed, and why. `ended` is the attempt's history row, if it has one.
struct Closing {
  std::int64_t at_ms{};
  std::string reason;
};
std::optional<Closing> closing_of(const Execution* execution, std::uint32_t attempt_index,
                                  const Attempt* ended);

Rule run_stream_clock(Unit& unit, const StreamKey& key, Context& at);

}  // namespace flowfabric::core
