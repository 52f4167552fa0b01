// TLS: what a server shows, and whom a client trusts. Versions before 1.2 are not spoken.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "flowfabric/error.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace flowfabric::http {

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// Both in PEM; the certificate with its chain.
Result<TlsContext> load_server_tls(const std::string& certificate_file, const std::string& key_file);
// No file: whom the system trusts. Insecure: anybody.
Result<TlsContext> load_client_tls(const std::string& ca_file, bool insecure);

// The last thing OpenSSL complained about on this thread; empty: nothing.
std::string tls_trouble();

// A server's certificate, which is read again when its files change.
class Certificate {
 public:
  static Result<std::unique_ptr<Certificate>> open(std::string certificate_file, std::string key_file);

  // For new connections.
  TlsContext context() const;
  // Looks at the files. What an operator should know: a new certificate is in use, or could not be read (the
  // one before stays).
  std::optional<std::string> refresh();

 private:
  Certificate(std::string certificate_file, std::string key_file);
  // Changes whenever a file does.
  std::string stamp() const;

  const std::string certificate_file_;
  const std::string key_file_;
  std::string stamp_;  // of what was read last
  mutable std::mutex mutex_;
  TlsContext context_;
};

}  // namespace flowfabric::http
