// `flowfabric lanes`, `workers` and `budgets`.
#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/output.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr auto kRight = Table::Align::right;

// Prints a whole listing: a table whose rows `row` makes, or one object per line.
template <class Row>
int show_all(const CommonOptions& options, const std::string& plural, const Parameters& query, Table table,
             Row row) {
  Client client(options.connection, Purpose::look);
  client.list("/v1/" + plural, plural, query, 0, [&](const std::vector<JsonView>& page) {
    for (const auto item : page) {
      if (options.json)
        fmt::print("{}\n", item.compact());
      else
        table.add(row(item));
    }
  });
  if (!options.json && table.empty()) fmt::print(stderr, "No {}.\n", plural);
  fmt::print("{}", table.take());
  return kDone;
}

std::string joined(const std::vector<JsonView>& texts) {
  std::string all;
  for (const auto text : texts) all.append(all.empty() ? "" : ",").append(text.text());
  return all;
}

// ---- lanes ------------------------------------------------------------------------------------------------

struct LaneOptions : CommonOptions {
  std::string lane;
  std::string verb;
};

std::string count_of(JsonView lane, std::string_view state) {
  const auto counts = find(lane, "counts");
  const auto count = counts ? number_of(*counts, state) : std::nullopt;
  return count ? count_text(*count) : "0";
}

int list_lanes(const LaneOptions& options) {
  Table table({{"LANE"},
               {"STATE", Table::Align::left, true},
               {"WAITING", kRight},
               {"DELAYED", kRight},
               {"ACTIVE", kRight},
               {"SUSPENDED", kRight},
               {"COMPLETED", kRight},
               {"FAILED", kRight},
               {"OLDEST WAITING", kRight}});
  return show_all(options, "lanes", {}, std::move(table), [](JsonView lane) {
    std::vector<std::string> row{text_of(lane, "lane_id"), text_of(lane, "state")};
    for (const auto* state : {"waiting", "delayed", "active", "suspended", "completed", "failed"}) {
      row.push_back(count_of(lane, state));
    }
    row.push_back(age_text(number_of(lane, "oldest_waiting_at")));
    return row;
  });
}

int set_lane(const LaneOptions& options) {
  Client client(options.connection, Purpose::change);
  const auto reply = client.post("/v1/lanes/" + segment(options.lane) + "/" + options.verb);
  const auto state = text_of(reply.root(), "state");
  if (options.json)
    fmt::print("{}\n", reply.body);
  else
    fmt::print("{}  {}\n", printable(options.lane), coloured(state, colour_of_state(state)));
  return kDone;
}

void add_lanes(Command& app, Action& chosen) {
  auto* lanes = app.add_subcommand("lanes", "List lanes; pause, resume, drain or disable one.");
  auto options = std::make_shared<LaneOptions>();
  add_common_options(*lanes, *options, "Print one JSON object per line and lane");
  lanes->require_subcommand(0, 1);
  lanes->footer(
      "Examples:\n"
      "  flowfabric lanes\n"
      "  flowfabric lanes pause mail\n"
      "  flowfabric lanes resume mail");
  on_chosen(lanes, chosen, options, list_lanes);
  const std::vector<std::pair<std::string, std::string>> verbs{
      {"pause", "Accept work, and hand out none."},
      {"resume", "Accept work, and hand it out."},
      {"drain", "Refuse new work, and hand out the old."},
      {"disable", "Refuse new work, and hand out none."}};
  for (const auto& [verb, help] : verbs) {
    auto* command = lanes->add_subcommand(verb, help);
    auto given = std::make_shared<LaneOptions>();
    given->verb = verb;
    command->add_option("lane", given->lane, "Name of the lane").required();
    add_common_options(*command, *given);
    command->footer("Example:\n  flowfabric lanes " + verb + " mail");
    on_chosen(command, chosen, given, set_lane);
  }
}

// ---- workers ----------------------------------------------------------------------------------------------

struct WorkerOptions : CommonOptions {
  std::optional<std::string> name_space;
};

int list_workers(const WorkerOptions& options) {
  Parameters query;
  if (options.name_space) query.emplace_back("namespace", *options.name_space);
  Table table({{"WORKER"},
               {"INSTANCE"},
               {"NAMESPACE"},
               {"HEARTBEAT", kRight},
               {"RUNS", kRight},
               {"LANES"},
               {"CAPABILITIES"}});
  return show_all(options, "workers", query, std::move(table), [](JsonView worker) {
    return std::vector<std::string>{text_of(worker, "worker_id"),
                                    text_of(worker, "worker_instance_id"),
                                    text_of(worker, "namespace"),
                                    age_text(number_of(worker, "last_heartbeat_ms")),
                                    text_of(worker, "leases"),
                                    joined(items_of(worker, "lanes")),
                                    joined(items_of(worker, "capabilities"))};
  });
}

void add_workers(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("workers", "List the workers that have registered and are alive.");
  auto options = std::make_shared<WorkerOptions>();
  command->add_option("--namespace", options->name_space, "Of this namespace");
  add_common_options(*command, *options, "Print one JSON object per line and worker");
  command->footer("Example:\n  flowfabric workers --json | jq -r .worker_instance_id");
  on_chosen(command, chosen, options, list_workers);
}

// ---- budgets ----------------------------------------------------------------------------------------------

struct BudgetOptions : CommonOptions {
  std::string budget;
};

std::string limit_of(JsonView budget, const char* limits, std::string_view dimension) {
  const auto given = find(budget, limits);
  const auto text = given ? text_of(*given, dimension) : "";
  return text == "0" ? "" : text;
}

// `tokens 80/100`, for each dimension.
std::string usage_of(JsonView budget) {
  std::string text;
  for (const auto used : items_of(budget, "usage")) {
    const auto limit = limit_of(budget, "hard_limits", used.key());
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", used.key(), used.text(),
                        limit.empty() ? "" : "/" + limit);
  }
  return text;
}

int list_budgets(const BudgetOptions& options) {
  Table table({{"BUDGET"}, {"SCOPE"}, {"OF"}, {"BREACHES", kRight}, {"AT THE LIMIT"}, {"USED"}});
  return show_all(options, "budgets", {}, std::move(table), [](JsonView budget) {
    return std::vector<std::string>{text_of(budget, "budget_id"),     text_of(budget, "scope_type"),
                                    text_of(budget, "scope_id"),      text_of(budget, "breach_count"),
                                    text_of(budget, "on_hard_limit"), usage_of(budget)};
  });
}

int show_budget(const BudgetOptions& options) {
  const auto path = "/v1/budgets/" + segment(uuid_argument("budget", options.budget));
  Client client(options.connection, Purpose::look);
  const auto reply = client.get(path);
  if (options.json) {
    fmt::print("{}\n", reply.body);
    return kDone;
  }
  const auto budget = reply.root();
  fmt::print("{}\n", coloured(text_of(budget, "budget_id"), Colour::bold));
  for (const auto& [name, key] :
       std::vector<std::pair<const char*, const char*>>{{"scope", "scope_type"},
                                                        {"of", "scope_id"},
                                                        {"mode", "enforcement_mode"},
                                                        {"hard limit", "on_hard_limit"},
                                                        {"soft limit", "on_soft_limit"},
                                                        {"breaches", "breach_count"}}) {
    const auto value = text_of(budget, key);
    if (!value.empty()) fmt::print("  {:<10} {}\n", name, printable(value));
  }
  Table table({{"DIMENSION"},
               {"USED", kRight},
               {"SOFT LIMIT", kRight},
               {"HARD LIMIT", kRight},
               {"RESERVED", kRight}});
  for (const auto used : items_of(budget, "usage")) {
    const auto dimension = used.key();
    table.add({std::string(dimension), std::string(used.text()), limit_of(budget, "soft_limits", dimension),
               limit_of(budget, "hard_limits", dimension), limit_of(budget, "reserved", dimension)});
  }
  fmt::print("\n{}", table.take());
  return kDone;
}

void add_budgets(Command& app, Action& chosen) {
  auto* budgets = app.add_subcommand("budgets", "List budgets, or show one.");
  auto options = std::make_shared<BudgetOptions>();
  add_common_options(*budgets, *options, "Print one JSON object per line and budget");
  budgets->require_subcommand(0, 1);
  budgets->footer("Examples:\n  flowfabric budgets\n  flowfabric budgets show \"$budget\"");
  on_chosen(budgets, chosen, options, list_budgets);
  auto* show = budgets->add_subcommand("show", "Show a budget: the usage of each limit.");
  auto one = std::make_shared<BudgetOptions>();
  show->add_option("budget", one->budget, "Id of the budget").required();
  add_common_options(*show, *one);
  show->footer("Example:\n  flowfabric budgets show \"$budget\" --json");
  on_chosen(show, chosen, one, show_budget);
}

}  // namespace

void add_fleet(Command& app, Action& chosen) {
  add_lanes(app, chosen);
  add_workers(app, chosen);
  add_budgets(app, chosen);
}

}  // namespace flowfabric::cli
