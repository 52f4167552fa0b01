#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "http/body.h"
#include "http/client_connection.h"
#include "http/head.h"

namespace flowfabric::http {

namespace {

using Deadline = ClientConnection::Deadline;
using Piece = std::function<bool(std::string_view)>;

constexpr std::size_t kMaxLine = 64u << 10;
constexpr std::size_t kMaxHeaders = 256u << 10;

std::unexpected<Error> transport_error(std::string advice) {
  return fail_with(ErrorCode::transport, "http", std::move(advice));
}

std::unexpected<Error> unusable(std::string_view what) {
  return fail_with(
      ErrorCode::invalid_input, std::string(what),
      fmt::format("The request's {} has characters that HTTP does not allow there: encode them.", what));
}

bool has_breaks(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

bool is_one_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

// Headers that the client sets itself.
bool is_of_the_client(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"host", "content-length", "transfer-encoding",
                                                   "connection"};
  return std::ranges::find(kNames, name) != kNames.end();
}

bool is_success(const Response& response) {
  return response.status >= 200 && response.status < 300;
}

Result<void> check(const Request& request) {
  if (request.method.empty() || !is_one_word(request.method)) return unusable("method");
  if (!request.path.starts_with('/') || !is_one_word(request.path)) return unusable("path");
  if (!is_one_word(request.query)) return unusable("query");
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || !is_one_word(name) || name.contains(':') || has_breaks(value))
      return unusable("header");
  }
  return {};
}

}  // namespace

struct Client::Impl {
  Place place;
  ClientOptions options;
  TlsContext tls;
  std::unique_ptr<ClientConnection> connection;  // absent: to be opened

  Result<std::unique_ptr<ClientConnection>> open(Deadline until) const {
    return ClientConnection::open(place, tls, !options.insecure, until);
  }
  std::string bytes_of(const Request& request) const;

  // Without `piece` the whole body is gathered.
  Result<Response> ask(const Request& request, const Piece* piece);
  Result<Response> ask_once(ClientConnection& on, const Request& request, const Piece* piece, Deadline until);
  Result<ResponseHead> read_head(ClientConnection& on, bool to_head, Deadline until) const;

  bool has_begun{false};    // the first byte of the answer is there
  bool can_be_kept{false};  // the connection, after the answer
};

std::string Client::Impl::bytes_of(const Request& request) const {
  auto bytes = fmt::format("{} {}{}{}{} HTTP/1.1\r\nhost: {}\r\n", request.method, place.prefix, request.path,
                           request.query.empty() ? "" : "?", request.query, place.authority());
  for (const auto& [name, value] : request.headers) {
    if (!is_of_the_client(name)) bytes += name + ": " + value + "\r\n";
  }
  if (!options.token.empty() && request.header("authorization") == nullptr)
    bytes += "authorization: Bearer " + options.token + "\r\n";
  const bool has_body = !request.body.empty() || request.method == "POST" || request.method == "PUT";
  if (has_body) bytes += fmt::format("content-length: {}\r\n", request.body.size());
  if (!request.keep_alive) bytes += "connection: close\r\n";
  bytes += "\r\n";
  return bytes;
}

Result<Response> Client::Impl::ask(const Request& request, const Piece* piece) {
  if (auto checked = check(request); !checked) return std::unexpected(std::move(checked).error());
  const auto until = std::chrono::steady_clock::now() + options.timeout;
  for (bool is_retry = false;; is_retry = true) {
    // The connection is kept only after a complete answer, so that no stray bytes are left on it.
    auto used = std::move(connection);
    if (used == nullptr || !used->is_idle_and_open()) {
      auto opened = open(until);
      if (!opened) return std::unexpected(std::move(opened).error());
      used = *std::move(opened);
    }
    const bool is_reused = std::exchange(used->has_served, true);
    auto answer = ask_once(*used, request, piece, until);
    if (answer && can_be_kept) connection = std::move(used);
    // A server may close an idle connection at any time, even while the next request is on its way.
    const bool was_closed_before = !answer && is_reused && !has_begun && !is_retry;
    if (!was_closed_before || std::chrono::steady_clock::now() >= until) return answer;
  }
}

Result<ResponseHead> Client::Impl::read_head(ClientConnection& on, bool to_head, Deadline until) const {
  for (;;) {
    HeadFinder finder(kMaxLine, kMaxHeaders);
    auto found = finder.look(on.in.bytes());
    while (found == HeadFinder::Found::not_yet) {
      const auto got = on.exchange(until);
      if (!got) return std::unexpected(got.error());
      if (!*got) return transport_error("The server closed the connection without an answer: try again.");
      found = finder.look(on.in.bytes());
    }
    auto head = found == HeadFinder::Found::whole
                    ? parse_response_head(on.in.bytes().substr(0, finder.size()), to_head)
                    : std::nullopt;
    if (!head)
      return transport_error("What answers there does not speak HTTP/1.1: check the URL and the port.");
    on.in.take(finder.size());
    if (head->response.status >= 200) return *std::move(head);
  }
}

Result<Response> Client::Impl::ask_once(ClientConnection& on, const Request& request, const Piece* piece,
                                        Deadline until) {
  has_begun = can_be_kept = false;
  on.out.add(bytes_of(request));
  on.out.add(request.body);
  auto head = read_head(on, request.method == "HEAD", until);
  has_begun = head.has_value() || !on.in.empty();
  if (!head) return std::unexpected(std::move(head).error());

  auto& response = head->response;
  const bool is_streamed = piece != nullptr && is_success(response);
  if (is_streamed) until = Deadline::max();
  BodyReader body(head->body);
  bool has_ended = false;
  for (;;) {
    on.in.take(body.read(on.in.bytes(), response.body));
    if (is_streamed && !response.body.empty()) {
      if (!(*piece)(response.body)) return response;
      response.body.clear();
    }
    if (body.is_malformed()) return transport_error("The server's answer is not HTTP/1.1 as it should be.");
    if (response.body.size() > options.max_body) {
      return transport_error(
          fmt::format("The answer is larger than {} bytes: ask for less.", options.max_body));
    }
    if (body.is_done() || (has_ended && body.ends_at_close())) break;
    if (has_ended) return transport_error("The server's answer was cut off: try again.");
    const auto got = on.exchange(until);
    if (!got) return std::unexpected(got.error());
    has_ended = !*got;
  }
  can_be_kept = head->keep_alive && !has_ended && on.out.empty() && request.keep_alive;
  return std::move(response);
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const std::string& url, ClientOptions options) {
  auto place = parse_url(url);
  if (!place) return std::unexpected(std::move(place).error());
  if (has_breaks(options.token)) return unusable("token");
  auto impl = std::make_unique<Impl>();
  impl->place = *std::move(place);
  impl->options = std::move(options);
  if (impl->place.is_tls) {
    auto tls = load_client_tls({.ca_file = impl->options.ca_file,
                                .insecure = impl->options.insecure,
                                .certificate_file = impl->options.certificate_file,
                                .key_file = impl->options.key_file});
    if (!tls) return std::unexpected(std::move(tls).error());
    impl->tls = *std::move(tls);
  }
  auto opened = impl->open(std::chrono::steady_clock::now() + impl->options.timeout);
  if (!opened) return std::unexpected(std::move(opened).error());
  impl->connection = *std::move(opened);
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Result<Response> Client::send(const Request& request) {
  return impl_->ask(request, nullptr);
}

Result<Response> Client::stream(const Request& request, const Piece& piece) {
  return impl_->ask(request, &piece);
}

}  // namespace flowfabric::http
