// A client for one server, over one persistent connection: for the command line, traces and benchmarks. Each
// call waits for its answer; one thread at a time may use a client.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "flowfabric/error.h"
#include "http/message.h"

namespace flowfabric::http {

struct ClientOptions {
  std::chrono::milliseconds timeout{30'000};  // for connecting, and then for a whole answer
  std::string ca_file{};                      // trusted authorities; empty: the system's
  bool insecure{false};                       // accept any certificate
  std::string certificate_file{};             // shown to a server that asks for one; empty: none
  std::string key_file{};
  std::string token{};               // sent as `authorization: Bearer …`; empty: none
  std::size_t max_body{256u << 20};  // of an answer
};

class Client {
 public:
  // "http://host:port/prefix" or "https://…"; paths of requests are put behind the prefix.
  static Result<std::unique_ptr<Client>> connect(const std::string& url, ClientOptions options = {});
  ~Client();

  // Any status is an answer. A connection that the server has closed since the last request is opened again,
  // once.
  Result<Response> send(const Request& request);

  // Passes the body piece by piece, until `piece` returns false or the server ends it. The timeout applies to
  // the header section only. Any status is an answer here, too; an answer that is not 2xx contains its body.
  Result<Response> stream(const Request& request, const std::function<bool(std::string_view)>& piece);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flowfabric::http
