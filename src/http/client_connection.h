// A client's connection: connects, moves bytes, and waits for the socket, up to a deadline.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "flowfabric/error.h"
#include "http/buffers.h"
#include "http/tls.h"
#include "http/transport.h"

namespace flowfabric::http {

// The parts of a URL.
struct Place {
  bool is_tls{false};
  std::string host{};  // without the brackets of IPv6
  std::string port{};
  std::string prefix{};  // of paths; does not end with a slash

  std::string authority() const;  // "host:port", as in the header `host`
};
Result<Place> parse_url(std::string_view url);

class ClientConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // No context: no TLS.
  static Result<std::unique_ptr<ClientConnection>> open(const Place& place, const TlsContext& tls,
                                                        bool checks_name, Deadline until);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // True if the server has neither closed the connection nor sent unsolicited bytes.
  bool is_idle_and_open();

  Outbox out;
  Inbox in;
  bool has_served{false};  // it has carried an answer
  // Writes and reads until something new is in `in`, or the server has ended (false).
  Result<bool> exchange(Deadline until);

 private:
  explicit ClientConnection(int socket) : socket_(socket) {}
  Result<void> shake_hands(Deadline until);
  Result<void> wait(short events, Deadline until) const;
  // False if it has to wait.
  bool write();
  Result<bool> read();

  const int socket_;
  std::unique_ptr<Transport> transport_;
  bool wants_writable_{false};  // TLS needs it, to continue reading
  bool may_have_more_{false};   // which does not make the socket readable
  bool has_ended_{false};
};

}  // namespace flowfabric::http
