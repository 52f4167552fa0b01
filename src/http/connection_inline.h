// Event dispatch of a connection: the templates that both halves (connection*.cpp) use.
#pragma once

#include <boost/asio/post.hpp>
#include <exception>
#include <string>

#include "http/connection.h"

namespace flowfabric::http {

template <class Event>
void Connection::post(Event event) {
  boost::asio::post(socket_.get_executor(),
                    [self = shared_from_this(), event = std::move(event)]() mutable { self->happen(event); });
}

template <class Event>
void Connection::happen(Event&& event) {
  const bool went_well = guarded([&] {
    if (phase_ == Phase::closed) return;
    event();
    go_on();
  });
  if (!went_well) close();
}

template <class F>
bool Connection::guarded(F&& f) {
  try {
    f();
    return true;
  } catch (const std::exception& trouble) {
    edge_.notice(std::string("A request could not be answered as it should: ") + trouble.what());
  } catch (...) {
    edge_.notice("A request could not be answered as it should.");
  }
  return false;
}

}  // namespace flowfabric::http
