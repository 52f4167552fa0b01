// One request on its way to the engine and back, and the services that all requests share.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "api/access.h"
#include "api/errors.h"
#include "api/fields.h"
#include "api/lookout.h"
#include "api/metrics.h"
#include "api/pool.h"
#include "api/rate_limit.h"
#include "flowfabric/engine.h"
#include "http/message.h"

namespace flowfabric::api {

class Tracer;

// The largest request bodies, in bytes, by kind of route.
struct BodyLimits {
  std::size_t control{64u << 10};
  std::size_t signal{256u << 10};
  std::size_t large{1u << 20};  // one execution, a batch of reports
  std::size_t bulk{16u << 20};  // many executions, whole flows
};

struct Options {
  std::string token{};  // empty: any client may do anything
  // Without a token: answer only clients that use a loopback name of this machine (access.h).
  bool loopback_names_only{false};
  bool metrics_are_open{false};  // without the token
  bool speaks_tls{false};
  std::vector<std::string> cors_origins{};
  // Signals without the server's token that an address may send per minute. 0: none.
  std::size_t outside_signals_per_minute{600};
  std::size_t max_stream_operations{64};  // reads and tails of streams at once
  std::size_t max_live_streams{4096};     // open server-sent event streams
  std::int64_t secret_grace_ms{86'400'000};
  std::chrono::milliseconds rotation_timeout{120'000};  // after which a rotation is answered with 504
  std::size_t read_threads{8};
  BodyLimits max_body{};
  std::size_t max_json_values{1'000'000};                      // of a request's body
  std::function<void(const std::string& line)> access_log{};   // a JSON object per request; empty: none
  std::function<void(const std::string& line)> audit_log{};    // one line per audited request; empty: none
  std::function<void(const std::string& text)> failure_log{};  // the reasons of 5xx answers; empty: none
  Tracer* tracer{nullptr};                                     // receives spans; null: none are made
};

// A bound on concurrent uses. Nobody waits for a permit.
class Permits {
 public:
  explicit Permits(std::size_t most) : most_(most) {}
  std::shared_ptr<void> take();  // null: none is left
  std::size_t most() const { return most_; }
  std::size_t taken() const { return taken_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_{0};
};

struct Services {
  Services(Engine& the_engine, Options the_options);
  // Logs the details of a failure that a client is not told, at a limited rate.
  void log_failure(const Error& error, const http::Request& asked, std::string_view request_id);

  Engine& engine;
  const Options options;
  Token token;
  RateLimit outside_signals;
  RateLimit failure_lines;
  Metrics metrics;
  Permits stream_operations;
  Permits live_streams;
  std::atomic<bool> rotating{false};
  std::atomic<bool> checking{false};
  std::atomic<bool> draining{false};
  // Look at the store: one round trip, and its figures. Neither may delay an answer.
  Lookout<bool> store_probe;
  Lookout<StoreFigures> figures;
  std::mutex last_figures_mutex;
  std::optional<StoreFigures> last_figures;  // shown while the store does not answer
  // Reads wait for the store on these threads, not on those that serve connections.
  Pool readers;
  Pool prober;
};

class Call;
using CallPtr = std::shared_ptr<Call>;

enum class Body { none, ignored, json, json_if_any };

// The limit of a route's body.
using Cap = std::size_t BodyLimits::*;

// The token that a route accepts. A waitpoint's token opens one route to people who must not have the
// server's.
enum class Door { server_token, waitpoint_token };

struct Route {
  std::string_view method;
  std::string_view pattern;    // `/v1/executions/{id}/state`
  std::string_view operation;  // its name in the OpenAPI document
  Body body{Body::none};
  Cap max_body{&BodyLimits::control};
  void (*handle)(const CallPtr& call);
  Door door{Door::server_token};
};

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Services& shared, std::shared_ptr<http::Exchange> its_exchange,
       std::function<void(http::Response)> answer);

  Services& services;
  const std::shared_ptr<http::Exchange> exchange;
  std::string request_id;
  std::vector<std::string> segments;  // the parts of the path that the pattern leaves open, decoded
  Query query;
  std::optional<Json> body;
  std::string trace_context;  // a `traceparent` for submitted executions; empty: none
  std::string missing;        // the text of a 404, where the specification asks for special words
  bool is_outsider{false};    // came with a waitpoint's token instead of the server's

  Engine& engine() { return services.engine; }
  bool has_body() const { return body.has_value(); }
  Fields fields() const { return Fields(body->root()); }

  // Each call is answered by exactly one of these, once.
  void reply(http::Response response);
  void reply(int status, std::string json);
  void reply(const Error& error);
  void reply(const Refusal& refusal);

  // Runs a function. If it throws a refusal, or anything else, replies with that.
  template <class F>
  void guard(F&& f) {
    try {
      f();
    } catch (const Refusal& refusal) {
      reply(refusal);
    } catch (const Error& error) {
      reply(error);
    } catch (const std::bad_alloc&) {
      reply(
          Error{ErrorCode::unavailable, "out of memory", "The server is short of memory: repeat it later."});
    } catch (const std::exception& problem) {
      reply(Error{ErrorCode::invariant_violation, problem.what(),
                  "The server could not answer this: its log tells why, by the request's id."});
    }
  }

  // Asks the engine. `write` turns its answer into the reply; errors are replied as they are. `write` runs on
  // a thread of the engine, so keep it short.
  template <class Request, class Write>
  void run(Request request, Write write) {
    engine().post(std::move(request),
                  [self = shared_from_this(), write](Result<typename Request::Answer> answer) {
                    self->finish(std::move(answer), write);
                  });
  }
  // The same, for an answer that takes long to write.
  template <class Request, class Write>
  void run_long(Request request, Write write) {
    engine().post(
        std::move(request), [self = shared_from_this(), write](Result<typename Request::Answer> answer) {
          auto kept = std::make_shared<Result<typename Request::Answer>>(std::move(answer));
          self->services.readers.run([self, write, kept] { self->finish(std::move(*kept), write); });
        });
  }
  // The same, for a read, which waits for the store.
  template <class Request, class Write>
  void read(Request request, Write write) {
    auto kept = std::make_shared<Request>(std::move(request));
    services.readers.run([self = shared_from_this(), kept, write] {
      self->guard([&] { self->finish(self->engine().call(std::move(*kept)), write); });
    });
  }

 private:
  template <class Answer, class Write>
  void finish(Result<Answer>&& answer, const Write& write) {
    if (!answer) return reply(answer.error());
    guard([&] { write(*this, *std::move(answer)); });
  }

  std::function<void(http::Response)> answer_;
  std::atomic<bool> answered_{false};
};

// ---- what many routes need
// ---------------------------------------------------------------------------------

// `"<name>": …` when the bytes are JSON, `"<name>_base64": …` when they are not, null when there are none.
void write_payload(JsonWriter& out, std::string_view name, std::string_view bytes);
// The second part of a path that ends `/executions/{id}/attempts/{idx}…`.
std::uint32_t attempt_of(const CallPtr& call);

std::string new_request_id();

}  // namespace flowfabric::api
