#include "cli/bench.h"

#include <fmt/core.h>

#include "cli/commands.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kStoreHelp =
    "Store URL: a file that does not exist yet, or a database to make a schema in";

template <class Options>
using Scenario = Result<BenchReport> (*)(BenchStore&, const Options&);

int show(const Result<BenchReport>& measured, bool as_json) {
  if (!measured) return report(measured.error());
  fmt::print("{}", as_json ? to_json(*measured) + "\n" : to_table(*measured));
  return 0;
}

template <class Options>
int run(const Options& options, Scenario<Options> scenario) {
  auto store = BenchStore::open(options.store);
  if (!store) return report(store.error());
  return show(scenario(*store, options), options.json);
}

int run_lifecycle(const LifecycleOptions& options) {
  if (options.store.starts_with("http")) return show(bench_lifecycle_over_http(options), options.json);
  return run(options, bench_lifecycle);
}

// A scenario with the options that all of them have.
template <class Options>
Command* add_scenario(Command& bench, Action& chosen, const std::string& name, const std::string& help,
                      std::shared_ptr<Options> options, Scenario<Options> scenario) {
  auto* command = bench.add_subcommand(name, help);
  command->add_option("--store", options->store, kStoreHelp).show_default();
  command->add_option("--in-flight", options->in_flight, "Operations each worker keeps outstanding")
      .in_range(1, 256)
      .show_default();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback(
      [options, scenario, &chosen] { chosen = [options, scenario] { return run(*options, scenario); }; });
  return command;
}

void add_workers(Command& command, int& workers) {
  command.add_option("--workers", workers, "Number of workers").in_range(1, 1024).show_default();
}

void add_flow_benches(Command& bench, Action& chosen) {
  auto options = std::make_shared<FlowBenchOptions>();
  auto* chain = add_scenario(bench, chosen, "flow-chain",
                             "Flows whose nodes follow one after the other, each claimed and completed.",
                             options, bench_flow_chain);
  chain->add_option("--nodes", options->nodes, "Nodes of a flow").in_range(1, 10'000).show_default();
  chain->add_option("--flows", options->flows, "Number of flows").in_range(1, 10'000'000).show_default();
  add_workers(*chain, options->workers);
  auto* wide = add_scenario(bench, chosen, "fan-in", "Many upstreams of one join, completed one by one.",
                            options, bench_fan_in);
  wide->add_option("--upstreams", options->upstreams, "Number of upstreams")
      .in_range(4, 20'000)
      .show_default();
  auto* race = add_scenario(bench, chosen, "quorum-cancel",
                            "One of many running siblings wins, and the others are cancelled.", options,
                            bench_quorum_cancel);
  race->add_option("--siblings", options->siblings, "Number of running siblings")
      .in_range(2, 9'999)
      .show_default();
  race->add_option("--rounds", options->rounds, "Number of races").in_range(1, 10'000).show_default();
}

void add_suspend_bench(Command& bench, Action& chosen) {
  auto options = std::make_shared<SuspendBenchOptions>();
  auto* command = add_scenario(bench, chosen, "suspend-resume",
                               "A worker suspends, a signal comes, and a waiting worker resumes.", options,
                               bench_suspend_resume);
  command
      ->add_option("--idle-cycles", options->idle_cycles, "Number of cycles one at a time, for the latency")
      .in_range(1, 10'000'000)
      .show_default();
  command->add_option("--cycles", options->cycles, "Number of cycles with many in flight, for the throughput")
      .in_range(1, 100'000'000)
      .show_default();
  add_workers(*command, options->workers);
}

void add_stream_bench(Command& bench, Action& chosen) {
  auto options = std::make_shared<StreamBenchOptions>();
  auto* command = add_scenario(bench, chosen, "stream", "Append frames, and deliver them to waiting tailers.",
                               options, bench_stream);
  command->add_option("--frames", options->frames, "Number of frames at full speed")
      .in_range(1, 100'000'000)
      .show_default();
  command->add_option("--tailed", options->tailed, "Number of frames one at a time, to a waiting tailer")
      .in_range(1, 10'000'000)
      .show_default();
  command->add_option("--idle-tailers", options->idle_tailers, "Number of tailers that only wait")
      .in_range(1, 60'000)
      .show_default();
  command->add_option("--payload-bytes", options->payload_bytes, "Size of a frame")
      .in_range(0, 65'536)
      .show_default();
  add_workers(*command, options->workers);
}

}  // namespace

void add_bench(Command& app, Action& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure the engine on a temporary store.");
  bench->require_subcommand();
  bench->footer(
      "Examples:\n"
      "  flowfabric bench lifecycle --store sqlite:bench.db --tasks 50000 --workers 16\n"
      "  flowfabric bench fan-in --upstreams 1000 --json");
  auto* lifecycle = bench->add_subcommand("lifecycle", "Submit, claim and complete tasks.");
  auto options = std::make_shared<LifecycleOptions>();
  lifecycle
      ->add_option(
          "--store", options->store,
          fmt::format("{}; or http://host:port of a server, each worker being a connection", kStoreHelp))
      .show_default();
  lifecycle->add_option("--tasks", options->tasks, "Number of tasks").in_range(1, 100'000'000).show_default();
  add_workers(*lifecycle, options->workers);
  lifecycle->add_option("--in-flight", options->in_flight, "Operations each worker keeps outstanding")
      .in_range(1, 256)
      .show_default();
  lifecycle->add_option("--payload-bytes", options->payload_bytes, "Input size of a task")
      .in_range(0, 1 << 20)
      .show_default();
  lifecycle->add_flag("--limited", options->limited,
                      "Attach a budget and a quota policy, never reached, to every task");
  lifecycle->add_flag("--json", options->json, "Print one JSON object");
  lifecycle->callback([options, &chosen] { chosen = [options] { return run_lifecycle(*options); }; });
  add_flow_benches(*bench, chosen);
  add_suspend_bench(*bench, chosen);
  add_stream_bench(*bench, chosen);
}

}  // namespace flowfabric::cli
