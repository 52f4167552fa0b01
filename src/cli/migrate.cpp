#include <fmt/core.h>

#include "cli/commands.h"
#include "flowfabric/engine.h"

namespace flowfabric::cli {

void add_migrate(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("migrate", "Create or upgrade the schema of a store.");
  auto url = std::make_shared<std::string>();
  command
      ->add_option("--store", *url,
                   "Store URL, for example sqlite:flowfabric.db or postgres://user@host/database")
      .required();
  auto dry_run = std::make_shared<bool>(false);
  command->add_flag("--dry-run", *dry_run, "Print the SQL that would run, and change nothing");
  command->footer(
      "Examples:\n"
      "  flowfabric migrate --store postgres://user@host/database\n"
      "  flowfabric migrate --store postgres://user@host/database --dry-run");
  command->callback([url, dry_run, &chosen] {
    chosen = [url, dry_run] {
      const auto done = *dry_run ? plan_migration(*url) : migrate(*url);
      if (!done) return report(done.error());
      fmt::print("{}{}", *done, *dry_run ? "" : "\n");
      return 0;
    };
  });
}

}  // namespace flowfabric::cli
