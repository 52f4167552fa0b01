#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>

#include "http/connection.h"
#include "http/networks.h"
#include "http/tls.h"
#include "http/wire.h"

namespace flowfabric::http {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTick = std::chrono::milliseconds(250);
constexpr int kTicksPerLookAtFiles = 4;
constexpr auto kPauseWithoutResources = std::chrono::milliseconds(100);
// One search for idle connections makes room for this many new ones. A search that found none is not repeated
// until many times its duration has passed.
constexpr std::size_t kWaitingAtOnce = 64;
constexpr int kPausePerLook = 20;
constexpr int kRoomWithoutResources = 8;
constexpr auto kBetweenNotices = std::chrono::minutes(1);

// A notice that is given at most once a minute.
class RareNotice {
 public:
  bool is_due() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + kBetweenNotices;
    return true;
  }

 private:
  SteadyTime next_{SteadyTime::min()};
};

Result<std::vector<tcp::endpoint>> resolve(asio::io_context& io, const std::string& address,
                                           std::uint16_t port) {
  error_code error;
  if (const auto literal = asio::ip::make_address(address, error); !error)
    return std::vector{tcp::endpoint(literal, port)};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address, std::to_string(port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) {
    return fail_with(ErrorCode::invalid_input, "address",
                     fmt::format("{} is no address of this machine: give an IP address such as 127.0.0.1, or "
                                 "a host name ({}).",
                                 address, error.message()));
  }
  std::vector<tcp::endpoint> endpoints(found.begin(), found.end());
  // For a name such as localhost, the address that every client tries.
  std::ranges::stable_partition(endpoints, [](const auto& one) { return one.address().is_v4(); });
  return endpoints;
}

Error cannot_listen(const std::string& address, std::uint16_t port, const error_code& error) {
  const auto where = fmt::format("{}:{}", address, port);
  if (error == asio::error::address_in_use) {
    return {ErrorCode::unavailable, "address",
            fmt::format("Another program listens on {}: stop it, or choose another port.", where)};
  }
  if (error == asio::error::access_denied) {
    return {ErrorCode::unavailable, "address",
            fmt::format("Listening on {} is not allowed: choose a port above 1023, or another user.", where)};
  }
  return {ErrorCode::invalid_input, "address",
          fmt::format("Cannot listen on {} ({}): give an address of this machine.", where, error.message())};
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions options, Handler& handler)
      : edge(std::move(options), handler), io(static_cast<int>(thread_count())) {}
  ~Impl() { stop(); }

  std::size_t thread_count() const { return std::max<std::size_t>(1, edge.options.threads); }

  Result<void> load_certificate();
  Result<void> learn_networks();
  Result<void> listen();
  void run();
  void accept();
  void accepted(const error_code& error, Connection::Socket socket);
  void rest_without_resources(const error_code& error);
  void welcome(Connection::Socket socket);
  std::shared_ptr<Connection> make_room();
  void turn_away(Connection::Socket& socket, Malformed why);
  void look_after_all();
  bool drain(SteadyTime until);
  void stop();

  // The order matters: objects that the context destroys last may still use the edge.
  Edge edge;
  std::unique_ptr<Certificate> certificate;
  std::vector<Network> trusted;
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  Connection::Strand strand{io.get_executor()};  // of what follows
  tcp::acceptor acceptor{strand};
  asio::steady_timer pause{strand};
  asio::steady_timer tick{strand};
  int ticks{0};
  std::vector<Waiting> waiting;  // the longest waiting connections, of the last search
  SteadyTime next_look{SteadyTime::min()};
  RareNotice no_resources;
  RareNotice no_room;
  bool is_stopping{false};
  std::uint16_t port{0};
  std::vector<std::thread> threads;
};

Result<void> Server::Impl::load_certificate() {
  const auto& options = edge.options;
  if (options.tls_certificate_file.empty() && options.tls_key_file.empty()) return {};
  auto opened = Certificate::open({.certificate_file = options.tls_certificate_file,
                                   .key_file = options.tls_key_file,
                                   .client_ca_file = options.tls_client_ca_file,
                                   .ciphers = options.tls_ciphers});
  if (!opened) return std::unexpected(std::move(opened).error());
  certificate = *std::move(opened);
  return {};
}

Result<void> Server::Impl::learn_networks() {
  for (const auto& text : edge.options.trusted_networks) {
    const auto network = Network::parse(text);
    if (!network) {
      return fail_with(ErrorCode::invalid_input, "trusted networks",
                       text + " is neither an address nor a network such as 10.0.0.0/8.");
    }
    trusted.push_back(*network);
  }
  return {};
}

Result<void> Server::Impl::listen() {
  const auto& options = edge.options;
  const auto endpoints = resolve(io, options.address, options.port);
  if (!endpoints) return std::unexpected(endpoints.error());
  error_code error;
  for (const auto& endpoint : *endpoints) {
    error_code ignored;
    acceptor.close(ignored);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) break;
  }
  if (!error) port = acceptor.local_endpoint(error).port();
  if (error) return std::unexpected(cannot_listen(options.address, options.port, error));
  return {};
}

void Server::Impl::run() {
  accept();
  look_after_all();
  for (std::size_t i = 0; i < thread_count(); ++i) {
    threads.emplace_back([this] {
      for (;;) {
        try {
          io.run();
          return;
        } catch (const std::exception& trouble) {
          edge.notice(std::string("The HTTP server goes on after trouble: ") + trouble.what());
        }
      }
    });
  }
}

// ---- New connections --------------------------------------------------------------------------------------

void Server::Impl::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](const error_code& error, Connection::Socket socket) {
    accepted(error, std::move(socket));
  });
}

void Server::Impl::accepted(const error_code& error, Connection::Socket socket) {
  if (!acceptor.is_open()) return;
  // A client that has left already is no problem. Any other error will not pass at once: most likely there
  // are no more file descriptors.
  if (error && error != asio::error::connection_aborted) return rest_without_resources(error);
  try {
    if (!error) welcome(std::move(socket));
  } catch (const std::exception& trouble) {
    edge.notice(std::string("A connection could not be accepted: ") + trouble.what());
  }
  accept();
}

// Trying again at once would use a whole processor for nothing.
void Server::Impl::rest_without_resources(const error_code& error) {
  for (int i = 0; i < kRoomWithoutResources && make_room() != nullptr; ++i) {
  }
  if (no_resources.is_due())
    edge.notice("A connection could not be accepted, and is tried again: " + error.message());
  pause.expires_after(kPauseWithoutResources);
  pause.async_wait([this](const error_code&) {
    if (acceptor.is_open()) accept();
  });
}

void Server::Impl::welcome(Connection::Socket socket) {
  error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (!error) socket.non_blocking(true, error);
  if (!error) socket.set_option(tcp::no_delay(true), error);
  if (!error) socket.set_option(asio::socket_base::keep_alive(true), error);
  if (error) return;  // it has left already
  const bool is_trusted =
      std::ranges::any_of(trusted, [&](const auto& network) { return network.contains(peer.address()); });
  // This comes first: no connection makes room for an address that is at its limit.
  const auto address = edge.enter(counted_as(peer.address()), is_trusted);
  if (address == nullptr) return turn_away(socket, Malformed::address_busy);
  const auto open = edge.connections();
  const auto most = edge.options.max_connections;
  const auto gone = open >= most ? make_room() : nullptr;
  // The new connection gets the place of the old one: for all requests, or for vital ones only.
  const bool is_for_vital = open >= most && (gone == nullptr || gone->is_for_vital_requests());
  // Connections that make room take a moment to close.
  const auto limit = gone != nullptr ? kMostBeyondLimit : kConnectionsForVitalRequests;
  if (open >= most + limit) {
    edge.leave(address);
    return turn_away(socket, Malformed::too_busy);
  }
  const auto handle = socket.native_handle();
  auto transport = certificate != nullptr ? tls_server_transport(handle, *certificate->context())
                                          : plain_transport(handle);
  const auto connection = std::make_shared<Connection>(
      edge, std::move(socket), std::move(transport), without_mapping(peer.address()), address, is_for_vital);
  if (!edge.add(connection)) return;
  ++edge.accepted;
  connection->start();
}

// Closes the connection that has waited longest for a request. Null if none waits.
std::shared_ptr<Connection> Server::Impl::make_room() {
  const auto now = std::chrono::steady_clock::now();
  for (;;) {
    if (waiting.empty() && now >= next_look) {
      waiting = edge.waiting_longest(kWaitingAtOnce);
      if (waiting.empty()) next_look = now + kPausePerLook * (std::chrono::steady_clock::now() - now);
    }
    if (waiting.empty()) return nullptr;
    const auto longest = std::move(waiting.back());
    waiting.pop_back();
    auto connection = longest.connection.lock();
    if (connection == nullptr || !connection->make_room(longest.since)) continue;
    ++edge.made_room;
    if (no_room.is_due())
      edge.notice("There are as many connections as there may be: those that wait for a request make room.");
    return connection;
  }
}

// Writes the refusal once, at best effort: it must not use resources that are short.
void Server::Impl::turn_away(Connection::Socket& socket, Malformed why) {
  ++edge.refused;
  error_code ignored;
  const auto bytes = last_response(edge.handler.refuse(why, nullptr));
  if (certificate == nullptr) socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  discard_input(socket.native_handle(), 64u << 10);
}

// ---- Time -------------------------------------------------------------------------------------------------

void Server::Impl::look_after_all() {
  tick.expires_after(kTick);
  tick.async_wait([this](const error_code&) {
    if (is_stopping) return;
    for (const auto& connection : edge.overdue(std::chrono::steady_clock::now())) connection->time_is_up();
    if (certificate != nullptr && ++ticks % kTicksPerLookAtFiles == 0) {
      if (const auto news = certificate->refresh()) edge.notice(*news);
    }
    look_after_all();
  });
}

// ---- The end ----------------------------------------------------------------------------------------------

bool Server::Impl::drain(SteadyTime until) {
  edge.begin_closing();
  const auto is_deaf = std::make_shared<std::promise<void>>();
  asio::post(strand, [this, is_deaf] {
    error_code ignored;
    acceptor.close(ignored);
    is_deaf->set_value();
  });
  for (const auto& connection : edge.all()) connection->wind_up();
  const bool in_time = is_deaf->get_future().wait_until(until) == std::future_status::ready;
  if (edge.wait_until_empty(until)) return in_time;
  for (const auto& connection : edge.all()) connection->cut_off();
  return false;
}

void Server::Impl::stop() {
  edge.begin_closing();
  edge.gate->close();
  asio::post(strand, [this] {
    error_code ignored;
    acceptor.close(ignored);
    is_stopping = true;
    pause.cancel();
    tick.cancel();
  });
  for (const auto& connection : edge.all()) connection->cut_off();
  // Nothing is left to wait for, so the threads end.
  work.reset();
  for (auto& thread : threads) thread.join();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler& handler) {
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  if (auto loaded = impl->load_certificate(); !loaded) return std::unexpected(std::move(loaded).error());
  if (auto learned = impl->learn_networks(); !learned) return std::unexpected(std::move(learned).error());
  if (auto listens = impl->listen(); !listens) return std::unexpected(std::move(listens).error());
  impl->run();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const {
  return impl_->port;
}

ServerStats Server::stats() const {
  const auto& edge = impl_->edge;
  return {.connections = edge.connections(),
          .accepted = edge.accepted,
          .refused = edge.refused,
          .made_room = edge.made_room,
          .in_flight = edge.in_flight,
          .held_bytes = edge.held_bytes};
}

bool Server::drain(std::chrono::milliseconds grace) {
  return impl_->drain(std::chrono::steady_clock::now() + grace);
}

}  // namespace flowfabric::http
