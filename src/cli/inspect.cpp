// `flowfabric get`, `list` and `why`: one execution, many executions, and the reasons why one waits.
#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/output.h"
#include "model/text.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr std::size_t kMostOfPayload = 2000;

// ---- get --------------------------------------------------------------------------------------------------

struct OneOptions : CommonOptions {
  std::string execution;
};

void line(std::string_view name, const std::string& value, Colour colour = Colour::none) {
  if (!value.empty()) fmt::print("  {:<10} {}\n", name, coloured(printable(value), colour));
}

void line(std::string_view name, const std::optional<std::int64_t>& at) {
  if (at) line(name, time_text(*at));
}

// Bytes that may be JSON (`<name>`) or not (`<name>_base64`).
std::string payload_text(JsonView object, const std::string& name) {
  if (const auto value = find(object, name)) return value->compact();
  const auto base64 = text_of(object, name + "_base64");
  return base64.empty() ? "" : "(base64) " + base64;
}

void show_payload(JsonView object, const std::string& name) {
  const auto text = payload_text(object, name);
  const auto shown = shortened(text, kMostOfPayload);
  line(name, shown + (shown == text ? "" : " (--json shows all of it)"));
}

std::string tags_text(JsonView object) {
  std::string text;
  for (const auto tag : items_of(object, "tags")) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", tag.key(), tag.text());
  }
  return text;
}

void show_times(JsonView execution) {
  line("created", number_of(execution, "created_at"));
  line("not before", number_of(execution, "delay_until"));
  line("deadline", number_of(execution, "deadline_at"));
  const auto started = number_of(execution, "started_at");
  const auto ended = number_of(execution, "completed_at");
  line("started", started);
  line("ended", ended);
  if (started && ended) line("took", duration_text(*ended - *started));
}

void show_state(JsonView execution) {
  const auto state = text_of(execution, "public_state");
  line("state", state, colour_of_state(state));
  if (const auto percent = number_of(execution, "progress_percent")) {
    line("progress", fmt::format("{} % {}", *percent, text_of(execution, "progress_message")));
  }
  line("blocked", text_of(execution, "blocking_detail"));
  line("failure", text_of(execution, "failure_reason"), Colour::red);
  auto cancelled = text_of(execution, "cancellation_reason");
  if (const auto who = text_of(execution, "cancelled_by"); !who.empty()) cancelled += " (by " + who + ")";
  line("cancelled", cancelled);
  if (const auto lease = find(execution, "lease")) {
    const auto expires = number_of(*lease, "expires_at").value_or(0);
    line("worker",
         fmt::format("{}, its lease until {}", text_of(*lease, "worker_instance_id"), time_text(expires)));
  }
}

void show_attempts(JsonView attempts) {
  Table table({{"ATTEMPT", Table::Align::right},
               {"TYPE"},
               {"STATE", Table::Align::left, true},
               {"WORKER"},
               {"STARTED"},
               {"TOOK"},
               {"FAILURE"}});
  for (const auto attempt : items_of(attempts, "attempts")) {
    const auto started = number_of(attempt, "started_at");
    const auto ended = number_of(attempt, "ended_at");
    table.add({text_of(attempt, "attempt_index"), text_of(attempt, "attempt_type"),
               text_of(attempt, "attempt_state"), text_of(attempt, "worker_instance_id"),
               started ? clock_text(*started) : "", started && ended ? duration_text(*ended - *started) : "",
               text_of(attempt, "failure_reason")});
  }
  if (!table.empty()) fmt::print("\n{}", table.take());
}

// The result is that of its last attempt, if it completed.
std::optional<JsonView> last_attempt(JsonView execution, JsonView attempts) {
  const auto all = items_of(attempts, "attempts");
  if (all.empty() || text_of(execution, "public_state") != "completed") return std::nullopt;
  return all.back();
}

void show(JsonView execution, JsonView input, JsonView attempts) {
  fmt::print("{}\n", coloured(text_of(execution, "execution_id"), Colour::bold));
  line("kind", text_of(execution, "execution_kind"));
  show_state(execution);
  line("lane", text_of(execution, "lane_id"));
  line("namespace", text_of(execution, "namespace"));
  if (text_of(execution, "priority") != "0") line("priority", text_of(execution, "priority"));
  line("flow", text_of(execution, "flow_id"));
  line("tags", tags_text(execution));
  show_times(execution);
  show_payload(input, "input");
  if (const auto last = last_attempt(execution, attempts)) show_payload(*last, "result");
  show_attempts(attempts);
}

// Everything in one object: the snapshot, the input, the result, and the attempts.
void print_json(JsonView execution, JsonView input, JsonView attempts) {
  api::JsonWriter out;
  out.object();
  for (const auto member : execution) out.key(member.key()).raw(member.compact());
  const auto copy = [&](JsonView from, std::string_view key) {
    if (const auto value = find(from, key)) out.key(key).raw(value->compact());
  };
  for (const auto* key : {"input", "input_base64"}) copy(input, key);
  if (const auto last = last_attempt(execution, attempts)) {
    for (const auto* key : {"result", "result_base64"}) copy(*last, key);
  }
  out.key("attempt_history").array();
  for (const auto attempt : items_of(attempts, "attempts")) out.raw(attempt.compact());
  fmt::print("{}\n", out.end().end().take());
}

int get(const OneOptions& options) {
  const auto path = execution_path(options.execution);
  Client client(options.connection, Purpose::look);
  const auto execution = client.get(path + "/snapshot");
  const auto input = client.get(path + "/input");
  const auto attempts = client.get(path + "/attempts");
  if (options.json)
    print_json(execution.root(), input.root(), attempts.root());
  else
    show(execution.root(), input.root(), attempts.root());
  return kDone;
}

// ---- why --------------------------------------------------------------------------------------------------

// The detail may contain the time already.
std::string until_text(const std::string& detail, std::int64_t until) {
  if (detail.find(time_to_text(until)) == std::string::npos) return ", until " + time_text(until);
  return " (in " + duration_text(std::max<std::int64_t>(until - now_ms(), 0)) + ")";
}

int why(const OneOptions& options) {
  const auto path = execution_path(options.execution, "/why");
  Client client(options.connection, Purpose::look);
  const auto reply = client.get(path);
  if (options.json) {
    fmt::print("{}\n", reply.body);
    return kDone;
  }
  const auto state = text_of(reply.root(), "public_state");
  fmt::print("{}", coloured(state, colour_of_state(state)));
  const auto reasons = items_of(reply.root(), "reasons");
  fmt::print("{}\n", reasons.empty() ? ": it waits for nothing" : "");
  for (const auto reason : reasons) {
    std::string rest = printable(text_of(reason, "detail"));
    if (const auto until = number_of(reason, "until")) rest += until_text(rest, *until);
    fmt::print("  {}: {}\n", text_of(reason, "code"), rest);
  }
  for (const auto worker : items_of(reply.root(), "nearest_workers")) {
    std::string missing;
    for (const auto capability : items_of(worker, "missing_capabilities")) {
      missing.append(missing.empty() ? "" : ", ").append(capability.text());
    }
    fmt::print("  nearest worker {}: lacks {}\n", printable(text_of(worker, "worker_instance_id")),
               printable(missing));
  }
  return kDone;
}

// ---- list -------------------------------------------------------------------------------------------------

struct ListOptions : CommonOptions {
  FilterOptions filter;
  std::uint64_t limit{50};
  bool all{false};
  bool oldest{false};
};

int list(const ListOptions& options) {
  auto query = options.filter.words();
  if (options.oldest) query.emplace_back("order", "oldest");
  Client client(options.connection, Purpose::look);
  Table table({{"EXECUTION"},
               {"KIND"},
               {"STATE", Table::Align::left, true},
               {"LANE"},
               {"NAMESPACE"},
               {"ATTEMPTS", Table::Align::right},
               {"AGE", Table::Align::right},
               {"TAGS"}});
  const auto show_page = [&](const std::vector<JsonView>& page) {
    for (const auto execution : page) {
      if (options.json) {
        fmt::print("{}\n", execution.compact());
        continue;
      }
      table.add({text_of(execution, "execution_id"), text_of(execution, "execution_kind"),
                 text_of(execution, "public_state"), text_of(execution, "lane_id"),
                 text_of(execution, "namespace"), text_of(execution, "attempts"),
                 age_text(number_of(execution, "created_at")), tags_text(execution)});
    }
    fmt::print("{}", table.take());
    std::fflush(stdout);
  };
  const bool has_more =
      client.list("/v1/executions", "executions", query, options.all ? 0 : options.limit, show_page);
  if (!options.json && table.empty()) fmt::print(stderr, "No executions.\n");
  if (has_more) fmt::print(stderr, "There are more: --limit N shows N of them, --all shows all.\n");
  return kDone;
}

}  // namespace

void add_inspect(Command& app, Action& chosen) {
  auto* getting = app.add_subcommand("get", "Show an execution: state, attempts, input, result.");
  auto one = std::make_shared<OneOptions>();
  getting->add_option("execution", one->execution, "Id of the execution, {fp:N}:<uuid>").required();
  add_common_options(*getting, *one);
  getting->footer(
      "Examples:\n"
      "  flowfabric get '{fp:86}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001'\n"
      "  flowfabric get \"$id\" --json | jq .public_state");
  on_chosen(getting, chosen, one, get);

  auto* asking = app.add_subcommand("why", "Say why an execution does not run.");
  auto asked = std::make_shared<OneOptions>();
  asking->add_option("execution", asked->execution, "Id of the execution, {fp:N}:<uuid>").required();
  add_common_options(*asking, *asked);
  asking->footer("Example:\n  flowfabric why '{fp:86}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001'");
  on_chosen(asking, chosen, asked, why);

  auto* listing = app.add_subcommand("list", "List executions, the newest first.");
  auto options = std::make_shared<ListOptions>();
  add_filter_options(*listing, options->filter);
  listing->add_option("--limit", options->limit, "The largest number of results").positive().show_default();
  listing->add_flag("--all", options->all, "No limit");
  listing->add_flag("--oldest", options->oldest, "The oldest first");
  add_common_options(*listing, *options, "Print one JSON object per line and execution");
  listing->footer(
      "Examples:\n"
      "  flowfabric list --state failed --created-after 1h\n"
      "  flowfabric list --lane mail --state waiting --oldest --limit 10\n"
      "  flowfabric list --tag team=a --all --json | jq -r .execution_id");
  on_chosen(listing, chosen, options, list);
}

}  // namespace flowfabric::cli
