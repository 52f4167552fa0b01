// One client's connection: reads requests, asks the handler, writes answers, one request after the other.
//
// A connection is a state machine. Every event (bytes arrive, the socket is writable, an answer is ready,
// time is up) runs on its strand, and is followed by as many steps as are possible without waiting.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "http/body.h"
#include "http/buffers.h"
#include "http/edge.h"
#include "http/head.h"
#include "http/transport.h"
#include "http/wire.h"

namespace flowfabric::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Strand>;

  // The socket is non-blocking. The caller has called `Edge::enter` for the address; the connection calls
  // `leave`. A connection for vital requests only is closed after its first.
  Connection(Edge& edge, Socket socket, std::unique_ptr<Transport> transport, std::string peer,
             std::shared_ptr<Address> address, bool is_for_vital_requests);
  ~Connection();

  // These may be called on any thread.
  void start();
  bool is_overdue(SteadyTime now) const { return deadline_.load(std::memory_order_relaxed) <= now; }
  void time_is_up();
  bool is_for_vital_requests() const { return is_for_vital_requests_; }
  // The time since which it has waited for a request; the maximum if it does not wait.
  SteadyTime waits_since() const { return waits_since_.load(std::memory_order_relaxed); }
  // Closes the connection if it has been waiting since then. False if it has not.
  bool make_room(SteadyTime since);
  // The server is closing: finish the current request and begin no other.
  void wind_up();
  void cut_off();

 private:
  enum class Phase {
    handshake,  // of TLS
    head,       // waiting for a request, or for the rest of its header section
    body,
    answering,  // the handler has it
    sending,
    streaming,  // waiting for the next piece of a BodySource
    skipping,   // the body of a request that was refused
    lingering,  // the answer is sent; further input is discarded, so that the client can read the answer
    closed
  };
  using Piece = std::optional<std::string>;

  template <class Event>
  void post(Event event);
  template <class Event>
  void happen(Event&& event);
  void go_on();
  bool step();
  void wait();
  void wait_readable();
  void on_readable();
  void wait_writable();

  // Reading.
  std::size_t room_to_read() const;
  void read();
  void client_has_ended();
  bool shake_hands();
  bool read_head();
  void admit(RequestHead head);
  void refuse_at_head(Response refusal, bool may_skip_body);
  void refuse_at_head(Malformed why, bool may_skip_body);
  void count_held();
  bool holds_too_much();
  bool read_body();
  bool skip_body();

  // Answering.
  void hand_over();
  bool take_answer();
  void answer_arrives(std::uint64_t ticket, Response response);
  void piece_arrives(std::uint64_t ticket, Piece piece);
  template <class Value>
  std::function<void(Value)> callback(void (Connection::*arrives)(std::uint64_t, Value));
  // Exceptions of the handler's code must not end the server. False if it threw.
  template <class F>
  bool guarded(F&& f);
  void refuse(Malformed why);
  void fail();  // after a failure of the handler
  void respond(Response response);
  Framing framing_of(const Response& response) const;
  void report(const Response& response);
  bool send();
  void flush();
  void ask_for_piece();
  bool take_piece();
  void end_stream();
  void finish_answer();
  void forget_exchange();
  void begin_request();

  // Ending.
  void on_time_up();
  void on_wind_up();
  void abandon_exchange();
  void abandon_source();
  void linger();
  void close();

  void set_deadline(std::chrono::milliseconds from_now);
  void no_deadline();

  Edge& edge_;
  Socket socket_;
  const std::unique_ptr<Transport> transport_;
  const std::string peer_;
  const std::shared_ptr<Address> address_;
  const bool is_for_vital_requests_;
  std::atomic<SteadyTime> deadline_{SteadyTime::max()};
  std::atomic<SteadyTime> waits_since_{SteadyTime::max()};

  Phase phase_{Phase::handshake};
  Inbox in_;
  Outbox out_;
  bool waits_readable_{false};
  bool waits_writable_{false};
  bool read_wants_writable_{false};  // TLS may need it, to continue reading
  bool write_wants_readable_{false};
  bool may_have_more_{false};  // the last read was cut short by our own limit
  bool has_ended_{false};      // the client has closed its side

  // The request that is being read or answered.
  HeadFinder finder_;
  BodyReader body_;
  std::size_t max_body_{0};
  std::shared_ptr<Exchange> exchange_;
  std::chrono::steady_clock::time_point head_at_;
  bool has_begun_{false};  // its first byte is there
  int empty_lines_{0};     // before it
  bool is_http_1_0_{false};
  bool is_in_flight_{false};
  bool has_request_{false};  // counted for its address
  std::size_t held_{0};      // bytes counted for the server
  bool closes_{false};       // after this answer

  std::uint64_t ticket_{0};  // of the awaited callback; a callback with another ticket is too late
  std::optional<Response> answer_;
  std::optional<Piece> piece_;
  std::shared_ptr<BodySource> source_;
  bool is_chunked_{false};
  bool is_event_stream_{false};
};

}  // namespace flowfabric::http
