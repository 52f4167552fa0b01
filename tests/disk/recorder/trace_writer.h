// The recorder's side of the trace.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "disk/trace_format.h"

namespace flowfabric::disk {

class TraceWriter {
 public:
  // Goes on where the last process has stopped. Gives up the process when there is no such file.
  void open(const char* path);
  TraceHeader& header() const { return *reinterpret_cast<TraceHeader*>(base_); }
  std::uint64_t first() const { return sizeof(TraceHeader); }
  std::uint64_t end() const { return header().end.load(std::memory_order_relaxed); }
  EventHeader& at(std::uint64_t position) const { return *reinterpret_cast<EventHeader*>(base_ + position); }
  std::string_view text_of(const EventHeader& event) const {
    return {reinterpret_cast<const char*>(&event + 1), event.text_size};
  }
  std::string_view old_of(const EventHeader& event) const {
    return {reinterpret_cast<const char*>(&event + 1) + event.text_size, event.old_size};
  }

  // Writes the event behind the end, where the reader knows that it may or may not have happened.
  EventHeader& begin(EventKind kind, std::uint32_t file, std::string_view text, std::string_view old = {});
  // Confirms the call. Returns its place.
  std::uint64_t finish(const EventHeader& event);
  // Withdraws the call.
  void forget() { header().begun.store(end()); }

  std::uint64_t add(EventKind kind, std::uint32_t file, std::string_view text, std::uint64_t extra = 0) {
    auto& event = begin(kind, file, text);
    event.extra = extra;
    return finish(event);
  }

 private:
  char* base_{nullptr};
};

[[noreturn]] void give_up(const char* why);

}  // namespace flowfabric::disk
