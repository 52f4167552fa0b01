// Watching: the output of an execution, and events as they happen.
#include <fmt/core.h>

#include <boost/json.hpp>
#include <ctime>

#include "cli/commands.h"
#include "cli/open_engine.h"
#include "model/base64.h"
#include "model/describe.h"

namespace flowfabric::cli {

namespace {

constexpr std::int64_t kBlockMs = 20'000;

namespace json = boost::json;

std::string clock_time(std::int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", utc.tm_hour, utc.tm_min, utc.tm_sec, ms % 1000);
}

json::object to_object(const std::map<std::string, std::string>& fields) {
  json::object object;
  for (const auto& [name, value] : fields) object[name] = value;
  return object;
}

// An engine that only looks: another process may be the one that works.
Result<Engine> open_to_watch(const std::string& url) {
  EngineOptions options;
  options.clock_interval = std::chrono::milliseconds(0);
  return open_engine(url, std::move(options));
}

// ---- tail ----

struct TailOptions {
  std::string store;
  std::string execution;
  int attempt{-1};
  bool follow{true};
  bool json{false};
  bool without_best_effort{false};
};

void print(const FrameView& frame, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"id", frame.id}, {"fields", to_object(frame.fields)}}));
    return;
  }
  const auto& text = frame.fields.at("payload");
  fmt::print("{} {:<12} {}\n", clock_time(std::stoll(frame.fields.at("ts"))), frame.fields.at("frame_type"),
             text);
}

Result<std::uint32_t> latest_attempt(Engine& engine, const ExecutionId& id) {
  const auto attempts = engine.call(ListAttempts{id});
  if (!attempts) return std::unexpected(attempts.error());
  return attempts->empty() ? 0 : attempts->back().attempt_index;
}

Result<void> tail(const TailOptions& options) {
  const auto id = ExecutionId::parse(options.execution);
  if (!id) {
    return fail_with(ErrorCode::invalid_input, options.execution,
                     "Give the id of an execution: {fp:N}:<uuid>, in quotes.");
  }
  auto engine = open_to_watch(options.store);
  if (!engine) return std::unexpected(engine.error());
  TailStream request{.execution_id = *id};
  if (options.without_best_effort) request.visibility = FrameVisibility::exclude_best_effort;
  const auto latest = latest_attempt(*engine, *id);
  if (!latest) return std::unexpected(latest.error());
  request.attempt_index = options.attempt < 0 ? *latest : static_cast<std::uint32_t>(options.attempt);
  request.block_ms = options.follow ? kBlockMs : 0;
  request.count = 1000;
  for (;;) {
    const auto page = engine->call(request);
    if (!page) return std::unexpected(page.error());
    for (const auto& frame : page->frames) print(frame, options.json);
    std::fflush(stdout);
    if (!page->frames.empty()) {
      request.after = page->frames.back().id;
      continue;
    }
    if (page->closed_reason) {
      fmt::print(stderr, "closed: {}\n", *page->closed_reason);
      return {};
    }
    if (!options.follow) return {};
  }
}

// ---- events ----

struct EventOptions {
  std::string store;
  std::string kind{"completion"};
  std::string cursor;
  bool follow{false};
  bool json{false};
  std::string name_space;
  std::string tag;
  std::string lane;
  std::string flow;
  std::string execution;
  std::vector<std::string> types;
};

Result<FollowEvents> request_of(const EventOptions& options) {
  const auto refuse = [](const std::string& what, const std::string& advice) {
    return fail_with(ErrorCode::invalid_input, what, advice);
  };
  const auto family = enum_from_name<EventFamily>(options.kind);
  if (!family) return refuse("--kind " + options.kind, "Give one of the kinds that --help names.");
  FollowEvents request{.family = *family, .cursor = options.follow ? "" : first_cursor()};
  if (!options.cursor.empty()) {
    const auto bytes = from_base64(options.cursor);
    if (!bytes) return refuse("--cursor", "Give a cursor as it was printed.");
    request.cursor = *bytes;
  }
  auto& filter = request.filter;
  if (!options.name_space.empty()) filter.namespace_ = options.name_space;
  if (!options.lane.empty()) filter.lane_id = options.lane;
  filter.types = options.types;
  if (!options.tag.empty()) {
    const auto equals = options.tag.find('=');
    if (equals == std::string::npos) return refuse("--tag " + options.tag, "Give the tag as key=value.");
    filter.tag = {options.tag.substr(0, equals), options.tag.substr(equals + 1)};
  }
  if (!options.flow.empty()) {
    filter.flow_id = FlowId::parse(options.flow);
    if (!filter.flow_id) return refuse("--flow " + options.flow, "Give the id of a flow (a UUID).");
  }
  if (!options.execution.empty()) {
    filter.execution_id = ExecutionId::parse(options.execution);
    if (!filter.execution_id)
      return refuse("--execution " + options.execution, "Give {fp:N}:<uuid>, in quotes.");
  }
  request.wait_ms = options.follow ? kBlockMs : 0;
  request.limit = 1000;
  return request;
}

void print(const EventView& event, bool as_json) {
  if (as_json) {
    json::object object{{"family", enum_name(event.family)},
                        {"type", event.type},
                        {"cursor", to_base64(event.cursor)},
                        {"at", event.at}};
    if (event.execution_id) object["execution_id"] = event.execution_id->to_string();
    for (const auto& [name, value] : event.fields) object[name] = value;
    fmt::print("{}\n", json::serialize(object));
    return;
  }
  std::string rest;
  for (const auto& [name, value] : event.fields) rest += " " + name + "=" + value;
  fmt::print("{} {:<12} {}{}\n", clock_time(event.at), event.type,
             event.execution_id ? event.execution_id->to_string() : "", rest);
}

Result<void> events(const EventOptions& options) {
  auto request = request_of(options);
  if (!request) return std::unexpected(request.error());
  auto engine = open_to_watch(options.store);
  if (!engine) return std::unexpected(engine.error());
  for (;;) {
    const auto batch = engine->call(*request);
    if (!batch) return std::unexpected(batch.error());
    for (const auto& event : batch->events) print(event, options.json);
    std::fflush(stdout);
    // Where nothing was wanted, there may be more behind it.
    const bool is_over = batch->events.empty() && batch->cursor == request->cursor;
    request->cursor = batch->cursor;
    if (is_over && !options.follow) return {};
  }
}

template <class Options, class Run>
void on_chosen(CLI::App* command, std::shared_ptr<Options> options, Run run, Action& chosen) {
  command->callback([options, run, &chosen] {
    chosen = [options, run] {
      const auto done = run(*options);
      return done ? 0 : report(done.error());
    };
  });
}

}  // namespace

void add_watch(CLI::App& app, Action& chosen) {
  auto* tailing = app.add_subcommand("tail", "Show what an execution says while it runs.");
  auto tail_options = std::make_shared<TailOptions>();
  tailing->add_option("execution", tail_options->execution, "Id of the execution, {fp:N}:<uuid>")->required();
  tailing->add_option("--store", tail_options->store, "Store URL, for example postgres://…")->required();
  tailing->add_option("--attempt", tail_options->attempt, "Which attempt; without it, the latest")
      ->check(CLI::Range(0, 1'000'000));
  tailing->add_flag("!--no-follow", tail_options->follow, "Show what there is, and do not wait for more");
  tailing->add_flag("--durable-only", tail_options->without_best_effort, "Leave out best-effort frames");
  tailing->add_flag("--json", tail_options->json, "Print one JSON object per frame");
  tailing->footer(
      "It ends when the attempt does. An embedded database serves one process at a time: while a server has "
      "it\n"
      "open, watch through the server.");
  on_chosen(tailing, tail_options, tail, chosen);

  auto* listing = app.add_subcommand("events", "Show what has happened, or happens.");
  auto options = std::make_shared<EventOptions>();
  listing->add_option("--store", options->store, "Store URL")->required();
  listing
      ->add_option("--kind", options->kind,
                   "lease_history, completion, signal_delivery, operator, instance_tags or worker_registry")
      ->capture_default_str();
  listing->add_flag("--follow", options->follow, "Begin now, and wait for more");
  listing->add_option("--cursor", options->cursor, "Go on after this event; --json prints each one's cursor");
  listing->add_option("--type", options->types, "Only these types, for example success, failed, acquired");
  listing->add_option("--namespace", options->name_space, "Only of this namespace");
  listing->add_option("--lane", options->lane, "Only of this lane");
  listing->add_option("--tag", options->tag, "Only of executions with this tag, key=value");
  listing->add_option("--flow", options->flow, "Only of this flow");
  listing->add_option("--execution", options->execution, "Only of this execution");
  listing->add_flag("--json", options->json, "Print one JSON object per event");
  on_chosen(listing, options, events, chosen);
}

}  // namespace flowfabric::cli
