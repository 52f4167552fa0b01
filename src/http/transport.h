// Bytes over a connected, non-blocking socket: plain, or through TLS. Nothing here waits; the caller waits
// for the socket and tries again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace flowfabric::http {

class Transport {
 public:
  enum class Status { ok, wait_readable, wait_writable, ended, failed };
  struct Moved {
    std::size_t bytes{0};
    Status status{Status::ok};  // after these bytes
  };

  virtual ~Transport() = default;

  // Call it until it returns ok, before anything else.
  virtual Status handshake() = 0;
  // Fills `room` as far as possible. If `room` is not full afterwards, the socket has no more bytes now.
  virtual Moved read(std::span<char> room) = 0;
  virtual Moved write(std::string_view first, std::string_view second) = 0;
  // Tells the peer that nothing more will be written.
  virtual void finish() = 0;
  // The error in words, after `failed`.
  virtual std::string trouble() const = 0;
};

// The caller owns the socket, which must live longer. The peer's certificate must be for `peer_name`; empty:
// any name.
std::unique_ptr<Transport> plain_transport(int socket);
std::unique_ptr<Transport> tls_server_transport(int socket, ssl_ctx_st& context);
std::unique_ptr<Transport> tls_client_transport(int socket, ssl_ctx_st& context,
                                                const std::string& peer_name);

// Reads and discards at most `limit` bytes. True if more may come.
bool discard_input(int socket, std::size_t limit);

}  // namespace flowfabric::http
