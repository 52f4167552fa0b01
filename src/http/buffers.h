// Buffers of a connection: received bytes that are not parsed yet, and bytes that wait to be written. Empty
// buffers own no memory, because most connections are idle most of the time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/message.h"

namespace flowfabric::http {

class Inbox {
 public:
  std::string_view bytes() const { return std::string_view(bytes_).substr(taken_); }
  std::size_t size() const { return bytes_.size() - taken_; }
  bool empty() const { return size() == 0; }

  void add(std::string_view bytes) {
    // Consumed bytes are dropped only now and then; otherwise consuming many small pieces would be slow.
    if (taken_ > bytes_.size() / 2) bytes_.erase(0, std::exchange(taken_, 0));
    bytes_.append(bytes);
  }
  void take(std::size_t count) {
    taken_ += count;
    if (empty()) clear();
  }
  void clear() {
    free_text(bytes_);
    taken_ = 0;
  }
  std::size_t capacity() const { return bytes_.capacity(); }

 private:
  std::string bytes_;
  std::size_t taken_{0};
};

class Outbox {
 public:
  bool empty() const { return parts_.empty(); }
  // The next two parts, for one gathering write.
  std::string_view first() const { return part(0).substr(written_); }
  std::string_view second() const { return parts_.size() > 1 ? part(1) : std::string_view{}; }

  // Small parts are joined, so that they travel together.
  void add(std::string bytes) {
    if (!parts_.empty() && parts_.back().size() + bytes.size() <= kJoined)
      parts_.back() += bytes;
    else if (!bytes.empty())
      parts_.push_back(std::move(bytes));
  }
  void written(std::size_t count) {
    written_ += count;
    while (!parts_.empty() && written_ >= parts_.front().size()) {
      written_ -= parts_.front().size();
      parts_.erase(parts_.begin());
    }
    if (parts_.empty()) clear();
  }
  void clear() { parts_ = std::vector<std::string>{}, written_ = 0; }

 private:
  static constexpr std::size_t kJoined = 16u << 10;  // as much as one record of TLS

  std::string_view part(std::size_t number) const { return parts_[number]; }

  std::vector<std::string> parts_;
  std::size_t written_{0};  // of the first part
};

}  // namespace flowfabric::http
