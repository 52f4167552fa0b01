// The kernel's calls, past whatever intercepts the library's functions, ourselves above all.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace flowfabric::disk {

template <class... Arguments>
long really(long number, Arguments... arguments) {
  return syscall(number, arguments...);
}

inline off_t size_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_size : 0;
}

}  // namespace flowfabric::disk
