// The functions of the C library that the recorder takes the place of. Whatever is not watched goes straight
// to the kernel.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "disk/recorder/recorder.h"

namespace {

using flowfabric::disk::give_up;
using flowfabric::disk::Recorder;

int open_any(int folder, const char* path, int flags, mode_t mode) {
  auto& recorder = Recorder::get();
  if (const auto name = recorder.watched(folder, path))
    return recorder.open(folder, path, *name, flags, mode);
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

int remove_any(int folder, const char* path, bool is_folder) {
  auto& recorder = Recorder::get();
  if (const auto name = recorder.watched(folder, path))
    return recorder.remove(folder, path, *name, is_folder);
  return static_cast<int>(syscall(SYS_unlinkat, folder, path, is_folder ? AT_REMOVEDIR : 0));
}

int rename_any(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  auto& recorder = Recorder::get();
  const auto from_name = recorder.watched(from_folder, from);
  const auto to_name = recorder.watched(to_folder, to);
  if (from_name && to_name && flags == 0)
    return recorder.rename(from_folder, from, *from_name, to_folder, to, *to_name);
  if (from_name || to_name) give_up("a rename of an unknown kind");
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int make_any(int folder, const char* path, mode_t mode) {
  auto& recorder = Recorder::get();
  if (const auto name = recorder.watched(folder, path))
    return recorder.make_folder(folder, path, *name, mode);
  return static_cast<int>(syscall(SYS_mkdirat, folder, path, mode));
}

int sync_any(int descriptor, long call) {
  auto& recorder = Recorder::get();
  return recorder.watches(descriptor) ? recorder.sync(descriptor)
                                      : static_cast<int>(syscall(call, descriptor));
}

int truncate_any(int descriptor, off_t size) {
  auto& recorder = Recorder::get();
  if (recorder.watches(descriptor)) return recorder.truncate(descriptor, size);
  return static_cast<int>(syscall(SYS_ftruncate, descriptor, size));
}

ssize_t pwrite_any(int descriptor, const void* bytes, size_t size, off_t at) {
  auto& recorder = Recorder::get();
  if (recorder.watches(descriptor)) return recorder.write(descriptor, bytes, size, at);
  return syscall(SYS_pwrite64, descriptor, bytes, size, at);
}

int allocate_any(int descriptor, int mode, off_t at, off_t size) {
  auto& recorder = Recorder::get();
  if (!recorder.watches(descriptor))
    return static_cast<int>(syscall(SYS_fallocate, descriptor, mode, at, size));
  if (mode != 0) give_up("fallocate of an unknown kind");
  return recorder.extend(descriptor, at + size);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define FF_OPEN(name)                             \
  int name(const char* path, int flags, ...) {    \
    va_list arguments;                            \
    va_start(arguments, flags);                   \
    const auto mode = mode_of(flags, arguments);  \
    va_end(arguments);                            \
    return open_any(AT_FDCWD, path, flags, mode); \
  }
#define FF_OPENAT(name)                                    \
  int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    const auto mode = mode_of(flags, arguments);           \
    va_end(arguments);                                     \
    return open_any(folder, path, flags, mode);            \
  }
FF_OPEN(open)
FF_OPEN(open64)
FF_OPENAT(openat)
FF_OPENAT(openat64)

int close(int descriptor) {
  auto& recorder = Recorder::get();
  return recorder.watches(descriptor) ? recorder.close(descriptor)
                                      : static_cast<int>(syscall(SYS_close, descriptor));
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  auto& recorder = Recorder::get();
  if (recorder.watches(descriptor)) return recorder.write(descriptor, bytes, size, std::nullopt);
  return syscall(SYS_write, descriptor, bytes, size);
}
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t at) {
  return pwrite_any(descriptor, bytes, size, at);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t at) {
  return pwrite_any(descriptor, bytes, size, at);
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (!Recorder::get().watches(descriptor)) return syscall(SYS_writev, descriptor, parts, count);
  // May be short, as it always may.
  return count > 0 ? write(descriptor, parts[0].iov_base, parts[0].iov_len) : 0;
}

int ftruncate(int descriptor, off_t size) noexcept {
  return truncate_any(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) noexcept {
  return truncate_any(descriptor, size);
}
int fallocate(int descriptor, int mode, off_t at, off_t size) {
  return allocate_any(descriptor, mode, at, size);
}
int fallocate64(int descriptor, int mode, off64_t at, off64_t size) {
  return allocate_any(descriptor, mode, at, size);
}
int posix_fallocate(int descriptor, off_t at, off_t size) {
  return allocate_any(descriptor, 0, at, size) == 0 ? 0 : errno;
}
int posix_fallocate64(int descriptor, off64_t at, off64_t size) {
  return posix_fallocate(descriptor, at, size);
}

int fsync(int descriptor) {
  return sync_any(descriptor, SYS_fsync);
}
int fdatasync(int descriptor) {
  return sync_any(descriptor, SYS_fdatasync);
}

int unlink(const char* path) noexcept {
  return remove_any(AT_FDCWD, path, false);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_any(folder, path, (flags & AT_REMOVEDIR) != 0);
}
int rmdir(const char* path) noexcept {
  return remove_any(AT_FDCWD, path, true);
}
int remove(const char* path) noexcept {
  const int code = unlink(path);
  return code != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : code;
}
int rename(const char* from, const char* to) noexcept {
  return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_any(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return rename_any(from_folder, from, to_folder, to, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return make_any(AT_FDCWD, path, mode);
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return make_any(folder, path, mode);
}

// The entry point by which a process writes its marks. Found by dlsym.
void ff_disk_mark(const char* text, size_t size) {
  Recorder::get().mark({text, size});
}
}

namespace {
// Before anything is opened.
__attribute__((constructor)) void start() {
  Recorder::get();
}
}  // namespace
