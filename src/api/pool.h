// A few threads that do what others must not wait for, in the order in which they are asked.
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
  ~Pool();  // does what is left

  void run(std::function<void()> job);

 private:
  std::unique_ptr<boost::asio::thread_pool> threads_;
};

}  // namespace flowfabric::api
