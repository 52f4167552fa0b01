// The tests' side of a trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "disk/trace_format.h"

namespace flowfabric::disk {

struct Event {
  std::uint64_t position;
  EventKind kind;
  bool is_durable;
  std::uint32_t file;
  std::uint64_t offset;
  std::uint64_t extra;
  std::string_view text;
};

// For people.
std::string text_of(const Event& event);

class Trace {
 public:
  // Makes an empty one, or opens one that somebody kept.
  static Trace make(const std::string& path);
  static Trace open(const std::string& path);
  Trace(Trace&& other) noexcept;
  Trace& operator=(Trace&&) = delete;
  ~Trace();

  const std::string& path() const { return path_; }
  const TraceHeader& header() const { return *reinterpret_cast<const TraceHeader*>(base_); }
  // After the process has ended, however it did: finds out in the folder whether the call happened that it
  // was in the middle of, and reads what is new.
  void settle(const std::string& folder);
  const std::vector<Event>& events() const { return events_; }
  std::size_t count(EventKind kind) const;
  // Whether an event that the process has finished says this; may be asked while it runs.
  bool has_mark(char first_letter) const;
  void copy_to(const std::string& path) const;
  // Says what was said in another trace, before the first process of this one begins.
  void add_mark(std::string_view text);

 private:
  Trace(std::string path, char* base, std::uint64_t bytes)
      : path_(std::move(path)), base_(base), bytes_(bytes) {}
  const EventHeader& at(std::uint64_t position) const {
    return *reinterpret_cast<const EventHeader*>(base_ + position);
  }
  std::string_view text_at(std::uint64_t position) const {
    return {base_ + position + sizeof(EventHeader), at(position).text_size};
  }
  void read();
  bool has_happened(EventHeader& event, const std::string& folder) const;
  std::string name_of(std::uint32_t file) const;

  std::string path_;
  char* base_;
  std::uint64_t bytes_;
  std::uint64_t read_up_to_{0};
  std::vector<Event> events_;
};

}  // namespace flowfabric::disk
