#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <new>

#include "http/file_stamp.h"

namespace flowfabric::http {

namespace {

TlsContext new_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), &SSL_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A repeated write may pass the rest at another address; idle connections keep no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  return context;
}

// Without this, OpenSSL would ask for a passphrase at the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

std::unexpected<Error> unusable(const std::string& file, const std::string& advice) {
  const auto reason = tls_trouble();
  return fail_with(ErrorCode::invalid_input, "tls", fmt::format("{}: {} ({}).", file, advice, reason));
}

constexpr const char* kSafeCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// The handshake tells a client that its certificate is not trusted.
Result<void> demand_client_certificates(SSL_CTX* context, const std::string& ca_file) {
  if (SSL_CTX_load_verify_file(context, ca_file.c_str()) != 1)
    return unusable(ca_file, "give a readable file of certificates that sign those of clients, in PEM");
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(ca_file.c_str()));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Without a session id context, a client that resumes its session would be refused.
  constexpr std::string_view kSessions = "flowfabric";
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 kSessions.size());
  return {};
}

Result<void> show_certificate(SSL_CTX* context, const std::string& certificate_file,
                              const std::string& key_file) {
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1)
    return unusable(certificate_file, "give a readable certificate chain in PEM");
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return unusable(key_file, "give the certificate's own key, readable, in PEM and without a passphrase");
  return {};
}

}  // namespace

std::string tls_trouble() {
  std::string reason;
  while (const auto code = ERR_get_error()) {
    const char* text = ERR_reason_error_string(code);
    // Codes of the operating system have no text in OpenSSL.
    reason = text != nullptr ? text : ERR_SYSTEM_ERROR(code) ? "the file cannot be read" : "unknown";
  }
  return reason;
}

Result<TlsContext> load_server_tls(const ServerTls& files) {
  if (files.certificate_file.empty() || files.key_file.empty()) {
    return fail_with(ErrorCode::invalid_input, "tls",
                     "TLS needs two files: give both the certificate and its key.");
  }
  ERR_clear_error();
  auto context = new_context(TLS_server_method());
  // Requests carry their length, so a client that closes without a TLS alert has cut off nothing.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  const auto& ciphers = files.ciphers;
  if (SSL_CTX_set_cipher_list(context.get(), ciphers.empty() ? kSafeCiphers : ciphers.c_str()) != 1)
    return unusable(ciphers, "give ciphers in OpenSSL's words, such as ECDHE+AESGCM");
  if (auto shown = show_certificate(context.get(), files.certificate_file, files.key_file); !shown)
    return std::unexpected(shown.error());
  if (files.client_ca_file.empty()) return context;
  if (auto demanded = demand_client_certificates(context.get(), files.client_ca_file); !demanded)
    return std::unexpected(demanded.error());
  return context;
}

Result<TlsContext> load_client_tls(const ClientTls& files) {
  ERR_clear_error();
  auto context = new_context(TLS_client_method());
  SSL_CTX_set_verify(context.get(), files.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (!files.certificate_file.empty()) {
    if (auto shown = show_certificate(context.get(), files.certificate_file, files.key_file); !shown)
      return std::unexpected(shown.error());
  }
  if (files.insecure) return context;
  if (files.ca_file.empty())
    SSL_CTX_set_default_verify_paths(context.get());
  else if (SSL_CTX_load_verify_file(context.get(), files.ca_file.c_str()) != 1)
    return unusable(files.ca_file, "give a readable file of trusted certificates in PEM");
  return context;
}

Result<std::unique_ptr<Certificate>> Certificate::open(ServerTls files) {
  std::unique_ptr<Certificate> certificate(new Certificate(std::move(files)));
  // The stamp is taken first, so that a file that changes during the read is read again.
  certificate->stamp_ = certificate->stamp();
  auto context = load_server_tls(certificate->files_);
  if (!context) return std::unexpected(std::move(context).error());
  certificate->context_ = *std::move(context);
  return certificate;
}

TlsContext Certificate::context() const {
  std::lock_guard lock(mutex_);
  return context_;
}

std::string Certificate::stamp() const {
  return file_stamp(files_.certificate_file) + " " + file_stamp(files_.key_file) + " " +
         file_stamp(files_.client_ca_file);
}

std::optional<std::string> Certificate::refresh() {
  auto stamp = this->stamp();
  if (stamp == stamp_) return std::nullopt;
  stamp_ = std::move(stamp);
  auto context = load_server_tls(files_);
  if (!context) {
    return "The certificate has changed and cannot be used; new connections get the one before. " +
           context.error().advice;
  }
  std::lock_guard lock(mutex_);
  context_ = *std::move(context);
  return "The changed certificate is in use for new connections.";
}

}  // namespace flowfabric::http
