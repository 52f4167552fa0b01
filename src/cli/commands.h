// The subcommands of the `flowfabric` program. Each adds itself to the parser; what it returns is the exit
// code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "flowfabric/error.h"

namespace flowfabric::cli {

using Action = std::function<int()>;

void add_serve(CLI::App& app, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);
void add_migrate(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen);
void add_watch(CLI::App& app, Action& chosen);
void add_bench(CLI::App& app, Action& chosen);

// Prints the error to standard error; returns the exit code for it.
int report(const Error& error);

}  // namespace flowfabric::cli
