#include "http/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "http/tls.h"

namespace flowfabric::http {

namespace {

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

// System calls without signals and interruptions.
ssize_t receive(int socket, char* to, std::size_t size) {
  for (;;) {
    const auto got = ::recv(socket, to, size, 0);
    if (got >= 0 || errno != EINTR) return got;
  }
}

ssize_t send(int socket, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  for (;;) {
    const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

iovec as_part(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};  // sendmsg does not write there
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int socket) : socket_(socket) {}

  Status handshake() override { return Status::ok; }

  Moved read(std::span<char> room) override {
    const auto got = receive(socket_, room.data(), room.size());
    if (got > 0) return {static_cast<std::size_t>(got)};
    if (got == 0) return {0, Status::ended};
    return {0, failure(Status::wait_readable)};
  }

  Moved write(std::string_view first, std::string_view second) override {
    std::array parts{as_part(first), as_part(second)};
    const auto sent = send(socket_, parts);
    if (sent >= 0) return {static_cast<std::size_t>(sent)};
    return {0, failure(Status::wait_writable)};
  }

  void finish() override { ::shutdown(socket_, SHUT_WR); }
  std::string trouble() const override { return std::system_category().message(error_); }

 private:
  Status failure(Status when_it_would_block) {
    error_ = errno;
    return would_block(error_) ? when_it_would_block : Status::failed;
  }

  int socket_;
  int error_{0};
};

// ---- OpenSSL reads and writes through this: its own sockets raise SIGPIPE ---------------------------------

struct Wire {
  int socket;
  bool has_ended{false};
};

Wire& wire_of(BIO* bio) {
  return *static_cast<Wire*>(BIO_get_data(bio));
}

int read_wire(BIO* bio, char* to, int size) {
  auto& wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const auto got = receive(wire.socket, to, static_cast<std::size_t>(size));
  if (got == 0) wire.has_ended = true;
  if (got < 0 && would_block(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

int write_wire(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  std::array parts{as_part({from, static_cast<std::size_t>(size)})};
  const auto sent = send(wire_of(bio).socket, parts);
  if (sent < 0 && would_block(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

long control_wire(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return wire_of(bio).has_ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* wire_method() {
  static const BIO_METHOD* const method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_read(made, read_wire);
    BIO_meth_set_write(made, write_wire);
    BIO_meth_set_ctrl(made, control_wire);
    return made;
  }();
  return method;
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(int socket, SSL_CTX& context) : wire_{socket}, ssl_(SSL_new(&context), &SSL_free) {
    BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(wire_method());
    if (bio == nullptr) throw std::bad_alloc();
    BIO_set_data(bio, &wire_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
  }

  void be_server() { SSL_set_accept_state(ssl_.get()); }
  void be_client_of(const std::string& peer_name) {
    SSL_set_connect_state(ssl_.get());
    if (peer_name.empty()) return;
    auto* parameters = SSL_get0_param(ssl_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, peer_name.c_str()) == 1) return;
    ERR_clear_error();
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(peer_name.c_str()));
    SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(ssl_.get(), peer_name.c_str());
  }

  Status handshake() override {
    ERR_clear_error();
    return status_after(SSL_do_handshake(ssl_.get()));
  }

  Moved read(std::span<char> room) override {
    Moved moved;
    while (moved.bytes < room.size() && moved.status == Status::ok) {
      const auto rest = room.subspan(moved.bytes);
      std::size_t count = 0;
      ERR_clear_error();
      moved.status = status_after(SSL_read_ex(ssl_.get(), rest.data(), rest.size(), &count));
      moved.bytes += count;
    }
    return moved;
  }

  Moved write(std::string_view first, std::string_view second) override {
    Moved moved;
    for (const auto part : {first, second}) {
      if (part.empty()) continue;
      std::size_t count = 0;
      ERR_clear_error();
      moved.status = status_after(SSL_write_ex(ssl_.get(), part.data(), part.size(), &count));
      moved.bytes += count;
      if (count < part.size()) break;
    }
    return moved;
  }

  void finish() override {
    if (!is_broken_ && SSL_is_init_finished(ssl_.get())) {
      ERR_clear_error();
      if (SSL_shutdown(ssl_.get()) < 0) ERR_clear_error();
    }
    ::shutdown(wire_.socket, SHUT_WR);
  }

  std::string trouble() const override { return trouble_; }

 private:
  Status status_after(int result) {
    if (result == 1) return Status::ok;
    const int system_error = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return Status::wait_readable;
      case SSL_ERROR_WANT_WRITE:
        return Status::wait_writable;
      case SSL_ERROR_ZERO_RETURN:
        return Status::ended;
      default:
        break;
    }
    is_broken_ = true;
    trouble_ = describe(system_error);
    return Status::failed;
  }

  std::string describe(int system_error) const {
    const auto verified = SSL_get_verify_result(ssl_.get());
    if (SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE && verified != X509_V_OK) {
      return std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verified);
    }
    if (auto reason = tls_trouble(); !reason.empty()) return reason;
    return system_error != 0 ? std::system_category().message(system_error) : "the connection was closed";
  }

  Wire wire_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool is_broken_{false};
  std::string trouble_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(int socket) {
  return std::make_unique<PlainTransport>(socket);
}

std::unique_ptr<Transport> tls_server_transport(int socket, ssl_ctx_st& context) {
  auto transport = std::make_unique<TlsTransport>(socket, context);
  transport->be_server();
  return transport;
}

std::unique_ptr<Transport> tls_client_transport(int socket, ssl_ctx_st& context,
                                                const std::string& peer_name) {
  auto transport = std::make_unique<TlsTransport>(socket, context);
  transport->be_client_of(peer_name);
  return transport;
}

bool discard_input(int socket, std::size_t limit) {
  std::array<char, 16u << 10> nowhere;
  for (std::size_t read = 0; read < limit;) {
    const auto got = receive(socket, nowhere.data(), nowhere.size());
    if (got <= 0) return got < 0 && would_block(errno);
    read += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace flowfabric::http
