#include "cli/bench.h"

#include <fmt/core.h>

#include "cli/commands.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kStoreHelp =
    "Store URL: a file that does not exist yet, or a database to make a schema in";

template <class Options>
using Scenario = Result<BenchReport> (*)(BenchStore&, const Options&);

template <class Options>
int run(const Options& options, Scenario<Options> scenario) {
  auto store = BenchStore::open(options.store);
  if (!store) return report(store.error());
  const auto measured = scenario(*store, options);
  if (!measured) return report(measured.error());
  fmt::print("{}", options.json ? to_json(*measured) + "\n" : to_table(*measured));
  return 0;
}

// A scenario of flows, with the options that all of them have.
CLI::App* add_flow_bench(CLI::App& bench, Action& chosen, const std::string& name, const std::string& help,
                         std::shared_ptr<FlowBenchOptions> options, Scenario<FlowBenchOptions> scenario) {
  auto* command = bench.add_subcommand(name, help);
  command->add_option("--store", options->store, kStoreHelp)->capture_default_str();
  command->add_option("--in-flight", options->in_flight, "Operations each worker keeps outstanding")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback(
      [options, scenario, &chosen] { chosen = [options, scenario] { return run(*options, scenario); }; });
  return command;
}

void add_flow_benches(CLI::App& bench, Action& chosen) {
  auto options = std::make_shared<FlowBenchOptions>();
  auto* chain = add_flow_bench(bench, chosen, "flow-chain",
                               "Flows whose nodes follow one after the other, each claimed and completed.",
                               options, bench_flow_chain);
  chain->add_option("--nodes", options->nodes, "Nodes of a flow")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  chain->add_option("--flows", options->flows, "How many flows")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}))
      ->capture_default_str();
  chain->add_option("--workers", options->workers, "How many workers")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  auto* wide = add_flow_bench(bench, chosen, "fan-in", "Many upstreams of one join, completed one by one.",
                              options, bench_fan_in);
  wide->add_option("--upstreams", options->upstreams, "How many upstreams")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{20'000}))
      ->capture_default_str();
  auto* race = add_flow_bench(bench, chosen, "quorum-cancel",
                              "One of many running siblings wins, and the others are cancelled.", options,
                              bench_quorum_cancel);
  race->add_option("--siblings", options->siblings, "How many run")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{9'999}))
      ->capture_default_str();
  race->add_option("--rounds", options->rounds, "How many races")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure the engine on a store of its own.");
  bench->require_subcommand(1);
  auto* lifecycle = bench->add_subcommand("lifecycle", "Submit, claim and complete tasks.");
  auto options = std::make_shared<LifecycleOptions>();
  lifecycle->add_option("--store", options->store, kStoreHelp)->capture_default_str();
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
  lifecycle->callback([options, &chosen] { chosen = [options] { return run(*options, bench_lifecycle); }; });
  add_flow_benches(*bench, chosen);
}

}  // namespace flowfabric::cli
