// TLS: the certificate of a server, and the trust of a client. Version 1.2 or newer, and with 1.2 only
// ciphers with forward secrecy and authenticated encryption.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "flowfabric/error.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace flowfabric::http {

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// Files are in PEM.
struct ServerTls {
  std::string certificate_file;  // with its chain
  std::string key_file;
  std::string client_ca_file{};  // the authority of clients' certificates; empty: none needed
  std::string ciphers{};         // of TLS 1.2, in OpenSSL's words; empty: as above
};
Result<TlsContext> load_server_tls(const ServerTls& files);

struct ClientTls {
  std::string ca_file{};  // trusted authorities; empty: the system's
  bool insecure{false};   // trust any server
  // The client's certificate, if a server asks for one; empty: none.
  std::string certificate_file{};
  std::string key_file{};
};
Result<TlsContext> load_client_tls(const ClientTls& files);

// OpenSSL's last error on this thread; empty: none.
std::string tls_trouble();

// A server's certificate, which is read again when its files change.
class Certificate {
 public:
  static Result<std::unique_ptr<Certificate>> open(ServerTls files);

  // For new connections.
  TlsContext context() const;
  // Checks the files. Returns a remark for the operator if a new certificate is in use, or could not be read
  // (then the previous one stays).
  std::optional<std::string> refresh();

 private:
  explicit Certificate(ServerTls files) : files_(std::move(files)) {}
  // Changes whenever a file does.
  std::string stamp() const;

  const ServerTls files_;
  std::string stamp_;  // of the files that were read last
  mutable std::mutex mutex_;
  TlsContext context_;
};

}  // namespace flowfabric::http
