// A client for one server, over one connection that is kept: for the command line and for benchmarks. It
// waits for each answer; one thread at a time may use it.
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
  std::string ca_file{};                      // whom to trust; empty: whom the system trusts
  bool insecure{false};                       // any certificate will do
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

  // Any status is an answer. A connection that the server has closed since the last one is opened again,
  // once.
  Result<Response> send(const Request& request);

  // Tells the body as it comes, until `piece` says false or the server ends it. The timeout is for the header
  // section only. Any status is an answer here, too; the body of one that is not 2xx is in it.
  Result<Response> stream(const Request& request, const std::function<bool(std::string_view)>& piece);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flowfabric::http
