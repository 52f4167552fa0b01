#include "flowfabric/backup.h"

#include <fmt/core.h>

#include "cli/commands.h"

namespace flowfabric::cli {

void add_backup(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("backup", "Copy an embedded store, in use or not, into a new file.");
  auto url = std::make_shared<std::string>();
  auto file = std::make_shared<std::string>();
  command->add_option("--store", *url, "Store URL, for example sqlite:flowfabric.db").required();
  command->add_option("FILE", *file, "The copy; it must not exist yet").required();
  command->footer(
      "The copy holds everything that was acknowledged before. To restore it, stop the server, move the\n"
      "database and all files beside it away, and put the copy in its place.\n\n"
      "Example:\n"
      "  flowfabric backup --store sqlite:jobs.db jobs-2026-11-17.db");
  command->callback([url, file, &chosen] {
    chosen = [url, file] {
      const auto done = backup(*url, *file);
      if (!done) return report(done.error());
      fmt::print("{}\n", *done);
      return 0;
    };
  });
}

}  // namespace flowfabric::cli
