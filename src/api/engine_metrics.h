// The figures of the engine and its store in Prometheus' text format. docs/observability.md lists them.
#pragma once

#include <string>

#include "flowfabric/stats.h"

namespace flowfabric::api {

void append_engine(std::string& out, const EngineStats& stats);
void append_store(std::string& out, const StoreFigures& figures);

}  // namespace flowfabric::api
