#include <fmt/core.h>

#include "cli/commands.h"
#include "flowfabric/engine.h"

namespace flowfabric::cli {

void add_migrate(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("migrate", "Create or upgrade the schema of a store.");
  auto url = std::make_shared<std::string>();
  command->add_option("--store", *url, "Store URL, for example sqlite:flowfabric.db")->required();
  command->callback([url, &chosen] {
    chosen = [url] {
      const auto done = migrate(*url);
      if (!done) return report(done.error());
      fmt::print("{}\n", *done);
      return 0;
    };
  });
}

}  // namespace flowfabric::cli
