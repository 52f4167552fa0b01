// The router: finds the route of a request, runs the checks that all routes share (07 §1, §3) in the
// specification's order, and calls the route.
#pragma once

#include <span>

#include "api/match.h"
#include "api/trace.h"

namespace flowfabric::api {

// All routes, in the order of the specification.
std::span<const Route> routes();

class Api : public http::Handler {
 public:
  Api(Engine& engine, Options options);

  Admission admit(const http::Request& head) override;
  void handle(std::shared_ptr<http::Exchange> exchange, std::function<void(http::Response)> answer) override;
  http::Response refuse(http::Malformed why, const http::Request* head) override;
  void answered(const http::Request& head, const http::Response& response, double seconds) override;

  // The answer for an unknown path.
  http::Response not_found(const http::Request& head) const;
  // Replaces the server's token.
  void set_token(std::string token) { services_.token.set(std::move(token)); }
  // From now on `/readyz` reports "not ready", and waits for streams are refused.
  void begin_draining() { services_.draining = true; }

 private:
  bool may_enter(const http::Request& head) const;
  std::optional<Refusal> refuse_entry(const http::Request& head, const Match& found);
  http::Response refused(const http::Request& head, const Refusal& refusal) const;
  std::optional<http::Response> check(const http::Request& head, const Match& found) const;
  http::Response finish(const http::Request& head, http::Response response,
                        const std::string& request_id) const;
  std::optional<TraceContext> begin_span(const http::Request& head) const;
  void trace(const http::Request& head, const http::Response& response, std::string_view route,
             double seconds) const;
  void audit(const http::Request& head, const http::Response& response) const;
  void add_cors(const http::Request& head, http::Response& response, bool preflight) const;

  Services services_;
};

// One of two listening addresses, if the administration (metrics, health, /v1/admin) has its own.
class Entrance : public http::Handler {
 public:
  enum class To { work, administration };
  Entrance(Api& api, To to) : api_(api), to_(to) {}

  Admission admit(const http::Request& head) override;
  void handle(std::shared_ptr<http::Exchange> exchange, std::function<void(http::Response)> answer) override {
    api_.handle(std::move(exchange), std::move(answer));
  }
  http::Response refuse(http::Malformed why, const http::Request* head) override {
    return api_.refuse(why, head);
  }
  void answered(const http::Request& head, const http::Response& response, double seconds) override {
    api_.answered(head, response, seconds);
  }

 private:
  Api& api_;
  const To to_;
};

}  // namespace flowfabric::api
