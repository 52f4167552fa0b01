// A few threads that do what others must not wait for, in the order in which they are asked.
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
  ~Pool();  // does what is left

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
