#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <new>

namespace flowfabric::http {

namespace {

TlsContext new_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), &SSL_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Writes are repeated with what is left, from wherever it is then; idle connections keep no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  return context;
}

// OpenSSL would ask for a passphrase at the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

std::unexpected<Error> unusable(const std::string& file, const std::string& advice) {
  const auto reason = tls_trouble();
  return fail_with(ErrorCode::invalid_input, "tls", fmt::format("{}: {} ({}).", file, advice, reason));
}

std::string stamp_of(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

}  // namespace

std::string tls_trouble() {
  std::string reason;
  while (const auto code = ERR_get_error()) {
    const char* text = ERR_reason_error_string(code);
    // Codes of the operating system have no text of their own.
    reason = text != nullptr ? text : ERR_SYSTEM_ERROR(code) ? "the file cannot be read" : "unknown";
  }
  return reason;
}

Result<TlsContext> load_server_tls(const std::string& certificate_file, const std::string& key_file) {
  if (certificate_file.empty() || key_file.empty()) {
    return fail_with(ErrorCode::invalid_input, "tls",
                     "TLS needs two files: give both the certificate and its key.");
  }
  ERR_clear_error();
  auto context = new_context(TLS_server_method());
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  // Requests say where they end: a client that leaves without a farewell has cut off nothing.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file.c_str()) != 1)
    return unusable(certificate_file, "give a readable certificate chain in PEM");
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return unusable(key_file, "give the certificate's own key, readable, in PEM and without a passphrase");
  return context;
}

Result<TlsContext> load_client_tls(const std::string& ca_file, bool insecure) {
  ERR_clear_error();
  auto context = new_context(TLS_client_method());
  SSL_CTX_set_verify(context.get(), insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (insecure) return context;
  if (ca_file.empty())
    SSL_CTX_set_default_verify_paths(context.get());
  else if (SSL_CTX_load_verify_file(context.get(), ca_file.c_str()) != 1)
    return unusable(ca_file, "give a readable file of trusted certificates in PEM");
  return context;
}

Certificate::Certificate(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

Result<std::unique_ptr<Certificate>> Certificate::open(std::string certificate_file, std::string key_file) {
  std::unique_ptr<Certificate> certificate(new Certificate(std::move(certificate_file), std::move(key_file)));
  // The stamp is taken first: what changes while it is read is read again.
  certificate->stamp_ = certificate->stamp();
  auto context = load_server_tls(certificate->certificate_file_, certificate->key_file_);
  if (!context) return std::unexpected(std::move(context).error());
  certificate->context_ = *std::move(context);
  return certificate;
}

TlsContext Certificate::context() const {
  std::lock_guard lock(mutex_);
  return context_;
}

std::string Certificate::stamp() const {
  return stamp_of(certificate_file_) + " " + stamp_of(key_file_);
}

std::optional<std::string> Certificate::refresh() {
  auto stamp = this->stamp();
  if (stamp == stamp_) return std::nullopt;
  stamp_ = std::move(stamp);
  auto context = load_server_tls(certificate_file_, key_file_);
  if (!context) {
    return "The certificate has changed and cannot be used; new connections get the one before. " +
           context.error().advice;
  }
  std::lock_guard lock(mutex_);
  context_ = *std::move(context);
  return "The changed certificate is in use for new connections.";
}

}  // namespace flowfabric::http
