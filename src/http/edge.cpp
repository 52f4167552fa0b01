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
    // Nobody is left to be notified.
  }
}

std::shared_ptr<Address> Edge::enter(const std::string& name, bool is_trusted) {
  std::lock_guard lock(mutex_);
  auto& address = addresses_[name];
  if (address == nullptr) {
    address = std::make_shared<Address>();
    address->name = name;
    address->is_trusted = is_trusted;
  }
  if (!is_trusted && address->connections >= options.max_connections_per_address) return nullptr;
  ++address->connections;
  return address;
}

void Edge::leave(const std::shared_ptr<Address>& address) {
  std::lock_guard lock(mutex_);
  if (--address->connections == 0) addresses_.erase(address->name);
}

bool Edge::take_request(Address& address) const {
  if (address.requests.fetch_add(1) < options.max_requests_per_address || address.is_trusted) return true;
  --address.requests;
  return false;
}

bool Edge::is_full_for(const Address& address) const {
  return held_bytes > options.max_body_memory ||
         (!address.is_trusted && address.bytes > options.max_body_memory / 4);
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

std::vector<Waiting> Edge::waiting_longest(std::size_t most) const {
  std::vector<Waiting> found;
  std::vector<Waiting> of_vital;
  {
    std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) {
      const auto since = connection->waits_since();
      if (since == SteadyTime::max()) continue;
      (connection->is_for_vital_requests() ? of_vital : found).push_back({connection, since});
    }
  }
  if (found.empty()) found.swap(of_vital);
  const auto is_older = [](const Waiting& a, const Waiting& b) { return a.since < b.since; };
  most = std::min(most, found.size());
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(most), is_older);
  found.resize(most);
  std::ranges::reverse(found);
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
