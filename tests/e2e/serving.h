// `flowfabric serve` as a process of its own, on a free port. It dies with the test that started it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace flowfabric::e2e {

class Serving {
 public:
  // Waits until it listens. Throws if it does not. `open_files`: how many it may have; 0: as many as the
  // test.
  explicit Serving(const std::string& store_url, const std::vector<std::string>& more_arguments = {},
                   const std::string& address = "127.0.0.1:0", std::size_t open_files = 0);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  const std::string& url() const { return url_; }
  pid_t process() const { return process_; }
  std::uint16_t port() const;
  std::string said() const;
  // The command line as every user of the machine sees it.
  std::string command_line() const;
  std::size_t memory() const;                        // in bytes, as it is resident
  std::chrono::milliseconds processor_time() const;  // that it has used so far

  void signal(int number) const;
  // Its exit code, once it has ended; absent: it has not within the time, or was killed.
  std::optional<int> wait(std::chrono::milliseconds time);

 private:
  void listen(int pipe);

  pid_t process_{-1};
  bool ended_{false};
  std::string url_;
  std::thread reader_;
  mutable std::mutex mutex_;
  std::string said_;
};

}  // namespace flowfabric::e2e
