// The subcommands of the `flowfabric` program. Each adds itself to the parser; its action returns the exit
// code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "flowfabric/error.h"

namespace flowfabric::cli {

using Action = std::function<int()>;

// Clients of a server or a store.
void add_submit(CLI::App& app, Action& chosen);
void add_inspect(CLI::App& app, Action& chosen);  // get, list, why
void add_change(CLI::App& app, Action& chosen);   // cancel, replay
void add_signal(CLI::App& app, Action& chosen);
void add_flow(CLI::App& app, Action& chosen);
void add_watch(CLI::App& app, Action& chosen);  // tail, events
void add_fleet(CLI::App& app, Action& chosen);  // lanes, workers, budgets
void add_top(CLI::App& app, Action& chosen);

// Other commands.
void add_serve(CLI::App& app, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);
void add_migrate(CLI::App& app, Action& chosen);
void add_backup(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen);
void add_bench(CLI::App& app, Action& chosen);
void add_completion(CLI::App& app, Action& chosen);

// Prints the error to standard error; returns the exit code for it.
int report(const Error& error);

}  // namespace flowfabric::cli
