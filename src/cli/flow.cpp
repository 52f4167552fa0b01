// `flowfabric flow submit`, `show`, `list` and `cancel`.
#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/flow_table.h"
#include "cli/output.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

std::string flow_path(const std::string& id, const std::string& rest = "") {
  return "/v1/flows/" + segment(uuid_argument("flow", id)) + rest;
}

// ---- submit -----------------------------------------------------------------------------------------------

struct FlowSubmitOptions : CommonOptions {
  std::string file;
};

int submit_flow(const FlowSubmitOptions& options) {
  const auto flow = json_file(options.file);
  Client client(options.connection, Purpose::create);
  const auto reply = client.post("/v1/flows/submit", flow);
  fmt::print("{}\n", options.json ? reply.body : text_of(reply.root(), "flow_id"));
  if (reply.status == 200 && !options.json) fmt::print(stderr, "It was submitted before.\n");
  return kDone;
}

// ---- show -------------------------------------------------------------------------------------------------

struct FlowOptions : CommonOptions {
  std::string flow;
};

std::string counts_text(JsonView flow) {
  std::string text;
  for (const auto count : items_of(flow, "counts")) {
    if (count.text() == "0") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.text(), count.key());
  }
  return text;
}

void show_head(JsonView flow) {
  const auto line = [](std::string_view name, const std::string& value) {
    if (!value.empty()) fmt::print("  {:<10} {}\n", name, value);
  };
  fmt::print("{}\n", coloured(text_of(flow, "flow_id"), Colour::bold));
  line("kind", printable(text_of(flow, "flow_kind")));
  const auto state = text_of(flow, "state");
  line("state", coloured(state, colour_of_state(state)));
  line("members", counts_text(flow));
  line("namespace", printable(text_of(flow, "namespace")));
  if (text_of(flow, "failure_policy") != "isolate_failures")
    line("failures", text_of(flow, "failure_policy"));
  if (const auto at = number_of(flow, "created_at")) line("created", time_text(*at));
  if (const auto at = number_of(flow, "cancelled_at")) {
    line("cancelled", time_text(*at) + " " + printable(text_of(flow, "cancel_reason")));
  }
}

int show_flow(const FlowOptions& options) {
  const auto path = flow_path(options.flow);
  Client client(options.connection, Purpose::look);
  const auto flow = client.get(path);
  const auto graph = client.get(path + "/graph");
  if (options.json) {
    api::JsonWriter out;
    out.object();
    for (const auto part : {flow.root(), graph.root()}) {
      for (const auto member : part) out.key(member.key()).raw(member.compact());
    }
    fmt::print("{}\n", out.end().take());
    return kDone;
  }
  show_head(flow.root());
  fmt::print("\n{}", flow_table(graph.root()));
  return kDone;
}

// ---- list -------------------------------------------------------------------------------------------------

struct FlowListOptions : CommonOptions {
  std::optional<std::string> name_space;
  std::optional<std::string> kind;
  std::vector<std::string> states;
  std::vector<std::string> tags;
  std::uint64_t limit{50};
  bool all{false};
};

int list_flows(const FlowListOptions& options) {
  Parameters query;
  if (options.name_space) query.emplace_back("namespace", *options.name_space);
  if (options.kind) query.emplace_back("kind", *options.kind);
  for (const auto& state : options.states) query.emplace_back("state", state);
  tags_argument(options.tags);
  for (const auto& tag : options.tags) query.emplace_back("tag", tag);
  Client client(options.connection, Purpose::look);
  Table table({{"FLOW"},
               {"KIND"},
               {"STATE", Table::Align::left, true},
               {"NAMESPACE"},
               {"NODES", Table::Align::right},
               {"AGE", Table::Align::right}});
  const auto show_page = [&](const std::vector<JsonView>& page) {
    for (const auto flow : page) {
      if (options.json) {
        fmt::print("{}\n", flow.compact());
        continue;
      }
      table.add({text_of(flow, "flow_id"), text_of(flow, "flow_kind"), text_of(flow, "state"),
                 text_of(flow, "namespace"), text_of(flow, "node_count"),
                 age_text(number_of(flow, "created_at"))});
    }
    fmt::print("{}", table.take());
  };
  const bool has_more = client.list("/v1/flows", "flows", query, options.all ? 0 : options.limit, show_page);
  if (!options.json && table.empty()) fmt::print(stderr, "No flows.\n");
  if (has_more) fmt::print(stderr, "There are more: --limit N shows N of them, --all shows all.\n");
  return kDone;
}

// ---- cancel -----------------------------------------------------------------------------------------------

struct FlowCancelOptions : FlowOptions {
  std::string reason{"cancelled by an operator"};
  std::string policy{"cancel_all"};
};

int cancel_flow(const FlowCancelOptions& options) {
  const auto path = flow_path(options.flow, "/cancel");
  api::JsonWriter out;
  out.object().field("reason", options.reason).field("cancellation_policy", options.policy).end();
  Client client(options.connection, Purpose::change);
  // The members are cancelled one by one; the command waits for them, up to a limit.
  const auto reply = client.post(path, out.take(), {{"wait", "true"}, {"wait_timeout_ms", "30000"}});
  if (options.json) {
    fmt::print("{}\n", reply.body);
    return kDone;
  }
  const bool is_done = find(reply.root(), "Cancelled").has_value();
  fmt::print("{}\n", is_done ? "cancelled" : "cancelled; some members still have to stop");
  return kDone;
}

}  // namespace

void add_flow(Command& app, Action& chosen) {
  auto* flow = app.add_subcommand("flow", "Submit, show, list and cancel flows.");
  flow->require_subcommand();

  auto* submitting = flow->add_subcommand("submit", "Submit a whole flow, and print its id.");
  auto file = std::make_shared<FlowSubmitOptions>();
  submitting->add_option("file", file->file, "File with the flow as JSON, or - for standard input")
      .required();
  add_common_options(*submitting, *file);
  submitting->footer(
      "The file is the body of POST /v1/flows/submit (docs/cli.md shows one).\n\n"
      "Examples:\n"
      "  flowfabric flow submit pipeline.json\n"
      "  generate-flow | flowfabric flow submit - --json");
  on_chosen(submitting, chosen, file, submit_flow);

  auto* showing = flow->add_subcommand("show", "Show a flow: its members, their upstreams, its joins.");
  auto shown = std::make_shared<FlowOptions>();
  showing->add_option("flow", shown->flow, "Id of the flow").required();
  add_common_options(*showing, *shown);
  showing->footer("Example:\n  flowfabric flow show 0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001");
  on_chosen(showing, chosen, shown, show_flow);

  auto* listing = flow->add_subcommand("list", "List flows, the newest first.");
  auto listed = std::make_shared<FlowListOptions>();
  listing->add_option("--namespace", listed->name_space, "Of this namespace");
  listing->add_option("--kind", listed->kind, "Of this kind");
  add_list(*listing, "--state", listed->states, "open, running, blocked, completed, failed or cancelled");
  add_list(*listing, "--tag", listed->tags, "With this tag, key=value; may be repeated");
  listing->add_option("--limit", listed->limit, "The largest number of results").positive().show_default();
  listing->add_flag("--all", listed->all, "No limit");
  add_common_options(*listing, *listed, "Print one JSON object per line and flow");
  listing->footer("Example:\n  flowfabric flow list --state running");
  on_chosen(listing, chosen, listed, list_flows);

  auto* cancelling = flow->add_subcommand("cancel", "Cancel a flow.");
  auto cancelled = std::make_shared<FlowCancelOptions>();
  cancelling->add_option("flow", cancelled->flow, "Id of the flow").required();
  cancelling->add_option("--reason", cancelled->reason, "Reason, stored with the flow").show_default();
  cancelling
      ->add_option("--policy", cancelled->policy,
                   "cancel_all, cancel_pending, cancel_unscheduled_only, flow_only or let_active_finish")
      .show_default();
  add_common_options(*cancelling, *cancelled);
  cancelling->footer("Example:\n  flowfabric flow cancel \"$flow\" --reason 'wrong input'");
  on_chosen(cancelling, chosen, cancelled, cancel_flow);
}

}  // namespace flowfabric::cli
