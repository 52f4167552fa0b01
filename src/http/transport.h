// Bytes over a connected socket that does not block: as they are, or through TLS. Nothing here waits; whoever
// uses a transport waits for the socket, and tries again.
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
    Status status{Status::ok};  // what came after these bytes
  };

  virtual ~Transport() = default;

  // To be repeated until it is ok, before anything else.
  virtual Status handshake() = 0;
  // Fills `room` as far as it can. Unless it is full, the socket has nothing more at the moment.
  virtual Moved read(std::span<char> room) = 0;
  virtual Moved write(std::string_view first, std::string_view second) = 0;
  // Tells the peer that nothing more will be written.
  virtual void finish() = 0;
  // What went wrong, in words; after `failed`.
  virtual std::string trouble() const = 0;
};

// The socket belongs to the caller and has to live longer. The peer's name is what its certificate has to be
// for; empty: it is not looked at.
std::unique_ptr<Transport> plain_transport(int socket);
std::unique_ptr<Transport> tls_server_transport(int socket, ssl_ctx_st& context);
std::unique_ptr<Transport> tls_client_transport(int socket, ssl_ctx_st& context,
                                                const std::string& peer_name);

// Reads and forgets what has come, at most so much. True: more may come.
bool discard_input(int socket, std::size_t limit);

}  // namespace flowfabric::http
