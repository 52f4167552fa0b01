#include "cli/connection.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "api/router.h"
#include "cli/open_engine.h"
#include "http/client.h"
#include "model/text.h"
#include "store/url.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kToken = "FF_API_TOKEN";
constexpr const char* kTokenFile = "FF_API_TOKEN_FILE";
// Longer than the longest poll.
constexpr std::chrono::milliseconds kAnswerTimeout{60'000};

// ---- a server ---------------------------------------------------------------------------------------------

// Empty if none is given.
Result<std::string> given_token() {
  if (const char* token = std::getenv(kToken); token && *token != '\0') return std::string(token);
  const char* path = std::getenv(kTokenFile);
  if (!path || *path == '\0') return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string token{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return fail_with(ErrorCode::invalid_input, fmt::format("{}: cannot read {}", kTokenFile, path),
                     "Name a file that holds the server's token.");
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  return token;
}

class ServerConnection : public Connection {
 public:
  explicit ServerConnection(std::unique_ptr<http::Client> client) : client_(std::move(client)) {}

  Result<http::Response> send(const http::Request& request) override { return client_->send(request); }
  Result<http::Response> stream(const http::Request& request, const Piece& piece) override {
    return client_->stream(request, piece);
  }

 private:
  std::unique_ptr<http::Client> client_;
};

Result<std::unique_ptr<Connection>> connect(const ConnectionOptions& options) {
  auto token = given_token();
  if (!token) return std::unexpected(token.error());
  auto client = http::Client::connect(options.store, {.timeout = kAnswerTimeout,
                                                      .ca_file = options.ca_file,
                                                      .insecure = options.insecure,
                                                      .certificate_file = options.certificate_file,
                                                      .key_file = options.key_file,
                                                      .token = *std::move(token)});
  if (!client) return std::unexpected(client.error());
  return std::make_unique<ServerConnection>(*std::move(client));
}

// ---- an engine in this process ----------------------------------------------------------------------------

// Answers over HTTP hide why the store has failed; here the operator is at the terminal.
void tell_cause(const std::string& text) {
  fmt::print(stderr, "flowfabric: {}\n", one_line(text));
}

class DirectConnection : public Connection {
 public:
  explicit DirectConnection(Engine engine)
      : engine_(std::move(engine)), api_(engine_, {.read_threads = 2, .failure_log = tell_cause}) {}
  // Operations in progress must not outlive the routes.
  ~DirectConnection() override { engine_.stop(std::chrono::seconds(5)); }

  Result<http::Response> send(const http::Request& request) override {
    auto admission = api_.admit(request);
    if (admission.refusal) return *std::move(admission.refusal);
    if (request.body.size() > admission.max_body) {
      return api_.refuse(http::Malformed::body_too_large, &request);
    }
    auto exchange = std::make_shared<http::Exchange>();
    exchange->request = request;
    auto answer = std::make_shared<std::promise<http::Response>>();
    api_.handle(exchange, [answer](http::Response response) { answer->set_value(std::move(response)); });
    return answer->get_future().get();
  }

  Result<http::Response> stream(const http::Request& request, const Piece& piece) override {
    auto answer = send(request);
    if (!answer || !answer->source) return answer;
    for (;;) {
      auto next = std::make_shared<std::promise<std::optional<std::string>>>();
      answer->source->next([next](std::optional<std::string> text) { next->set_value(std::move(text)); });
      const auto text = next->get_future().get();
      if (!text) return answer;
      if (piece(*text)) continue;
      answer->source->abandon();
      return answer;
    }
  }

 private:
  Engine engine_;
  api::Api api_;
};

// Opening a store that does not exist would create one.
Result<void> check_exists(const std::string& url) {
  const auto parsed = store::parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme != "sqlite" || parsed->path.empty() || std::filesystem::exists(parsed->path)) return {};
  return fail_with(ErrorCode::unavailable, parsed->path + ": no such file",
                   "Give the path of a database that is there, or the URL of a server.");
}

Result<std::unique_ptr<Connection>> open_store(const std::string& url, Purpose purpose) {
  if (purpose != Purpose::create) {
    if (auto exists = check_exists(url); !exists) return std::unexpected(exists.error());
  }
  EngineOptions options;
  if (purpose == Purpose::look) options.clock_interval = std::chrono::milliseconds(0);
  auto engine = open_engine(url, std::move(options));
  if (!engine) return std::unexpected(engine.error());
  return std::make_unique<DirectConnection>(*std::move(engine));
}

// Returns the problem, or an empty text.
std::string is_store_url(std::string& url) {
  for (const auto* scheme : {"http://", "https://", "sqlite:", "postgres://", "postgresql://", "memory:"}) {
    if (url.starts_with(scheme)) return "";
  }
  return "give a server (http://host:port) or a store (sqlite:PATH, postgres://user@host/database)";
}

}  // namespace

void add_connection_options(Command& command, ConnectionOptions& options) {
  command
      .add_option("--store", options.store,
                  "A server (http://host:port, https://…), or a store to open directly (sqlite:PATH, "
                  "postgres://…)")
      .variable("FF_STORE")
      .check(is_store_url)
      .show_default()
      .group("Connection");
  command
      .add_option("--ca-file", options.ca_file,
                  "Certificate authority of an https server; default: the system's")
      .group("Connection");
  command.add_flag("--insecure", options.insecure, "Accept any certificate of an https server")
      .group("Connection");
  auto certificate = command
                         .add_option("--client-certificate", options.certificate_file,
                                     "Client certificate, PEM, if the https server asks for one")
                         .group("Connection");
  auto key =
      command.add_option("--client-key", options.key_file, "Private key of the client certificate, PEM")
          .group("Connection");
  certificate.needs(key);
  key.needs(certificate);
}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionOptions& options, Purpose purpose) {
  const bool is_server = options.store.starts_with("http://") || options.store.starts_with("https://");
  return is_server ? connect(options) : open_store(options.store, purpose);
}

}  // namespace flowfabric::cli
