// A worker that has suspended its execution, and those who wake it.
#pragma once

#include <optional>

#include "http_checks.h"

namespace flowfabric::tests {

class HttpSuspensionTest : public HttpTest {
 protected:
  struct Waiting {
    Task task;
    std::string waitpoint_id;
    std::string waitpoint_key;
    std::string token;

    std::string path(const std::string& what = "") const {
      return "/v1/executions/" + task.execution_id + what;
    }
    std::string token_path() const { return path("/waitpoints/" + waitpoint_id + "/token"); }
  };
  static Waiting waiting(Task task, const Reply& reply, const std::string& where) {
    return {std::move(task), reply.at(where + "/waitpoint_id"), reply.at(where + "/waitpoint_key"),
            reply.at(where + "/token")};
  }

  // A condition that waits for a signal of this name.
  static std::string by_name(const std::string& name, const std::string& key = "gate") {
    return R"({"Single":{"waitpoint_key":")" + key + R"(","matcher":{"ByName":")" + name + "\"}}}";
  }
  static std::string any(const std::string& key = "gate") {
    return R"({"Single":{"waitpoint_key":")" + key + R"(","matcher":"Wildcard"}})";
  }
  static std::string under(const std::string& condition) { return R"(,"resume_condition":)" + condition; }

  // Suspends an execution that a worker runs; `more_keys` go into the report.
  Waiting suspend(const Task& task, const std::string& more_keys = "") {
    const auto reply = report("suspend", task, more_keys);
    if (reply.status != 200) throw std::runtime_error("not suspended: " + reply.body);
    return waiting(task, reply, "/waitpoints/0");
  }
  Waiting suspended(const std::string& more_keys = under(any())) { return suspend(running(), more_keys); }
  Waiting pending(const Task& task, const std::string& more_keys = "") {
    const auto reply = report("create_waitpoint", task, more_keys);
    if (reply.status != 200) throw std::runtime_error("no waitpoint: " + reply.body);
    return waiting(task, reply, "");
  }

  // With every key that the reference wants; a new id each time.
  std::string signal(const Waiting& to, const std::string& name, const std::string& more_keys = "") {
    return R"({"execution_id":")" + to.task.execution_id + R"(","waitpoint_id":")" + to.waitpoint_id +
           R"(","signal_id":")" + next_signal_id() + R"(","signal_name":")" + name +
           R"(","signal_category":"human_review","source_type":"human","source_identity":"ann",)" +
           R"("target_scope":"execution","waitpoint_token":")" + to.token + R"(","now":1767225603000)" +
           more_keys + "}";
  }
  Reply deliver(const Waiting& to, const std::string& name = "approve", const std::string& more_keys = "") {
    return post(to.path("/signal"), signal(to, name, more_keys));
  }
  std::string effect(const Waiting& to, const std::string& name = "approve",
                     const std::string& more_keys = "") {
    return deliver(to, name, more_keys).at("/Accepted/effect");
  }
  std::string state(const Waiting& of) { return get(of.path("/state")).at(""); }
  std::string last_signal_id() const { return signal_id(signals_); }

 private:
  static std::string signal_id(int number) {
    return "44444444-4444-4444-8444-" + std::to_string(100'000'000'000 + number);
  }
  std::string next_signal_id() { return signal_id(++signals_); }
  int signals_{0};
};

}  // namespace flowfabric::tests
