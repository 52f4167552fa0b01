// The client of the commands: requests of the HTTP API over a connection. Refusals are thrown as a Failure.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/failure.h"

namespace flowfabric::cli {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// The code of an answer that no FlowFabric server gives; for example, an unknown route.
inline constexpr const char* kUnexpectedAnswer = "unexpected_answer";

// An answer with a status of 2xx.
struct Reply {
  int status{};
  std::string body;
  api::Json document;

  api::JsonView root() const { return document.root(); }
};

struct SentEvent {
  std::string id;
  std::string name;
  std::string data;
};

// Parses server-sent events from pieces of any size.
class EventReader {
 public:
  // Returns false if `take` did.
  bool read(std::string_view piece, const std::function<bool(const SentEvent&)>& take);

 private:
  std::string line_;
  SentEvent event_;
};

class Client {
 public:
  Client(const ConnectionOptions& options, Purpose purpose);

  Reply get(const std::string& path, const Parameters& query = {});
  Reply post(const std::string& path, std::string json = "", const Parameters& query = {});
  // Follows server-sent events, until `take` returns false or there are no more. An event named `error` is
  // thrown.
  void follow(const std::string& path, const Parameters& query,
              const std::function<bool(const SentEvent&)>& take);
  // Every item of a listing, page by page: `{"<plural>":[…],"next_cursor"}`. At most `most` items, 0 for all.
  // True if there are more.
  bool list(const std::string& path, const std::string& plural, Parameters query, std::uint64_t most,
            const std::function<void(const std::vector<api::JsonView>& page)>& take);

 private:
  Reply ask(http::Request request);

  const std::string store_;
  std::unique_ptr<Connection> connection_;
};

// The options of all client commands.
struct CommonOptions {
  ConnectionOptions connection;
  bool json{false};
};
void add_common_options(Command& command, CommonOptions& options,
                        const std::string& json_help = "Print one JSON object");

// Runs a command, and reports a Failure that it throws.
int run(bool as_json, const std::function<int()>& command);

template <class Options>
void on_chosen(Command* command, Action& chosen, std::shared_ptr<Options> options,
               int (*action)(const Options&)) {
  // A command with subcommands runs only if none of them was given.
  command->callback([command, options, action, &chosen] {
    if (command->has_given_subcommand()) return;
    chosen = [options, action] { return run(options->json, [&] { return action(*options); }); };
  });
}

// Encodes one segment of a path.
std::string segment(std::string_view text);

// ---- reading answers --------------------------------------------------------------------------------------

std::optional<api::JsonView> find(api::JsonView object, std::string_view key);  // absent also for null
std::string text_of(api::JsonView object, std::string_view key);                // of a string or a number; ""
std::optional<std::int64_t> number_of(api::JsonView object, std::string_view key);
std::vector<api::JsonView> items_of(api::JsonView object, std::string_view key);

}  // namespace flowfabric::cli
