#include "api/pool.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace flowfabric::api {

Pool::Pool(std::size_t threads) : threads_(std::make_unique<boost::asio::thread_pool>(threads)) {}

Pool::~Pool() {
  threads_->join();
}

void Pool::run(std::function<void()> job) {
  boost::asio::post(*threads_, std::move(job));
}

}  // namespace flowfabric::api
