// The edge: listens, speaks HTTP/1.1 (with or without TLS), enforces limits, and asks a Handler for answers.
//
// A connection costs neither a thread nor a timer: a few threads serve all, and one timer enforces all
// deadlines. Requests of one connection are answered one after the other, in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flowfabric/error.h"
#include "http/message.h"

namespace flowfabric::http {

// Connections beyond the limit, on which only vital requests are answered (Handler::Admission), so that
// health checks work while all others are busy.
inline constexpr std::size_t kConnectionsForVitalRequests = 32;
// The same, including connections that are being closed.
inline constexpr std::size_t kMostBeyondLimit = 2 * kConnectionsForVitalRequests;

struct ServerOptions {
  std::string address{"127.0.0.1"};
  std::uint16_t port{0};  // 0: any free port
  std::size_t threads{2};
  std::size_t max_request_line{16u << 10};
  std::size_t max_headers{32u << 10};
  std::size_t max_connections{10'000};
  // Per client address (IPv6: per /64). Addresses in `trusted_networks` have no limit of their own.
  std::size_t max_connections_per_address{1000};
  std::size_t max_requests_per_address{800};  // being read or answered at a time
  std::vector<std::string> trusted_networks{"127.0.0.0/8", "::1"};
  // Bytes of requests that are being read, of all connections together; one address that is not trusted
  // may hold a quarter of it. The first 4 KiB of a connection do not count.
  std::size_t max_body_memory{256u << 20};
  std::size_t max_pipelined{64};  // requests that wait on one connection while another is being answered
  // From the first byte of a request, or from the connection, to its last header.
  std::chrono::milliseconds header_timeout{10'000};
  // Without progress of the body; also for a client that does not read its answer.
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  // Both empty: no TLS. The files are read again when they change.
  std::string tls_certificate_file{};
  std::string tls_key_file{};
  std::string tls_client_ca_file{};  // empty: clients need no certificate
  std::string tls_ciphers{};         // of TLS 1.2, in OpenSSL's words; empty: safe ones (tls.h)
  std::function<void(const std::string&)> notice{};  // remarks for an operator; any thread
};

struct ServerStats {
  std::uint64_t connections{};  // open now
  std::uint64_t accepted{};     // ever
  std::uint64_t refused{};      // because there were too many
  std::uint64_t made_room{};    // closed while they waited for a request, because others came
  std::uint64_t in_flight{};    // requests that are being answered
  std::uint64_t held_bytes{};   // of requests that are being read
};

class Server {
 public:
  // Listens from now on. The handler must outlive the server.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler& handler);
  ~Server();  // stops, at once

  std::uint16_t port() const;
  ServerStats stats() const;

  // Accepts no more connections, closes idle ones, abandons waiting requests (Exchange::abandoned), and
  // answers the current ones with `connection: close`. Returns true if all ended within `grace`; the rest is
  // cut off.
  bool drain(std::chrono::milliseconds grace);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flowfabric::http
