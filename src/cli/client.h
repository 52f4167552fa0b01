// What commands call: requests of the HTTP API over a connection. What is refused is thrown as a Failure.
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

// The code of what no FlowFabric server would say; for example, that it does not know a route.
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

// Takes server-sent events out of what comes in pieces of any size.
class EventReader {
 public:
  // False: `take` has said so.
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
  // Server-sent events, until `take` says false or there are no more. One named `error` is thrown.
  void follow(const std::string& path, const Parameters& query,
              const std::function<bool(const SentEvent&)>& take);
  // Every item of a listing, page by page: `{"<plural>":[…],"next_cursor"}`. At most so many, 0 for all.
  // True: there are more.
  bool list(const std::string& path, const std::string& plural, Parameters query, std::uint64_t most,
            const std::function<void(const std::vector<api::JsonView>& page)>& take);

 private:
  Reply ask(http::Request request);

  const std::string store_;
  std::unique_ptr<Connection> connection_;
};

// The options that all of them have.
struct CommonOptions {
  ConnectionOptions connection;
  bool json{false};
};
void add_common_options(Command& command, CommonOptions& options,
                        const std::string& json_help = "Print one JSON object");

// Runs a command, and tells what it throws.
int run(bool as_json, const std::function<int()>& command);

template <class Options>
void on_chosen(Command* command, Action& chosen, std::shared_ptr<Options> options,
               int (*action)(const Options&)) {
  // Of a command with subcommands only if none of them was given.
  command->callback([command, options, action, &chosen] {
    if (command->has_given_subcommand()) return;
    chosen = [options, action] { return run(options->json, [&] { return action(*options); }); };
  });
}

// A part of a path.
std::string segment(std::string_view text);

// ---- reading answers --------------------------------------------------------------------------------------

std::optional<api::JsonView> find(api::JsonView object, std::string_view key);  // absent: or null
std::string text_of(api::JsonView object, std::string_view key);                // of a string or a number; ""
std::optional<std::int64_t> number_of(api::JsonView object, std::string_view key);
std::vector<api::JsonView> items_of(api::JsonView object, std::string_view key);

}  // namespace flowfabric::cli
