// `flowfabric signal`: delivers a signal to a suspended execution.
#include <fmt/core.h>

#include "cli/arguments.h"
#include "cli/output.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

struct SignalOptions : CommonOptions {
  std::string execution;
  std::string name;
  std::optional<std::string> waitpoint;
  std::optional<std::string> token;
  std::optional<std::string> payload;
  std::optional<std::string> idempotency_key;
};

// The execution's only open waitpoint.
std::string only_waitpoint(Client& client, const SignalOptions& options) {
  const auto reply = client.get(execution_path(options.execution, "/pending-waitpoints"));
  std::vector<std::string> ids;
  if (reply.root().kind() == JsonView::Kind::array) {
    for (const auto waitpoint : reply.root()) ids.push_back(text_of(waitpoint, "waitpoint_id"));
  }
  if (ids.size() == 1) return ids.front();
  if (ids.empty()) {
    fail(kNotFound, "unknown_waitpoint", options.execution,
         "It waits for no signal now; `flowfabric why` says what it waits for.");
  }
  std::string all;
  for (const auto& id : ids) all.append(all.empty() ? "" : ", ").append(id);
  fail_input("several waitpoints take signals", "Give one of them with --waitpoint: " + all);
}

std::string token_of(Client& client, const SignalOptions& options, const std::string& waitpoint) {
  if (options.token) return text_argument(*options.token);
  const auto path = "/waitpoints/" + segment(waitpoint) + "/token";
  return text_of(client.get(execution_path(options.execution, path)).root(), "token");
}

int send_signal(const SignalOptions& options) {
  execution_argument(options.execution);
  const auto payload = options.payload ? json_argument("--payload", *options.payload) : "";
  if (options.waitpoint) uuid_argument("waitpoint", *options.waitpoint);
  Client client(options.connection, Purpose::change);
  const auto waitpoint = options.waitpoint ? *options.waitpoint : only_waitpoint(client, options);
  api::JsonWriter out;
  out.object()
      .field("waitpoint_id", waitpoint)
      .field("waitpoint_token", token_of(client, options, waitpoint))
      .field("signal_name", options.name)
      .field_if("idempotency_key", options.idempotency_key);
  if (!payload.empty()) out.key("payload_json").raw(payload).field("payload_encoding", "json");
  const auto reply = client.post(execution_path(options.execution, "/signal"), out.end().take());
  if (options.json) {
    fmt::print("{}\n", reply.body);
    return kDone;
  }
  const auto accepted = find(reply.root(), "Accepted");
  fmt::print("{}\n", accepted ? "accepted: " + text_of(*accepted, "effect") : "it was delivered before");
  return kDone;
}

}  // namespace

void add_signal(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("signal", "Send a signal to a suspended execution.");
  auto options = std::make_shared<SignalOptions>();
  command->add_option("execution", options->execution, "Id of the execution, {fp:N}:<uuid>").required();
  command->add_option("--name", options->name, "Name of the signal").required();
  command->add_option("--waitpoint", options->waitpoint,
                      "Id of the waitpoint; not needed if only one accepts signals");
  command->add_option("--token", options->token,
                      "Token of the waitpoint, or @FILE; default: read from the server or store");
  command->add_option("--payload", options->payload, "Payload: JSON, @FILE, or - for standard input");
  command->add_option("--idempotency-key", options->idempotency_key,
                      "A repeated signal with the same key has no effect");
  add_common_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  flowfabric signal \"$id\" --name approved --payload '{\"by\":\"ann\"}'\n"
      "  flowfabric signal \"$id\" --name approved --waitpoint \"$waitpoint\" --token \"$token\"");
  on_chosen(command, chosen, options, send_signal);
}

}  // namespace flowfabric::cli
