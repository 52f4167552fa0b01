// A thread pool for jobs that other threads must not wait for. Jobs start in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace flowfabric::api {

class Pool {
 public:
  explicit Pool(std::size_t threads);
  ~Pool();  // runs the remaining jobs

  void run(std::function<void()> job);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace flowfabric::api
