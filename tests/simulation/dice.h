// Random choices that a seed repeats.
#pragma once

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <string>

#include "model/random.h"

namespace flowfabric::simulation {

// Keeps the latest, with the very latest first.
template <class T>
void remember(std::deque<T>& list, T value, std::size_t most) {
  list.push_front(std::move(value));
  if (list.size() > most) list.pop_back();
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t next() { return random_.next(); }
  std::int64_t below(std::int64_t bound) { return between(0, bound - 1); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.between(0, static_cast<std::uint64_t>(high - low)));
  }
  bool chance(int percent) { return below(100) < percent; }

  template <class Container>
  const auto& pick(const Container& container) {
    return container[static_cast<std::size_t>(below(static_cast<std::int64_t>(container.size())))];
  }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  // Picks from a list with the latest first, and prefers late ones.
  template <class Container>
  const auto& pick_late(const Container& container, std::int64_t late) {
    const auto size = static_cast<std::int64_t>(container.size());
    return container[static_cast<std::size_t>(below(chance(75) ? std::min(size, late) : size))];
  }

  // "w3"
  std::string name(const std::string& prefix, std::int64_t count) {
    return prefix + std::to_string(below(count));
  }
  std::string bytes(std::int64_t most) {
    std::string text(static_cast<std::size_t>(below(most + 1)), '\0');
    for (auto& c : text) c = static_cast<char>(below(256));
    return text;
  }
  Uuid uuid(std::int64_t now_ms) { return mint_uuid(now_ms, random_); }

 private:
  Random random_;
};

}  // namespace flowfabric::simulation
