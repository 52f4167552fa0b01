// The marks of a process up to a point of its trace.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "disk/trace.h"
#include "e2e/kill_checks.h"

namespace flowfabric::disk {

class Witness {
 public:
  explicit Witness(const Trace& trace) : trace_(trace) {}

  void advance_to(std::size_t event);

  const e2e::Ledger& ledger() const { return ledger_; }
  // By which event each execution was first asked for.
  const std::map<std::string, std::size_t>& asked() const { return asked_; }
  // Whose creation was refused as certainly not stored.
  const std::set<std::string>& refused() const { return refused_; }
  // Contradictions, such as an execution that was handed out twice.
  const std::vector<std::string>& complaints() const { return complaints_; }
  const Trace& trace() const { return trace_; }
  // Executions that were on disk for certain before.
  void must_have(std::set<std::string> stored) { stored_ = std::move(stored); }
  const std::set<std::string>& stored() const { return stored_; }

 private:
  const Trace& trace_;
  std::size_t next_{0};
  e2e::Ledger ledger_;
  std::map<std::string, std::size_t> asked_;
  std::set<std::string> refused_;
  std::vector<std::string> complaints_;
  std::set<std::string> stored_;
};

}  // namespace flowfabric::disk
