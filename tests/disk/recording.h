// Runs a child process under the recorder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "disk/trace.h"
#include "e2e/child_process.h"
#include "support/temporary_folder.h"

namespace flowfabric::disk {

// Calls that fail: see FF_DISK_FAIL.
struct Failing {
  std::string call;  // one of kCallNames, "any", or a site
  std::uint64_t first{1};
  std::uint64_t count{1};
  int reason{};
  std::string how{"keep"};
};

struct Settings {
  std::optional<Failing> failing{};
  std::string skipped_sites{};  // with spaces between them
  bool keeps_old{false};
};

// A folder, and the trace of all processes that have worked on it.
class Recording {
 public:
  Recording() : trace_(Trace::make(place_.file("trace"))) { make_folder(); }

  std::string folder() const { return place_.file("disk"); }
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

  // The environment of a process under the recorder.
  e2e::Environment environment(const Settings& settings) const;
  std::unique_ptr<e2e::ChildProcess> start(std::vector<std::string> arguments,
                                           const Settings& settings = {}) const;
  // After the child is gone. Fails the running test if something was written that is not in the trace.
  void settle();

 private:
  void make_folder() const;

  tests::TemporaryFolder place_;
  Trace trace_;
};

}  // namespace flowfabric::disk
