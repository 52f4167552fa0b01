#include "cli/bench.h"

#include <fmt/core.h>

#include "cli/commands.h"

namespace flowfabric::cli {

void add_bench(CLI::App& app, Action& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure the engine on a store of its own.");
  bench->require_subcommand(1);
  auto* lifecycle = bench->add_subcommand("lifecycle", "Submit, claim and complete tasks.");
  auto options = std::make_shared<LifecycleOptions>();
  lifecycle
      ->add_option("--store", options->store,
                   "Store URL: a file that does not exist yet, or a database to make a schema in")
      ->capture_default_str();
  lifecycle->add_option("--tasks", options->tasks, "How many tasks")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}))
      ->capture_default_str();
  lifecycle->add_option("--workers", options->workers, "How many workers")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  lifecycle->add_option("--in-flight", options->in_flight, "Operations each worker keeps outstanding")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  lifecycle->add_option("--payload-bytes", options->payload_bytes, "Input size of a task")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  lifecycle->add_flag("--json", options->json, "Print one JSON object");
  lifecycle->callback([options, &chosen] {
    chosen = [options] {
      auto store = BenchStore::open(options->store);
      if (!store) return report(store.error());
      const auto measured = bench_lifecycle(*store, *options);
      if (!measured) return report(measured.error());
      fmt::print("{}", options->json ? to_json(*measured) + "\n" : to_table(*measured));
      return 0;
    };
  });
}

}  // namespace flowfabric::cli
