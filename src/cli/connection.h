// Where commands send their requests: a server, or an engine in this process. Both speak the HTTP API, so
// that a command is written once and does the same in both cases.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "flowfabric/error.h"
#include "http/message.h"

namespace flowfabric::cli {

inline constexpr const char* kDefaultStore = "http://127.0.0.1:9090";

// What a command wants of a store that it opens itself. Whoever only looks runs no clock, so that nothing
// changes; and only who submits may make a store that is not there.
enum class Purpose { look, change, create };

struct ConnectionOptions {
  std::string store{kDefaultStore};
  std::string ca_file{};
  bool insecure{false};
  std::string certificate_file{};
  std::string key_file{};
};

// --store, --ca-file, --insecure, --client-certificate, --client-key
void add_connection_options(Command& command, ConnectionOptions& options);

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const ConnectionOptions& options, Purpose purpose);
  virtual ~Connection() = default;

  // Any status is an answer.
  virtual Result<http::Response> send(const http::Request& request) = 0;

  // Tells the body of an answer with status 2xx as it comes, until `piece` says false or it ends. The body of
  // any other is in the answer.
  using Piece = std::function<bool(std::string_view)>;
  virtual Result<http::Response> stream(const http::Request& request, const Piece& piece) = 0;
};

}  // namespace flowfabric::cli
