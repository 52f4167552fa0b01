#include <fmt/core.h>

#include "cli/commands.h"
#include "flowfabric/version.h"

namespace flowfabric::cli {

int report(const Error& error) {
  fmt::print(stderr, "flowfabric: {}\n", error.to_string());
  return 1;
}

}  // namespace flowfabric::cli

int main(int argc, char** argv) {
  CLI::App app("FlowFabric: a durable execution engine.", "flowfabric");
  app.set_version_flag("--version", std::string("flowfabric ") + flowfabric::kVersion);
  app.require_subcommand(1);
  flowfabric::cli::Action chosen;
  flowfabric::cli::add_serve(app, chosen);
  flowfabric::cli::add_demo(app, chosen);
  flowfabric::cli::add_migrate(app, chosen);
  flowfabric::cli::add_doctor(app, chosen);
  flowfabric::cli::add_watch(app, chosen);
  flowfabric::cli::add_bench(app, chosen);
  CLI11_PARSE(app, argc, argv);
  return chosen();
}
