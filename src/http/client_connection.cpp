#include "http/client_connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace flowfabric::http {

namespace {

using Status = Transport::Status;

std::unexpected<Error> transport_error(std::string advice) {
  return fail_with(ErrorCode::transport, "http", std::move(advice));
}

std::unexpected<Error> unusable_url() {
  return fail_with(
      ErrorCode::invalid_input, "url",
      "Give the server's address as http://host:port or https://host:port, without a user name.");
}

std::string describe(const Place& place) {
  return (place.is_tls ? "https://" : "http://") + place.authority();
}

bool is_port(std::string_view text) {
  unsigned number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end && number >= 1 && number <= 65535;
}

bool is_printable(char c) {
  return c > ' ' && c < 0x7f;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> resolve(const Place& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int trouble = getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found);
  if (trouble == 0) return Addresses(found, &freeaddrinfo);
  return transport_error(
      fmt::format("The host {} is not known ({}): check the URL.", place.host, gai_strerror(trouble)));
}

// Returns 0 on timeout, and a negative number on failure, with errno.
int poll_until(int socket, short events, ClientConnection::Deadline until) {
  for (;;) {
    int milliseconds = -1;
    if (until != ClientConnection::Deadline::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      milliseconds = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000'000));
    }
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, milliseconds);
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

// Returns the error; 0 for none.
int connect_until(int socket, const addrinfo& address, ClientConnection::Deadline until) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  const int ready = poll_until(socket, POLLOUT, until);
  if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void set_option(int socket, int level, int name) {
  const int on = 1;
  ::setsockopt(socket, level, name, &on, sizeof on);
}

Result<int> connect(const Place& place, ClientConnection::Deadline until) {
  const auto addresses = resolve(place);
  if (!addresses) return std::unexpected(addresses.error());
  int error = EADDRNOTAVAIL;
  for (const auto* one = addresses->get(); one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol);
    if (socket < 0) {
      error = errno;
      continue;
    }
    error = connect_until(socket, *one, until);
    if (error == 0) {
      set_option(socket, IPPROTO_TCP, TCP_NODELAY);
      // A stream may be silent for long. With keep-alive, the system notices when the server's machine is
      // gone.
      set_option(socket, SOL_SOCKET, SO_KEEPALIVE);
      return socket;
    }
    ::close(socket);
  }
  return transport_error(fmt::format("Cannot connect to {} ({}): is the server running there?",
                                     describe(place), std::system_category().message(error)));
}

}  // namespace

std::string Place::authority() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Place> parse_url(std::string_view url) {
  Place place;
  if (!std::ranges::all_of(url, is_printable)) return unusable_url();
  const auto scheme_end = url.find("://");
  const auto scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) return unusable_url();
  place.is_tls = scheme == "https";
  auto rest = url.substr(scheme_end + 3);
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  auto prefix = rest.substr(authority.size());
  if (authority.contains('@') || prefix.find_first_of("?#") != std::string_view::npos) return unusable_url();
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  place.prefix = std::string(prefix);

  const bool is_bracketed = authority.starts_with('[');
  const auto host_end = is_bracketed ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) return unusable_url();
  place.host = std::string(authority.substr(is_bracketed ? 1 : 0, host_end - (is_bracketed ? 1 : 0)));
  const auto behind = authority.substr(host_end + (is_bracketed ? 1 : 0));
  place.port = behind.empty() ? (place.is_tls ? "443" : "80") : std::string(behind.substr(1));
  if (place.host.empty() || (!behind.empty() && behind.front() != ':') || !is_port(place.port))
    return unusable_url();
  return place;
}

Result<std::unique_ptr<ClientConnection>> ClientConnection::open(const Place& place, const TlsContext& tls,
                                                                 bool checks_name, Deadline until) {
  const auto socket = connect(place, until);
  if (!socket) return std::unexpected(socket.error());
  std::unique_ptr<ClientConnection> connection(new ClientConnection(*socket));
  connection->transport_ = tls == nullptr
                               ? plain_transport(*socket)
                               : tls_client_transport(*socket, *tls, checks_name ? place.host : "");
  if (const auto done = connection->shake_hands(until); !done) {
    return transport_error(fmt::format("Cannot speak TLS with {}: {}", describe(place), done.error().advice));
  }
  return connection;
}

ClientConnection::~ClientConnection() {
  if (transport_ != nullptr) transport_->finish();
  ::close(socket_);
}

Result<void> ClientConnection::shake_hands(Deadline until) {
  for (;;) {
    const auto status = transport_->handshake();
    if (status == Status::ok) return {};
    if (status == Status::wait_readable || status == Status::wait_writable) {
      const short event = status == Status::wait_readable ? POLLIN : POLLOUT;
      if (const auto waited = wait(event, until); !waited) return waited;
      continue;
    }
    return transport_error(
        transport_->trouble() +
        ". Give the file of its certificate authority, or check that the port speaks TLS.");
  }
}

Result<void> ClientConnection::wait(short events, Deadline until) const {
  const int ready = poll_until(socket_, events, until);
  if (ready > 0) return {};
  if (ready == 0)
    return transport_error("The server did not answer in time: it may be busy; try again, or wait longer.");
  return transport_error("Cannot wait for the server: " + std::system_category().message(errno) + ".");
}

bool ClientConnection::is_idle_and_open() {
  if (!in.empty()) return false;
  // TLS may have sent tickets, which is fine. A server that has closed, or has sent unsolicited bytes, is of
  // no use.
  const auto got = read();
  return got && *got && in.empty();
}

// A failed write is no error yet: the server may have answered before it had read everything.
bool ClientConnection::write() {
  while (!out.empty()) {
    const auto moved = transport_->write(out.first(), out.second());
    out.written(moved.bytes);
    if (moved.status == Status::wait_readable || moved.status == Status::wait_writable) return false;
    if (moved.status == Status::ok) continue;
    out.clear();
  }
  return true;
}

// False if the server has closed its side.
Result<bool> ClientConnection::read() {
  std::array<char, 32u << 10> room;
  const auto moved = transport_->read(room);
  in.add({room.data(), moved.bytes});
  wants_writable_ = moved.status == Status::wait_writable;
  may_have_more_ = moved.bytes == room.size() || moved.status == Status::failed;
  has_ended_ = moved.status == Status::ended;
  if (moved.status == Status::failed && moved.bytes == 0) {
    return transport_error(
        fmt::format("The connection to the server was lost ({}): try again.", transport_->trouble()));
  }
  return !has_ended_ || moved.bytes > 0;
}

Result<bool> ClientConnection::exchange(Deadline until) {
  const auto before = in.size();
  for (;;) {
    if (has_ended_) return false;
    const bool is_written = write();
    const int events = is_written && !wants_writable_ ? POLLIN : POLLIN | POLLOUT;
    if (!may_have_more_) {
      if (const auto waited = wait(static_cast<short>(events), until); !waited)
        return std::unexpected(waited.error());
    }
    if (auto got = read(); !got) return got;
    if (in.size() > before) return true;
  }
}

}  // namespace flowfabric::http
