// Watching: the output of an execution, and events as they happen.
#include <fmt/core.h>

#include "api/live.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "model/describe.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

// ---- tail -------------------------------------------------------------------------------------------------

struct TailOptions : CommonOptions {
  std::string execution;
  int attempt{-1};
  bool follow{true};
  bool without_best_effort{false};
};

// Output must not be able to control the terminal.
std::string safe_text(std::string_view text) {
  if (!is_terminal(1)) return std::string(text);
  std::string safe;
  for (const char c : text) safe += c == '\n' || c == '\t' ? std::string(1, c) : printable({&c, 1});
  return safe;
}

void print_frame(JsonView frame, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", frame.compact());
    return;
  }
  const auto fields = find(frame, "fields");
  if (!fields) return;
  const auto at = std::strtoll(text_of(*fields, "ts").c_str(), nullptr, 10);
  fmt::print("{} {:<12} {}\n", coloured(clock_text(at), Colour::dim),
             printable(text_of(*fields, "frame_type")), safe_text(text_of(*fields, "payload")));
}

void tell_closed(JsonView answer) {
  const auto reason = text_of(answer, "closed_reason");
  if (!reason.empty()) fmt::print(stderr, "closed: {}\n", reason);
}

std::string latest_attempt(Client& client, const std::string& execution) {
  const auto attempts = client.get(execution_path(execution, "/attempts"));
  const auto all = items_of(attempts.root(), "attempts");
  return all.empty() ? "0" : text_of(all.back(), "attempt_index");
}

void tail_what_is_there(Client& client, const std::string& path, const TailOptions& options,
                        const Parameters& query) {
  std::string after;
  for (;;) {
    auto page_query = query;
    page_query.emplace_back("limit", "1000");
    if (!after.empty()) page_query.emplace_back("after", after);
    const auto page = client.get(path + "/tail", page_query);
    const auto frames = items_of(page.root(), "frames");
    for (const auto frame : frames) print_frame(frame, options.json);
    if (frames.empty()) {
      std::fflush(stdout);
      return tell_closed(page.root());
    }
    after = text_of(frames.back(), "id");
  }
}

void tail_live(Client& client, const std::string& path, const TailOptions& options, const Parameters& query) {
  client.follow(path + "/live", query, [&](const SentEvent& event) {
    const auto data = api::Json::parse(event.data);
    if (!data) return true;
    if (event.name == "frame") print_frame(data->root(), options.json);
    std::fflush(stdout);
    if (event.name == "closed") tell_closed(data->root());
    return event.name != "closed";
  });
}

int tail(const TailOptions& options) {
  execution_argument(options.execution);
  Client client(options.connection, Purpose::look);
  // Needed even if the attempt is given, to report a missing execution as such.
  const auto latest = latest_attempt(client, options.execution);
  const auto attempt = options.attempt < 0 ? latest : std::to_string(options.attempt);
  const auto path = execution_path(options.execution, "/attempts/" + attempt + "/stream");
  Parameters query;
  if (options.without_best_effort) query.emplace_back("visibility", "exclude_best_effort");
  (options.follow ? tail_live : tail_what_is_there)(client, path, options, query);
  return kDone;
}

// ---- events -----------------------------------------------------------------------------------------------

struct EventOptions : CommonOptions {
  std::vector<std::string> kinds{"completion"};
  std::string cursor;
  bool follow{false};
  std::optional<std::string> name_space;
  std::optional<std::string> tag;
  std::optional<std::string> lane;
  std::optional<std::string> flow;
  std::optional<std::string> execution;
  std::vector<std::string> types;
};

// Accepts the names of the library's families, and the API's shorter ones.
std::string kind_argument(const std::string& given) {
  if (api::family_of(given)) return given;
  const auto family = enum_from_name<EventFamily>(given);
  if (!family) fail_input("--kind " + given, "Give one of the kinds that --help names.");
  return std::string(api::kind_of(*family));
}

Parameters query_of(const EventOptions& options) {
  Parameters query;
  for (const auto& kind : options.kinds) query.emplace_back("kind", kind_argument(kind));
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) query.emplace_back(name, *value);
  };
  add("namespace", options.name_space);
  add("tag", options.tag);
  add("lane", options.lane);
  add("flow", options.flow);
  add("execution", options.execution);
  for (const auto& type : options.types) query.emplace_back("name", type);
  if (!options.follow) query.emplace_back("follow", "false");
  if (!options.cursor.empty())
    query.emplace_back("after", options.cursor);
  else if (!options.follow)
    query.emplace_back("after", "0");
  return query;
}

void print_event(JsonView event, const std::string& cursor, bool as_json) {
  const auto details = items_of(event, "detail");
  const auto id = text_of(event, "execution_id");
  if (!as_json) {
    std::string rest;
    for (const auto detail : details) rest += fmt::format(" {}={}", detail.key(), detail.text());
    fmt::print("{} {:<12} {}{}\n", coloured(clock_text(number_of(event, "at").value_or(0)), Colour::dim),
               text_of(event, "name"), id, printable(rest));
    return;
  }
  const auto family = api::family_of(text_of(event, "kind"));
  api::JsonWriter out;
  out.object()
      .field("family", family ? enum_name(*family) : "")
      .field("type", text_of(event, "name"))
      .field("cursor", cursor)
      .field("at", number_of(event, "at"));
  if (!id.empty()) out.field("execution_id", id);
  for (const auto detail : details) out.key(detail.key()).raw(detail.compact());
  fmt::print("{}\n", out.end().take());
}

int events(const EventOptions& options) {
  const auto query = query_of(options);
  Client client(options.connection, Purpose::look);
  client.follow("/v1/events", query, [&](const SentEvent& event) {
    const auto data = api::Json::parse(event.data);
    if (!data) return true;
    if (event.name == "lagged") {
      fail(kRefused, "stream_disconnected", event.id,
           "Events after that cursor are gone: go on with --cursor " + text_of(data->root(), "cursor"));
    }
    if (event.name == "damaged") {
      fmt::print(stderr, "The event at {} cannot be read, and is left out.\n", event.id);
      return true;
    }
    print_event(data->root(), event.id, options.json);
    std::fflush(stdout);
    return true;
  });
  return kDone;
}

}  // namespace

void add_watch(Command& app, Action& chosen) {
  auto* tailing = app.add_subcommand("tail", "Show the output of an execution, live.");
  auto tail_options = std::make_shared<TailOptions>();
  tailing->add_option("execution", tail_options->execution, "Id of the execution, {fp:N}:<uuid>").required();
  tailing->add_option("--attempt", tail_options->attempt, "Attempt; default: the latest")
      .in_range(0, 1'000'000);
  tailing->add_flag("!--no-follow", tail_options->follow,
                    "Show the present output, and do not wait for more");
  tailing->add_flag("--durable-only", tail_options->without_best_effort, "Leave out best-effort frames");
  add_common_options(*tailing, *tail_options, "Print one JSON object per frame");
  tailing->footer(
      "It ends when the attempt does.\n\n"
      "Examples:\n"
      "  flowfabric tail '{fp:86}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001'\n"
      "  flowfabric tail \"$id\" --no-follow --json | jq -r .fields.payload");
  on_chosen(tailing, chosen, tail_options, tail);

  auto* listing = app.add_subcommand("events", "Show past events, or follow new ones.");
  auto options = std::make_shared<EventOptions>();
  add_list(*listing, "--kind", options->kinds,
           "lease_history, completion, signal_delivery, operator, instance_tags or worker_registry; "
           "may be repeated")
      .show_default();
  listing->add_flag("--follow", options->follow, "Begin at the newest event, and wait for more");
  listing->add_option("--cursor", options->cursor,
                      "Continue after this event; --json prints the cursor of each");
  add_list(*listing, "--type", options->types, "Only these types, for example success, failed, acquired");
  listing->add_option("--namespace", options->name_space, "Only of this namespace");
  listing->add_option("--lane", options->lane, "Only of this lane");
  listing->add_option("--tag", options->tag, "Only of executions with this tag, key=value");
  listing->add_option("--flow", options->flow, "Only of this flow");
  listing->add_option("--execution", options->execution, "Only of this execution");
  add_common_options(*listing, *options, "Print one JSON object per event");
  listing->footer(
      "Without --follow it shows the stored events, the oldest first, and exits.\n\n"
      "Examples:\n"
      "  flowfabric events --follow --kind completion\n"
      "  flowfabric events --kind lease_history --lane mail --json\n"
      "  flowfabric events --type failed --cursor completion:1200");
  on_chosen(listing, chosen, options, events);
}

}  // namespace flowfabric::cli
