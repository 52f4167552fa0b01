// A connection's answers: getting them from the handler, and sending them.
#include <algorithm>

#include "http/connection_inline.h"

namespace flowfabric::http {

namespace {

using Clock = std::chrono::steady_clock;

void forget(const Response& response) {
  if (response.source != nullptr) response.source->abandon();
}
void forget(const std::optional<std::string>&) {}

bool says_close(const Response& response) {
  return std::ranges::find(response.headers, Header{"connection", "close"}) != response.headers.end();
}

}  // namespace

// ---- What comes from the handler, on any thread -----------------------------------------------------------

template <class Value>
std::function<void(Value)> Connection::callback(void (Connection::*arrives)(std::uint64_t, Value)) {
  return [gate = edge_.gate, weak = weak_from_this(), ticket = ticket_, arrives](Value value) {
    std::shared_ptr<Connection> here;  // the call comes from our own strand, while the handler is being asked
    bool is_on_its_way = false;
    gate->pass([&] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      if (self->socket_.get_executor().running_in_this_thread()) {
        here = self;
      } else {
        self->post([to = self.get(), ticket, arrives, moved = std::move(value)]() mutable {
          (to->*arrives)(ticket, std::move(moved));
        });
        is_on_its_way = true;
      }
    });
    if (here != nullptr)
      (*here.*arrives)(ticket, std::move(value));
    else if (!is_on_its_way)
      forget(value);
  };
}

void Connection::answer_arrives(std::uint64_t ticket, Response response) {
  if (ticket != ticket_ || phase_ != Phase::answering || answer_)
    forget(response);
  else
    answer_ = std::move(response);
}

void Connection::piece_arrives(std::uint64_t ticket, Piece piece) {
  if (ticket == ticket_ && phase_ == Phase::streaming && !piece_) piece_ = std::move(piece);
}

// ---- Answers ----------------------------------------------------------------------------------------------

void Connection::hand_over() {
  phase_ = Phase::answering;
  no_deadline();
  is_in_flight_ = true;
  ++edge_.in_flight;
  ++ticket_;
  const bool went_well =
      guarded([&] { edge_.handler.handle(exchange_, callback(&Connection::answer_arrives)); });
  if (answer_) return;
  if (!went_well) return fail();
  if (has_ended_) abandon_exchange();
}

bool Connection::take_answer() {
  if (!answer_) return false;
  auto answer = *std::move(answer_);
  answer_.reset();
  respond(std::move(answer));
  return true;
}

void Connection::refuse(Malformed why) {
  Response response;
  const auto* head = exchange_ != nullptr ? &exchange_->request : nullptr;
  if (!guarded([&] { response = edge_.handler.refuse(why, head); })) return fail();
  closes_ = true;
  respond(std::move(response));
}

void Connection::fail() {
  closes_ = true;
  respond({.status = 500});
}

void Connection::respond(Response response) {
  const auto framing = framing_of(response);
  if (framing == Framing::until_close || edge_.is_closing() || says_close(response)) closes_ = true;
  report(response);
  out_.add(response_head(response, framing, closes_ ? "close" : is_http_1_0_ ? "keep-alive" : ""));
  const bool has_body =
      framing != Framing::no_body && (exchange_ == nullptr || exchange_->request.method != "HEAD");
  if (has_body && framing == Framing::sized) out_.add(std::move(response.body));
  source_ = std::move(response.source);
  is_chunked_ = framing == Framing::chunked;
  is_event_stream_ = response.content_type.starts_with("text/event-stream");
  // Once a client has closed its side, its leaving cannot be noticed; so it gets no stream.
  if (!has_body || has_ended_) abandon_source();
  if (source_ == nullptr && exchange_ != nullptr) exchange_->on_abandoned = nullptr;  // nobody waits any more
  phase_ = Phase::sending;
  set_deadline(edge_.options.body_timeout);
}

Framing Connection::framing_of(const Response& response) const {
  if (!may_have_body(response.status)) return Framing::no_body;
  if (response.source == nullptr) return Framing::sized;
  return is_http_1_0_ ? Framing::until_close : Framing::chunked;
}

void Connection::report(const Response& response) {
  if (exchange_ == nullptr) return;
  const std::chrono::duration<double> taken = Clock::now() - head_at_;
  guarded([&] { edge_.handler.answered(exchange_->request, response, taken.count()); });
}

bool Connection::send() {
  flush();
  if (phase_ == Phase::closed || !out_.empty()) return false;
  source_ != nullptr ? ask_for_piece() : finish_answer();
  return true;
}

void Connection::flush() {
  write_wants_readable_ = false;
  while (!out_.empty()) {
    const auto moved = transport_->write(out_.first(), out_.second());
    out_.written(moved.bytes);
    if (moved.bytes > 0 && phase_ == Phase::sending) set_deadline(edge_.options.body_timeout);
    write_wants_readable_ = moved.status == Transport::Status::wait_readable;
    if (write_wants_readable_ || moved.status == Transport::Status::wait_writable) return;
    if (moved.status != Transport::Status::ok) return close();
  }
}

void Connection::ask_for_piece() {
  phase_ = Phase::streaming;
  no_deadline();
  piece_.reset();
  ++ticket_;
  const auto source = source_;
  if (!guarded([&] { source->next(callback(&Connection::piece_arrives)); })) close();
}

bool Connection::take_piece() {
  if (!piece_) return false;
  auto piece = *std::move(piece_);
  piece_.reset();
  if (!piece) {
    source_.reset();
    end_stream();
    return true;
  }
  if (!piece->empty()) out_.add(is_chunked_ ? as_chunk(*std::move(piece)) : *std::move(piece));
  phase_ = Phase::sending;
  set_deadline(edge_.options.body_timeout);
  return true;
}

void Connection::end_stream() {
  if (is_chunked_) out_.add(std::string(kLastChunk));
  phase_ = Phase::sending;
  set_deadline(edge_.options.body_timeout);
}

void Connection::finish_answer() {
  forget_exchange();
  if (closes_) return linger();
  if (body_.is_done()) return begin_request();
  phase_ = Phase::skipping;
  set_deadline(edge_.options.body_timeout);
}

void Connection::forget_exchange() {
  if (std::exchange(has_request_, false)) --address_->requests;
  if (std::exchange(is_in_flight_, false)) --edge_.in_flight;
  if (exchange_ != nullptr) exchange_->on_abandoned = nullptr;  // it may hold the exchange itself
  exchange_.reset();
}

void Connection::begin_request() {
  phase_ = Phase::head;
  waits_since_ = Clock::now();
  finder_ = HeadFinder(edge_.options.max_request_line, edge_.options.max_headers);
  body_ = BodyReader();
  has_begun_ = false;
  empty_lines_ = 0;
  is_http_1_0_ = false;
  closes_ = false;
  set_deadline(edge_.options.idle_timeout);
}

}  // namespace flowfabric::http
