#include "engine/watchers.h"

#include <algorithm>

#include "model/describe.h"

namespace flowfabric::engine {

namespace {

constexpr auto kSafetyLook = std::chrono::seconds(5);
constexpr char kMark = 0x01;

}  // namespace

std::string stream_of(const ExecutionId& id) {
  return kMark + id.to_string();
}

std::string feed_of(EventFamily family) {
  return kMark + std::string(enum_name(family));
}

bool is_watchable(const std::string& name) {
  return name.starts_with(kMark);
}

Error too_many_wait() {
  return {ErrorCode::resource_exhausted, "watchers",
          "Too many wait for frames or events, or the engine stops: ask again later, or without waiting."};
}

Watchers::Watchers(std::size_t limit, bool others_write)
    : limit_(limit), others_write_(others_write), thread_([this] { loop(); }) {}

Watchers::~Watchers() {
  stop();
}

bool Watchers::watch(std::string name, SteadyTime until, Look look) {
  std::lock_guard lock(mutex_);
  if (stopping_ || waiting_.size() >= limit_) return false;
  // It is there before it looks, so that nothing is missed in between.
  waiting_.push_back({std::move(name), until, std::move(look)});
  const auto place = std::prev(waiting_.end());
  by_name_.emplace(place->name, place);
  by_time_.emplace(until, place);
  woken_.push_back(place);
  count_ = waiting_.size();
  changed_.notify_one();
  return true;
}

void Watchers::wake(Place place) {
  if (!std::exchange(place->is_woken, true)) woken_.push_back(place);
}

void Watchers::wake(const std::vector<std::string>& names) {
  if (!are_there()) return;
  std::lock_guard lock(mutex_);
  for (const auto& name : names) {
    const auto [first, last] = by_name_.equal_range(name);
    for (auto it = first; it != last; ++it) wake(it->second);
  }
  if (!woken_.empty()) changed_.notify_one();
}

void Watchers::wake_all() {
  if (!are_there()) return;
  std::lock_guard lock(mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) wake(it);
  changed_.notify_one();
}

void Watchers::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchers::remove(Place place) {
  const auto drop = [&](auto& map, const auto& key) {
    const auto [first, last] = map.equal_range(key);
    map.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == place; }));
  };
  drop(by_name_, place->name);
  drop(by_time_, place->until);
  // It may have been woken again while it looked.
  std::erase(woken_, place);
  waiting_.erase(place);
  count_ = waiting_.size();
}

// Only this thread removes, so that the places stay valid while nobody holds the lock.
void Watchers::take_looks(const std::vector<Place>& woken) {
  for (const auto place : woken) {
    bool last = false;
    {
      std::lock_guard lock(mutex_);
      last = stopping_ || std::chrono::steady_clock::now() >= place->until;
    }
    if (!place->look(last)) continue;
    std::lock_guard lock(mutex_);
    remove(place);
  }
}

void Watchers::loop() {
  std::unique_lock lock(mutex_);
  auto safety = std::chrono::steady_clock::now() + kSafetyLook;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    for (auto it = by_time_.begin(); it != by_time_.end() && (stopping_ || it->first <= now); ++it) {
      wake(it->second);
    }
    if (others_write_ && now >= safety) {
      for (auto it = waiting_.begin(); it != waiting_.end(); ++it) wake(it);
      safety = now + kSafetyLook;
    }
    if (!woken_.empty()) {
      const auto woken = std::exchange(woken_, {});
      for (const auto place : woken) place->is_woken = false;
      lock.unlock();
      take_looks(woken);
      lock.lock();
      continue;
    }
    if (stopping_) return;
    auto until = by_time_.empty() ? SteadyTime::max() : by_time_.begin()->first;
    if (others_write_ && !waiting_.empty()) until = std::min(until, safety);
    if (until == SteadyTime::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, until);
  }
}

}  // namespace flowfabric::engine
