// One of several servers on a database: a process with an engine, sixteen workers and two submitters.
#pragma once

#include <string>

namespace flowfabric::e2e {

inline constexpr const char* kServerArgument = "--child-as-server";

// Submits the executions of the numbers up to `executions`, which other servers submit, too, and works until
// it gets SIGTERM. A name of "down" counts downwards, any other upwards. Says the lines of kill_child.h.
int run_server(const std::string& url, const std::string& name, int executions, int pipe);

}  // namespace flowfabric::e2e
