#include "http/edge.h"

#include <algorithm>
#include <iterator>

#include "http/connection.h"

namespace flowfabric::http {

void Edge::notice(const std::string& what) const {
  if (!options.notice) return;
  try {
    options.notice(what);
  } catch (...) {
    // There is nobody left to be told.
  }
}

bool Edge::add(std::shared_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  if (is_closing_) return false;
  connections_.insert(std::move(connection));
  return true;
}

void Edge::remove(const std::shared_ptr<Connection>& connection) {
  std::lock_guard lock(mutex_);
  connections_.erase(connection);
  if (connections_.empty()) removed_.notify_all();
}

std::size_t Edge::connections() const {
  std::lock_guard lock(mutex_);
  return connections_.size();
}

std::vector<std::shared_ptr<Connection>> Edge::all() const {
  std::lock_guard lock(mutex_);
  return {connections_.begin(), connections_.end()};
}

std::vector<std::shared_ptr<Connection>> Edge::overdue(SteadyTime now) const {
  std::vector<std::shared_ptr<Connection>> found;
  std::lock_guard lock(mutex_);
  std::ranges::copy_if(connections_, std::back_inserter(found),
                       [&](const auto& connection) { return connection->is_overdue(now); });
  return found;
}

void Edge::begin_closing() {
  std::lock_guard lock(mutex_);
  is_closing_ = true;
}

bool Edge::wait_until_empty(SteadyTime until) {
  std::unique_lock lock(mutex_);
  return removed_.wait_until(lock, until, [&] { return connections_.empty(); });
}

}  // namespace flowfabric::http
