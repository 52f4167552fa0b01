// `flowfabric submit`
#include <fmt/core.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/output.h"
#include "model/base64.h"

namespace flowfabric::cli {

namespace {

constexpr std::int64_t kWaitStepMs = 20'000;

struct SubmitOptions : CommonOptions {
  std::string kind;
  std::optional<std::string> input;
  std::optional<std::string> lane;
  std::optional<std::string> name_space;
  std::optional<std::int32_t> priority;
  std::vector<std::string> tags;
  std::optional<std::string> delay;
  std::optional<std::string> policy;
  std::optional<std::string> idempotency_key;
  std::optional<std::string> id;
  bool wait{false};
  std::optional<std::string> timeout;
};

std::string request_of(const SubmitOptions& options) {
  api::JsonWriter out;
  out.object()
      .field("execution_kind", options.kind)
      .field_if("lane_id", options.lane)
      .field_if("namespace", options.name_space)
      .field_if("priority", options.priority)
      .field_if("idempotency_key", options.idempotency_key)
      .field("tags", tags_argument(options.tags));
  if (options.id) out.field("execution_id", execution_argument(*options.id));
  if (options.delay) out.field("delay_until", now_ms() + duration_argument("--delay", *options.delay));
  if (options.input) out.key("input").raw(json_argument("--input", *options.input));
  if (options.policy) out.key("policy").raw(json_argument("--policy", *options.policy));
  return out.end().take();
}

// The one member of an answer such as {"Created":{…}}.
api::JsonView inside(api::JsonView variant) {
  if (variant.kind() == api::JsonView::Kind::object && variant.size() == 1) return *variant.begin();
  return variant;
}

// Prints the result of an ended execution to standard output; its outcome decides the exit code.
int show_end(const Reply& end, bool as_json) {
  const auto state = text_of(end.root(), "public_state");
  if (as_json) {
    fmt::print("{}\n", end.body);
  } else if (const auto result = find(end.root(), "result")) {
    fmt::print("{}\n", result->compact());
  } else if (const auto bytes = from_base64(text_of(end.root(), "result_base64"))) {
    std::fwrite(bytes->data(), 1, bytes->size(), stdout);
  }
  if (state == "completed") return kDone;
  const auto reason = text_of(end.root(), "failure_reason");
  fmt::print(stderr, "{}{}\n", state, reason.empty() ? "" : ": " + printable(reason));
  return kRefused;
}

int wait_for(Client& client, const std::string& id, const SubmitOptions& options) {
  const auto limit = options.timeout ? duration_argument("--timeout", *options.timeout) : INT64_MAX;
  const auto begun = now_ms();
  for (;;) {
    const auto left = limit - (now_ms() - begun);
    if (left < 0) {
      fail(kTimeIsUp, "timeout", id,
           fmt::format("It has not ended within {}; `flowfabric why` says what it waits for.",
                       *options.timeout));
    }
    const auto step = std::to_string(std::min(left, kWaitStepMs));
    const auto end = client.get(execution_path(id, "/wait"), {{"wait_ms", step}});
    if (end.status == 200) return show_end(end, options.json);
  }
}

int submit(const SubmitOptions& options) {
  if (options.timeout && !options.wait) fail_usage("--timeout", "It says how long --wait waits: give both.");
  const auto request = request_of(options);
  if (options.timeout) duration_argument("--timeout", *options.timeout);
  Client client(options.connection, Purpose::create);
  const auto reply = client.post("/v1/executions", request);
  const auto id = text_of(inside(reply.root()), "execution_id");
  const bool is_new = reply.status == 201;
  if (options.wait) {
    fmt::print(stderr, "{}{}\n", id, is_new ? "" : " (was submitted before)");
    return wait_for(client, id, options);
  }
  if (options.json) {
    api::JsonWriter out;
    fmt::print("{}\n", out.object().field("execution_id", id).field("created", is_new).end().take());
    return kDone;
  }
  fmt::print("{}\n", id);
  if (!is_new) fmt::print(stderr, "It was submitted before.\n");
  return kDone;
}

}  // namespace

void add_submit(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("submit", "Submit an execution, and print its id.");
  auto options = std::make_shared<SubmitOptions>();
  command->add_option("kind", options->kind, "Kind of the execution, which tells workers what to do")
      .required();
  command->add_option("--input", options->input, "Input: JSON, @FILE, or - for standard input");
  command->add_option("--lane", options->lane, "Lane; default: `default`");
  command->add_option("--namespace", options->name_space, "Namespace; default: `default`");
  command->add_option("--priority", options->priority, "Higher goes first; default: 0");
  add_list(*command, "--tag", options->tags, "Tag, key=value; may be repeated");
  command->add_option("--delay", options->delay, "Do not start before this time has passed: 30s, 5m, 2h, 7d");
  command->add_option("--policy", options->policy, "Retries, timeouts, …: JSON, @FILE, or -");
  command->add_option("--idempotency-key", options->idempotency_key,
                      "A repeated submit with the same key gets the same execution");
  command->add_option("--id", options->id, "Id, {fp:N}:<uuid>; default: a new one");
  command->add_flag("--wait", options->wait, "Wait until it has ended, and print its result");
  command->add_option("--timeout", options->timeout, "With --wait: the longest wait");
  add_common_options(*command, *options);
  command->footer(
      "With --wait the exit code is 0 if it completes, 1 if it ends otherwise, 5 if the time is up.\n\n"
      "Examples:\n"
      "  flowfabric submit resize --input '{\"file\":\"cat.png\"}'\n"
      "  flowfabric submit report --input @job.json --lane mail --tag team=a --delay 10m\n"
      "  flowfabric submit ask --policy '{\"retry_policy\":{\"max_retries\":5}}' --wait --timeout 2m\n"
      "  flowfabric submit resize --store sqlite:jobs.db --idempotency-key cat-1");
  on_chosen(command, chosen, options, submit);
}

}  // namespace flowfabric::cli
