// A thread pool for jobs that other threads must not wait for. Jobs start in order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio {
class thread_pool;
}

namespace flowfabric::api {

class Pool {
 public:
  explicit Pool(std::size_t threads);
  ~Pool();  // runs the remaining jobs

  void run(std::function<void()> job);

 private:
  std::unique_ptr<boost::asio::thread_pool> threads_;
};

}  // namespace flowfabric::api
