// TLS: what a server shows, and whom a client trusts. Versions before 1.2 are not spoken, and of 1.2 only
// ciphers with forward secrecy that authenticate what they encrypt.
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
  std::string client_ca_file{};  // who signs clients' certificates; empty: they need none
  std::string ciphers{};         // of TLS 1.2, in OpenSSL's words; empty: as above
};
Result<TlsContext> load_server_tls(const ServerTls& files);

struct ClientTls {
  std::string ca_file{};  // whom to trust; empty: whom the system trusts
  bool insecure{false};   // anybody
  // What the client shows, if a server asks for it; empty: nothing.
  std::string certificate_file{};
  std::string key_file{};
};
Result<TlsContext> load_client_tls(const ClientTls& files);

// The last thing OpenSSL complained about on this thread; empty: nothing.
std::string tls_trouble();

// A server's certificate, which is read again when its files change.
class Certificate {
 public:
  static Result<std::unique_ptr<Certificate>> open(ServerTls files);

  // For new connections.
  TlsContext context() const;
  // Looks at the files. What an operator should know: a new certificate is in use, or could not be read (the
  // one before stays).
  std::optional<std::string> refresh();

 private:
  explicit Certificate(ServerTls files) : files_(std::move(files)) {}
  // Changes whenever a file does.
  std::string stamp() const;

  const ServerTls files_;
  std::string stamp_;  // of what was read last
  mutable std::mutex mutex_;
  TlsContext context_;
};

}  // namespace flowfabric::http
