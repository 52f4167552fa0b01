#include "disk/recorder/trace_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace flowfabric::disk {

void give_up(const char* why) {
  static_cast<void>(syscall(SYS_write, 2, "recorder: ", 10));
  static_cast<void>(syscall(SYS_write, 2, why, std::strlen(why)));
  static_cast<void>(syscall(SYS_write, 2, "\n", 1));
  std::abort();
}

void TraceWriter::open(const char* path) {
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (file < 0) give_up("there is no trace to write to");
  void* const mapped =
      mmap(nullptr, kTraceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (mapped == MAP_FAILED) give_up("the trace cannot be mapped");
  syscall(SYS_close, file);
  base_ = static_cast<char*>(mapped);
  auto& found = header();
  if (found.end == 0) found.end = found.begun = first();
  if (found.begun != found.end) give_up("the last process of the trace has left something open");
  for (auto& calls : found.calls) calls = 0;
  found.failed = 0;
}

EventHeader& TraceWriter::begin(EventKind kind, std::uint32_t file, std::string_view text,
                                std::string_view old) {
  const auto position = end();
  const auto size = (sizeof(EventHeader) + text.size() + old.size() + 7) / 8 * 8;
  if (position + size > kTraceBytes) {
    header().is_full = 1;
    give_up("the trace is full");
  }
  auto& event = at(position);
  event = {.size = size,
           .kind = kind,
           .flags = 0,
           .unused = 0,
           .file = file,
           .offset = 0,
           .text_size = text.size(),
           .old_size = old.size(),
           .extra = 0};
  auto* const bytes = reinterpret_cast<char*>(&event + 1);
  if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
  if (!old.empty()) std::memcpy(bytes + text.size(), old.data(), old.size());
  header().begun.store(position + size);
  return event;
}

std::uint64_t TraceWriter::finish(const EventHeader& event) {
  const auto position = end();
  header().end.store(position + event.size);
  header().begun.store(position + event.size);
  return position;
}

}  // namespace flowfabric::disk
