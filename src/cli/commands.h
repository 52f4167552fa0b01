// The subcommands of the `flowfabric` program. Each adds itself to the parser; its action returns the exit
// code.
#pragma once

#include <functional>

#include "cli/command_line.h"
#include "flowfabric/error.h"

namespace flowfabric::cli {

using Action = std::function<int()>;

// Clients of a server or a store.
void add_submit(Command& app, Action& chosen);
void add_inspect(Command& app, Action& chosen);  // get, list, why
void add_change(Command& app, Action& chosen);   // cancel, replay
void add_signal(Command& app, Action& chosen);
void add_flow(Command& app, Action& chosen);
void add_watch(Command& app, Action& chosen);  // tail, events
void add_fleet(Command& app, Action& chosen);  // lanes, workers, budgets
void add_top(Command& app, Action& chosen);

// Other commands.
void add_serve(Command& app, Action& chosen);
void add_demo(Command& app, Action& chosen);
void add_migrate(Command& app, Action& chosen);
void add_backup(Command& app, Action& chosen);
void add_doctor(Command& app, Action& chosen);
void add_bench(Command& app, Action& chosen);
void add_completion(Command& app, Action& chosen);

// Prints the error to standard error; returns the exit code for it.
int report(const Error& error);

}  // namespace flowfabric::cli
