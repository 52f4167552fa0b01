// `flowfabric cancel` and `replay`: some executions by their ids, or all that a filter matches.
#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "cli/arguments.h"
#include "cli/output.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(20);
constexpr auto kLongestPause = std::chrono::milliseconds(500);
constexpr std::size_t kWorthAProgress = 20;

struct ChangeOptions : CommonOptions {
  std::string action;
  std::vector<std::string> executions;
  FilterOptions filter;
  std::optional<std::string> reason;
  std::optional<std::uint32_t> rate;
};

// ---- by their ids -----------------------------------------------------------------------------------------

std::string body_of(const ChangeOptions& options) {
  if (options.action != "cancel") return "";
  api::JsonWriter out;
  return out.object().field("reason", options.reason.value_or("cancelled by an operator")).end().take();
}

// `{"Cancelled":{…,"public_state":…}}`
std::string new_state(JsonView variant) {
  return variant.kind() == JsonView::Kind::object && variant.size() == 1
             ? text_of(*variant.begin(), "public_state")
             : "";
}

void print_change(const std::string& id, const std::string& state, bool as_json) {
  if (!as_json) {
    fmt::print("{}  {}\n", id, coloured(state, colour_of_state(state)));
    return;
  }
  api::JsonWriter out;
  fmt::print("{}\n", out.object().field("execution_id", id).field("public_state", state).end().take());
}

int print_failure(const std::string& id, const Failure& failure, bool as_json) {
  if (as_json) {
    api::JsonWriter out;
    out.object().field("execution_id", id).key("error").raw(failure.to_json()).end();
    fmt::print("{}\n", out.take());
  }
  std::fflush(stdout);
  fmt::print(stderr, "flowfabric: {}: {}\n", id, failure.to_string());
  return failure.exit_code;
}

// Changes each execution by itself: a refusal does not affect the others. The first refusal gives the exit
// code.
int change_each(Client& client, const ChangeOptions& options) {
  int exit_code = kDone;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::optional<Progress> progress;
  if (options.executions.size() > kWorthAProgress && !is_terminal(1)) {
    progress.emplace(options.action, options.executions.size());
  }
  for (const auto& id : options.executions) {
    try {
      const auto reply = client.post(execution_path(id, "/" + options.action), body_of(options));
      print_change(id, new_state(reply.root()), options.json);
      ++done;
    } catch (const Failure& failure) {
      if (failure.exit_code == kUnreachable) throw;
      const auto code = print_failure(id, failure, options.json);
      if (exit_code == kDone) exit_code = code;
      ++failed;
    }
    if (progress) progress->show(done, failed);
  }
  return exit_code;
}

// ---- by a filter ------------------------------------------------------------------------------------------

// A word that is given once is a string; several become a list.
std::string filter_json(const Parameters& words) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const auto& [name, value] : words) by_name[name].push_back(value);
  api::JsonWriter out;
  return out.value(by_name).take();
}

// The expected number of executions, if the counts of lanes can tell.
std::optional<std::uint64_t> expected(Client& client, const ChangeOptions& options) {
  const auto words = options.filter.words();
  const bool is_counted = std::all_of(words.begin(), words.end(), [](const auto& word) {
    return word.first == "lane" || word.first == "state";
  });
  if (!is_counted) return std::nullopt;
  const std::vector<std::string_view> ended{"completed", "failed", "cancelled", "expired", "skipped"};
  const auto counts = [&](std::string_view state) {
    const bool has_ended = std::find(ended.begin(), ended.end(), state) != ended.end();
    if (has_ended != (options.action == "replay")) return false;
    const auto& states = options.filter.states;
    return states.empty() || std::find(states.begin(), states.end(), state) != states.end();
  };
  std::uint64_t total = 0;
  client.list("/v1/lanes", "lanes", {}, 0, [&](const std::vector<JsonView>& lanes) {
    for (const auto lane : lanes) {
      if (options.filter.lane && text_of(lane, "lane_id") != *options.filter.lane) continue;
      for (const auto count : items_of(lane, "counts")) {
        if (counts(count.key())) total += count.to_uint64().value_or(0);
      }
    }
  });
  return total;
}

Reply run_operation(Client& client, const std::string& id, Progress& progress) {
  auto pause = kFirstPause;
  for (;;) {
    auto operation = client.get("/v1/operations/" + segment(id));
    const auto done = number_of(operation.root(), "done").value_or(0);
    const auto failed = number_of(operation.root(), "failed").value_or(0);
    progress.show(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(failed));
    if (text_of(operation.root(), "state") != "running") return operation;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

int change_matching(Client& client, const ChangeOptions& options) {
  api::JsonWriter request;
  request.object()
      .field("action", options.action)
      .field_if("reason", options.reason)
      .field_if("rate_per_second", options.rate)
      .key("filter")
      .raw(filter_json(options.filter.words()));
  const auto total = is_terminal(2) ? expected(client, options) : std::nullopt;
  const auto started = client.post("/v1/operations", request.end().take());
  const auto id = text_of(started.root(), "operation_id");
  const auto operation = [&] {
    Progress progress(options.action, total);
    return run_operation(client, id, progress);
  }();
  const auto root = operation.root();
  const auto failed = number_of(root, "failed").value_or(0);
  if (options.json) {
    fmt::print("{}\n", operation.body);
  } else {
    fmt::print("{}: {} done, {} failed\n", options.action, count_text(number_of(root, "done").value_or(0)),
               count_text(failed));
    if (failed > 0) fmt::print(stderr, "The last that failed: {}\n", printable(text_of(root, "last_error")));
  }
  return failed == 0 ? kDone : kRefused;
}

int change(const ChangeOptions& options) {
  const bool has_ids = !options.executions.empty();
  if (has_ids == !options.filter.empty()) {
    fail_usage(has_ids ? "ids and a filter" : "nothing to " + options.action,
               "Give ids of executions, or a filter such as --lane mail --state waiting, and not both.");
  }
  if (has_ids && options.rate) fail_usage("--rate", "It is for a filter: leave it out.");
  Client client(options.connection, Purpose::change);
  return has_ids ? change_each(client, options) : change_matching(client, options);
}

Command* add_change(Command& app, Action& chosen, const std::string& action, const std::string& help) {
  auto* command = app.add_subcommand(action, help);
  auto options = std::make_shared<ChangeOptions>();
  options->action = action;
  command->add_option("execution", options->executions, "Ids of executions, {fp:N}:<uuid>");
  if (action == "cancel")
    command->add_option("--reason", options->reason, "Reason, stored with the executions");
  command->add_option("--rate", options->rate, "With a filter: the largest number per second")
      .in_range(1, 100'000);
  add_filter_options(*command, options->filter);
  add_common_options(*command, *options, "Print JSON: an object per id and line, or one for a filter");
  on_chosen(command, chosen, options, change);
  return command;
}

}  // namespace

void add_change(Command& app, Action& chosen) {
  auto* cancel = add_change(app, chosen, "cancel", "Cancel executions: by id, or all that a filter matches.");
  cancel->footer(
      "A filter matches only executions that have not ended.\n\n"
      "Examples:\n"
      "  flowfabric cancel \"$id\" --reason 'not needed any more'\n"
      "  flowfabric cancel --lane mail --state waiting --created-before 7d\n"
      "  flowfabric cancel --tag team=a --rate 100");
  auto* replay = add_change(app, chosen, "replay", "Run executions that have ended once more.");
  replay->footer(
      "A filter matches only ended executions.\n\n"
      "Examples:\n"
      "  flowfabric replay \"$id\"\n"
      "  flowfabric replay --state failed --created-after 2026-11-16T00:00:00Z");
}

}  // namespace flowfabric::cli
