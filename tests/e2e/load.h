// Submitters and workers on an engine of this process, which go on while a test makes trouble.
#pragma once

#include <mutex>
#include <thread>

#include "e2e/kill_checks.h"
#include "e2e/workload.h"

namespace flowfabric::e2e {

class Load {
 public:
  // Throws when the engine cannot be opened.
  explicit Load(const std::string& url, const std::string& name = "load");
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  Engine& engine() { return engine_; }
  // True if it completes this many more executions in reasonable time.
  bool goes_on(std::size_t more = 50);
  void stop_submitting();
  // Stops submitting, and waits until everything on the lanes has ended, also what others submitted.
  bool finish();

  // The acknowledged operations so far, and the contradictions among them.
  Ledger ledger() const;
  std::vector<std::string> complaints() const;
  std::size_t repeats() const { return workload_.repeats(); }

 private:
  void submit();
  void stop();
  void note(const std::string& line);
  // The number of executions on the lanes that have not ended; absent if it cannot be read now.
  std::optional<std::int64_t> open();

  Engine engine_;
  mutable std::mutex mutex_;
  Ledger ledger_;
  std::vector<std::string> complaints_;
  Workload workload_;
  std::atomic<bool> submitting_{true};
  std::vector<std::thread> submitters_;
  std::vector<std::thread> workers_;
};

}  // namespace flowfabric::e2e
