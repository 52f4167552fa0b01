// The target of a command's requests: a server, or an engine in this process. Both speak the HTTP API, so a
// command is written once and does the same in both cases.
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

// The purpose for which a command opens a store itself. A command that only reads runs no clock, so that
// nothing changes; only a submit may create a store.
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

  // Passes the body of a 2xx answer piece by piece, until `piece` returns false or the body ends. Any other
  // answer contains its body.
  using Piece = std::function<bool(std::string_view)>;
  virtual Result<http::Response> stream(const http::Request& request, const Piece& piece) = 0;
};

}  // namespace flowfabric::cli
