// A server on one of the stores, and a client that talks to it over a real socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/router.h"
#include "http/client.h"
#include "http/server.h"
#include "support/test_store.h"

namespace flowfabric::tests {

struct Reply {
  int status{};
  std::string body;
  std::vector<http::Header> headers;

  // The value at a JSON pointer (`/Created/execution_id`): of a string what it says, of anything else its
  // JSON.
  std::string at(const std::string& pointer) const;
  bool has(const std::string& pointer) const;
  std::size_t size(const std::string& pointer) const;                    // of an array or an object
  std::vector<std::string> keys(const std::string& pointer = "") const;  // of an object, sorted
  std::string header(const std::string& name) const;                     // empty: none
};
void PrintTo(const Reply& reply, std::ostream* out);

class HttpTest : public ::testing::TestWithParam<std::string> {
 protected:
  explicit HttpTest(EngineOptions options = {});
  ~HttpTest() override;

  // Starts it again with other options.
  void serve(api::Options options, http::ServerOptions http_options = {});
  // Begins draining, as a server does that is about to end.
  void begin_draining() { api_->begin_draining(); }
  // Opens the same store with other options of the engine.
  void reopen(EngineOptions options);
  // Opens the same store, changed behind the engine's back meanwhile.
  void reopen_changed(const std::string& sql);

  Reply send(http::Request request);
  Reply get(const std::string& path) { return send({.method = "GET", .path = path}); }
  Reply post(const std::string& path, std::string json) { return with_json("POST", path, std::move(json)); }
  Reply put(const std::string& path, std::string json) { return with_json("PUT", path, std::move(json)); }
  Reply post(const std::string& path) { return send({.method = "POST", .path = path}); }
  Reply remove(const std::string& path) { return send({.method = "DELETE", .path = path}); }

  // One of the headers that `send` takes.
  static http::Header json_type() { return {"content-type", "application/json"}; }

  Engine& engine() { return engine_; }
  api::Api& api() { return *api_; }
  std::uint16_t port() const { return server_->port(); }
  std::uint64_t in_flight() const { return server_->stats().in_flight; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  // ---- what many tests begin with ----

  // An execution that waits for a worker; its id.
  std::string submitted(const std::string& more_keys = "");
  struct Task {
    std::string execution_id;
    std::string lease;  // the JSON object that reports carry
    std::string attempt_index;
  };
  // An execution that a worker runs.
  Task running(const std::string& more_keys = "");
  Task claimed(const std::string& lane = "default");
  // Sends one report about it; `more_keys` begins with a comma.
  Reply report(const std::string& op, const Task& task, const std::string& more_keys = "");

 private:
  void close();
  Reply with_json(const std::string& method, const std::string& path, std::string json);

  TestStore store_;
  Engine engine_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Client> client_;
};

inline const auto kHttpStores = ::testing::Values("sqlite", "postgres");
inline std::string http_store_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace flowfabric::tests
