// Requests that ask for as much trouble as fits into them: each at the size limit of its route.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace flowfabric::e2e {

// A worker's task, which some of them report about.
struct HostileTask {
  std::string execution_id;
  std::string lease;  // the JSON object that reports carry
};

struct HostileRequest {
  std::string name;
  std::string method;
  std::string path;
  std::function<std::string(const HostileTask&)> body;  // JSON; empty: none
  // The allowed first digits of the status: "4" for any refusal, "201", "2" where it is asked for politely.
  std::string status{"4"};
};

std::vector<HostileRequest> hostile_executions();
std::vector<HostileRequest> hostile_bulks();
std::vector<HostileRequest> hostile_flows();
std::vector<HostileRequest> hostile_reports();
std::vector<HostileRequest> hostile_settings();
std::vector<HostileRequest> hostile_questions();

// Bytes that are no ordinary request, sent as they are; the server answers once.
struct HostileBytes {
  std::string name;
  std::string bytes;
  std::string status{"4"};
};
std::vector<HostileBytes> hostile_bytes();

}  // namespace flowfabric::e2e
