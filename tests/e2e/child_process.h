// This very program, started again as another process, which says through a pipe what it does. It dies with
// the test that started it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace flowfabric::e2e {

// Variables that a child finds beside those of this process.
using Environment = std::map<std::string, std::string>;

class ChildProcess {
 public:
  // main.cpp knows what to do with the arguments; the last one that it gets is the end of the pipe.
  explicit ChildProcess(std::vector<std::string> arguments, Environment environment = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool is_speaking() const { return speaking_; }
  // The lines that it said since the last time, none of them cut.
  std::string take_lines();

  void kill();       // SIGKILL
  void terminate();  // SIGTERM, and waits for its end
  void wait();       // for its end
  // True if the child has closed its end of the pipe, as an ending process does.
  bool has_hung_up() const { return hung_up_; }
  bool was_killed() const;
  int exit_code() const;  // -1: it was ended by a signal
  bool ended_well() const;

 private:
  void run(std::vector<std::string> arguments, const Environment& environment, int pipe);
  void listen(int pipe);
  void end_by(int signal);

  pid_t process_{-1};
  int status_{};
  std::thread reader_;
  std::mutex mutex_;
  std::string said_;
  std::atomic<bool> speaking_{false};
  std::atomic<bool> hung_up_{false};
};

}  // namespace flowfabric::e2e
