// Events, waiting, reading, ending. Answers are in connection_answer.cpp.
#include "http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <exception>
#include <span>

#include "http/connection_inline.h"

namespace flowfabric::http {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStepsAtOnce = 64;  // then other connections get their turn
constexpr std::size_t kReadAtOnce = 32u << 10;
constexpr std::size_t kMaxAhead = 64u << 10;  // of requests that wait for their turn
constexpr std::size_t kLittleAhead = 1u << 10;
constexpr int kMostEmptyLines = 8;
constexpr std::size_t kUncounted = 4u << 10;   // is enough for most requests
constexpr std::size_t kSmallBody = 64u << 10;  // is read although its request was refused
constexpr std::size_t kDiscardAtOnce = 256u << 10;
constexpr auto kLingering = std::chrono::seconds(2);

// Counts up to `limit`. A body may look like several heads; then a little less is read ahead.
std::size_t count_heads(std::string_view bytes, std::size_t limit) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t count = 0;
  for (auto at = bytes.find(kEnd); at != std::string_view::npos && count < limit; ++count)
    at = bytes.find(kEnd, at + kEnd.size());
  return count;
}

}  // namespace

Connection::Connection(Edge& edge, Socket socket, std::unique_ptr<Transport> transport, std::string peer,
                       std::shared_ptr<Address> address, bool is_for_vital_requests)
    : edge_(edge),
      socket_(std::move(socket)),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      address_(std::move(address)),
      is_for_vital_requests_(is_for_vital_requests),
      finder_(edge.options.max_request_line, edge.options.max_headers) {}

Connection::~Connection() {
  edge_.leave(address_);
}

void Connection::start() {
  set_deadline(edge_.options.header_timeout);
  waits_since_ = Clock::now();
  has_begun_ = true;  // the first request's time is counted from here
  post([] {});
}

void Connection::time_is_up() {
  post([this] { on_time_up(); });
}

bool Connection::make_room(SteadyTime since) {
  if (!waits_since_.compare_exchange_strong(since, SteadyTime::max())) return false;
  post([this] {
    const bool waits = phase_ == Phase::handshake || phase_ == Phase::head || phase_ == Phase::lingering;
    if (waits) close();
  });
  return true;
}

void Connection::wind_up() {
  post([this] { on_wind_up(); });
}

void Connection::cut_off() {
  post([this] { close(); });
}

void Connection::set_deadline(std::chrono::milliseconds from_now) {
  deadline_.store(Clock::now() + from_now, std::memory_order_relaxed);
}

void Connection::no_deadline() {
  deadline_.store(SteadyTime::max(), std::memory_order_relaxed);
}

// ---- Steps and waits --------------------------------------------------------------------------------------

void Connection::go_on() {
  for (int steps = 0; phase_ != Phase::closed && step();) {
    if (++steps == kStepsAtOnce) return post([] {});
  }
  if (phase_ == Phase::closed) return;
  count_held();
  wait();
}

// True if another step may follow.
bool Connection::step() {
  switch (phase_) {
    case Phase::handshake:
      return shake_hands();
    case Phase::head:
      return read_head();
    case Phase::body:
      return read_body();
    case Phase::answering:
      return take_answer();
    case Phase::sending:
      return send();
    case Phase::streaming:
      return take_piece();
    case Phase::skipping:
      return skip_body();
    case Phase::lingering:
    case Phase::closed:
      return false;
  }
  return false;
}

void Connection::wait() {
  const bool shakes_hands = phase_ == Phase::handshake && !read_wants_writable_;
  const bool reads = !has_ended_ && room_to_read() > 0;
  const bool writes = !out_.empty();
  if (shakes_hands || reads || phase_ == Phase::lingering || (writes && write_wants_readable_))
    wait_readable();
  if (read_wants_writable_ || (writes && !write_wants_readable_)) wait_writable();
}

void Connection::wait_readable() {
  if (std::exchange(waits_readable_, true)) return;
  // Bytes that TLS has buffered do not make the socket readable again.
  if (may_have_more_ && room_to_read() > 0) return post([this] { on_readable(); });
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code&) {
    self->happen([&] { self->on_readable(); });
  });
}

void Connection::on_readable() {
  waits_readable_ = false;
  if (phase_ != Phase::lingering)
    read();
  else if (!discard_input(socket_.native_handle(), kDiscardAtOnce))
    close();
}

void Connection::wait_writable() {
  if (std::exchange(waits_writable_, true)) return;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code&) {
    self->happen([&] {
      self->waits_writable_ = false;
      if (std::exchange(self->read_wants_writable_, false)) self->read();
    });
  });
}

// ---- Reading ----------------------------------------------------------------------------------------------

std::size_t Connection::room_to_read() const {
  switch (phase_) {
    case Phase::head:
    case Phase::body:
    case Phase::skipping:
      return kReadAtOnce;
    case Phase::answering:
    case Phase::sending:
    case Phase::streaming: {
      // These bytes are not needed yet, but reading shows when the client is gone.
      const auto limit = edge_.options.max_pipelined;
      const auto most = edge_.is_nearly_full() ? kLittleAhead : kMaxAhead;
      if (in_.size() >= most || (!in_.empty() && count_heads(in_.bytes(), limit) >= limit)) return 0;
      return std::min(kReadAtOnce, most - in_.size());
    }
    case Phase::handshake:
    case Phase::lingering:
    case Phase::closed:
      return 0;
  }
  return 0;
}

void Connection::read() {
  const auto room = has_ended_ ? 0 : room_to_read();
  if (room == 0) return;
  // One buffer for all connections of a thread, so that an idle connection needs none.
  thread_local std::array<char, kReadAtOnce> scratch;
  const auto moved = transport_->read(std::span(scratch).first(room));
  in_.add({scratch.data(), moved.bytes});
  may_have_more_ = moved.bytes == room;
  read_wants_writable_ = moved.status == Transport::Status::wait_writable;
  if (moved.status == Transport::Status::failed) close();
  if (moved.status == Transport::Status::ended) client_has_ended();
}

// The client may still read, so an answer is written; but nothing waits for more input.
void Connection::client_has_ended() {
  has_ended_ = true;
  may_have_more_ = false;
  abandon_exchange();
  if (source_ != nullptr) close();
}

bool Connection::shake_hands() {
  const auto status = transport_->handshake();
  read_wants_writable_ = status == Transport::Status::wait_writable;
  if (read_wants_writable_ || status == Transport::Status::wait_readable) return false;
  if (status == Transport::Status::ok) {
    phase_ = Phase::head;
    read();
  } else {
    close();
  }
  return true;
}

bool Connection::read_head() {
  using Found = HeadFinder::Found;
  // Some clients send an empty line after a body. More than a few are refused.
  for (; empty_lines_ < kMostEmptyLines && in_.bytes().starts_with("\r\n"); ++empty_lines_) in_.take(2);
  const bool is_idle = in_.empty() || in_.bytes() == "\r";
  if (is_idle && (has_ended_ || edge_.is_closing())) return close(), true;
  if (is_idle) return false;
  if (edge_.is_closing()) return refuse(Malformed::closing), true;
  if (!std::exchange(has_begun_, true)) set_deadline(edge_.options.header_timeout);

  const auto found = finder_.look(in_.bytes());
  if (found == Found::not_yet && holds_too_much()) return refuse(Malformed::no_memory), true;
  if (found == Found::not_yet && !has_ended_) return false;
  if (found == Found::too_large) return refuse(Malformed::header_too_large), true;
  auto head =
      found == Found::whole ? parse_request_head(in_.bytes().substr(0, finder_.size())) : std::nullopt;
  if (!head) return refuse(Malformed::bad_request), true;
  in_.take(finder_.size());
  admit(*std::move(head));
  return true;
}

void Connection::admit(RequestHead head) {
  head_at_ = Clock::now();
  waits_since_ = SteadyTime::max();
  is_http_1_0_ = head.is_http_1_0;
  closes_ = !head.request.keep_alive;
  body_ = BodyReader(head.body);
  exchange_ = std::make_shared<Exchange>();
  exchange_->request = std::move(head.request);
  exchange_->request.peer = peer_;

  Handler::Admission admission;
  if (!guarded([&] { admission = edge_.handler.admit(exchange_->request); })) return fail();
  const bool is_sized = head.body.kind == BodyForm::Kind::sized;
  // A client that awaits "continue" may or may not send the body, so the meaning of its next bytes is
  // unknown.
  const bool may_skip = is_sized && head.body.size <= kSmallBody && !head.awaits_continue;
  if (is_for_vital_requests_) {
    closes_ = true;
    if (!admission.is_vital) return ++edge_.refused, refuse(Malformed::too_busy);
  }
  if (admission.refusal) return refuse_at_head(*std::move(admission.refusal), may_skip);
  if (!admission.is_vital) {
    if (!edge_.take_request(*address_)) return refuse_at_head(Malformed::address_busy, may_skip);
    has_request_ = true;
  }
  max_body_ = admission.max_body;
  if (is_sized && head.body.size > max_body_) return refuse(Malformed::body_too_large);
  const bool is_large = is_sized && head.body.size > kUncounted;
  if (is_large && edge_.held_bytes + head.body.size > edge_.options.max_body_memory)
    return refuse_at_head(Malformed::no_memory, may_skip);
  phase_ = Phase::body;
  if (body_.is_done()) return;
  set_deadline(edge_.options.body_timeout);
  if (head.awaits_continue && in_.empty()) out_.add(std::string(kContinue));
}

void Connection::refuse_at_head(Response refusal, bool may_skip_body) {
  if (!body_.is_done() && !may_skip_body) closes_ = true;
  respond(std::move(refusal));
}

void Connection::refuse_at_head(Malformed why, bool may_skip_body) {
  Response response;
  if (!guarded([&] { response = edge_.handler.refuse(why, &exchange_->request); })) return fail();
  refuse_at_head(std::move(response), may_skip_body);
}

// Tells the edge how many bytes of requests this connection holds beyond the free allowance.
void Connection::count_held() {
  const auto all = in_.capacity() + (exchange_ != nullptr ? exchange_->request.body.capacity() : 0);
  const auto counted = all > kUncounted ? all : 0;
  if (counted == held_) return;
  const auto more = counted - held_;  // wraps around when it is less, as it should
  edge_.held_bytes += more;
  address_->bytes += more;
  held_ = counted;
}

bool Connection::holds_too_much() {
  count_held();
  return held_ > 0 && edge_.is_full_for(*address_);
}

bool Connection::read_body() {
  if (!out_.empty()) flush();
  if (phase_ == Phase::closed) return false;
  auto& content = exchange_->request.body;
  const auto used = body_.read(in_.bytes(), content);
  in_.take(used);
  if (content.size() > max_body_) return refuse(Malformed::body_too_large), true;
  if (body_.is_done()) return hand_over(), true;
  if (body_.is_malformed() || has_ended_) return refuse(Malformed::bad_request), true;
  if (holds_too_much()) return refuse(Malformed::no_memory), true;
  if (used > 0) set_deadline(edge_.options.body_timeout);
  return false;
}

bool Connection::skip_body() {
  std::string nowhere;
  const auto used = body_.read(in_.bytes(), nowhere);
  in_.take(used);
  if (body_.is_done()) return begin_request(), true;
  if (has_ended_) return close(), true;
  if (used > 0) set_deadline(edge_.options.body_timeout);
  return false;
}

// ---- Ending -----------------------------------------------------------------------------------------------

void Connection::on_time_up() {
  if (!is_overdue(Clock::now())) return;  // an event came just in time
  const bool is_too_slow = phase_ == Phase::body || (phase_ == Phase::head && !in_.empty());
  is_too_slow ? refuse(Malformed::too_slow) : close();
}

void Connection::on_wind_up() {
  switch (phase_) {
    case Phase::handshake:
    case Phase::skipping:
    case Phase::lingering:
      return close();
    case Phase::head:
      return read();  // a request may be there already; the next step refuses it, or closes
    case Phase::body:
      return refuse(Malformed::closing);
    case Phase::answering:
    case Phase::sending:
    case Phase::streaming:
      abandon_exchange();
      // A stream of events can end anywhere, because its reader resumes. Any other body would look complete
      // without being so.
      if (source_ != nullptr && is_event_stream_) {
        abandon_source();
        end_stream();
      }
      return;
    case Phase::closed:
      return;
  }
}

void Connection::abandon_exchange() {
  if (!is_in_flight_ || exchange_->abandoned.exchange(true)) return;
  const auto tell = std::exchange(exchange_->on_abandoned, nullptr);
  if (tell) guarded(tell);
}

void Connection::abandon_source() {
  const auto source = std::exchange(source_, nullptr);
  if (source != nullptr) guarded([&] { source->abandon(); });
}

// If a socket is closed while its client still sends, the connection is reset, and the client may lose the
// answer.
void Connection::linger() {
  transport_->finish();
  in_.clear();
  const bool may_send = !has_ended_ && discard_input(socket_.native_handle(), kDiscardAtOnce);
  if (!may_send || edge_.is_closing()) return close();
  phase_ = Phase::lingering;
  waits_since_ = SteadyTime::min();  // nothing is lost with it
  set_deadline(kLingering);
}

void Connection::close() {
  if (std::exchange(phase_, Phase::closed) == Phase::closed) return;
  no_deadline();
  abandon_exchange();
  abandon_source();
  forget_exchange();
  in_.clear();
  out_.clear();
  count_held();
  boost::system::error_code ignored;
  socket_.close(ignored);
  edge_.remove(shared_from_this());
}

}  // namespace flowfabric::http
