#include "server/serve.h"

#include <fmt/core.h>

#include "cli/commands.h"

namespace flowfabric::cli {

void add_serve(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("serve", "Run the HTTP server.");
  auto sources = std::make_shared<server::Sources>();
  server::add_options(command->parser(), sources->flags);
  command->footer(
      "Examples:\n"
      "  flowfabric serve\n"
      "  flowfabric serve --store postgres://user@host/database\n"
      "  openssl rand -hex 32 > token\n"
      "  flowfabric serve --listen 0.0.0.0:9090 --api-token-file token --tls-certificate cert.pem --tls-key "
      "key.pem\n"
      "  flowfabric serve --print-config > flowfabric.toml\n\n" +
      server::environment_help());
  command->callback([sources, &chosen] {
    chosen = [sources] {
      sources->environment = server::process_environment();
      const auto config = server::load_config(*sources);
      if (!config) return report(config.error());
      if (sources->flags.print_config) {
        fmt::print("{}", server::print_config(*config));
        return 0;
      }
      return server::serve(*config);
    };
  });
}

}  // namespace flowfabric::cli
