// The marks that a process writes into the trace, between the calls that change its files.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <string>

namespace flowfabric::disk {

// Does nothing in a process without the recorder.
inline void mark(const std::string& text) {
  using Mark = void (*)(const char*, std::size_t);
  static const auto recorder = reinterpret_cast<Mark>(dlsym(RTLD_DEFAULT, "ff_disk_mark"));
  if (recorder != nullptr) recorder(text.data(), text.size());
}

}  // namespace flowfabric::disk
