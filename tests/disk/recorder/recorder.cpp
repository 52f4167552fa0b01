#include "disk/recorder/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "disk/recorder/real_calls.h"

namespace flowfabric::disk {

namespace {

constexpr useconds_t kBeforeOneIsTold = 3000;

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

std::string read_range(int descriptor, std::uint64_t at, std::size_t size) {
  std::string bytes(size, '\0');
  const auto got = pread(descriptor, bytes.data(), size, static_cast<off_t>(at));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

Recorder& Recorder::get() {
  static auto* const only = new Recorder;  // threads may still write when the process ends
  return *only;
}

Recorder::Recorder() {
  const char* const folder = std::getenv(kFolderVariable);
  const char* const trace = std::getenv(kTraceVariable);
  if (folder == nullptr || trace == nullptr) return;
  prepare_sites();
  trace_.open(trace);
  folder_ = folder;
  keeps_old_ = std::getenv(kKeepOldVariable) != nullptr;
  read_skipped();
  read_failing();
  if (!remember_names()) note_what_is_there("");
  trace_.add(EventKind::start, 0, {});
}

// Reads the state that earlier processes have left. False if there was none.
bool Recorder::remember_names() {
  bool is_first = true;
  for (auto position = trace_.first(); position < trace_.end(); position += trace_.at(position).size) {
    const auto& event = trace_.at(position);
    const std::string text(
        trace_.text_of(event).substr(0, event.kind == EventKind::write ? 0 : std::string::npos));
    if (event.kind == EventKind::start) is_first = false;
    if (event.kind == EventKind::create) files_[text] = event.file;
    if (event.kind == EventKind::unlink) files_.erase(text);
    if (event.kind != EventKind::rename) continue;
    const auto middle = text.find('\0');
    const auto from = files_.find(text.substr(0, middle));
    files_[text.substr(middle + 1)] = from->second;
    files_.erase(from);
  }
  return !is_first;
}

// Files that exist before the first process begins are on the disk.
void Recorder::note_what_is_there(const std::string& name) {
  DIR* const folder = opendir(path_of(name).c_str());
  if (folder == nullptr) give_up("the folder cannot be read");
  while (const dirent* entry = readdir(folder)) {
    const std::string word = entry->d_name;
    const auto full = name.empty() ? word : name + "/" + word;
    if (word == "." || word == ".." || !is_watched_name(full)) continue;
    struct stat status {};
    if (lstat(path_of(full).c_str(), &status) != 0) give_up("a file cannot be looked at");
    const bool is_folder = S_ISDIR(status.st_mode);
    const auto file = is_folder ? 0 : ++trace_.header().last_file;
    auto& created = trace_.begin(is_folder ? EventKind::make_folder : EventKind::create, file, full);
    created.flags = kDurable;
    trace_.finish(created);
    if (is_folder) {
      note_what_is_there(full);
      continue;
    }
    files_[full] = file;
    const auto descriptor = static_cast<int>(really(SYS_openat, AT_FDCWD, path_of(full).c_str(), O_RDONLY));
    auto& written = trace_.begin(EventKind::write, file,
                                 read_range(descriptor, 0, static_cast<std::size_t>(status.st_size)));
    written.flags = kDurable;
    trace_.finish(written);
    really(SYS_close, descriptor);
  }
  closedir(folder);
}

// ---- which files ----

std::optional<std::string> Recorder::watched(int folder, const char* path) {
  if (folder_.empty() || path == nullptr) return std::nullopt;
  std::string full = path;
  if (full.empty()) return std::nullopt;
  if (full[0] != '/' && folder != AT_FDCWD) {
    Lock lock(mutex_);
    const auto entry = descriptors_.find(folder);
    if (entry == descriptors_.end()) return std::nullopt;
    full = path_of(entry->second.name) + "/" + full;
  }
  while (full.size() > 1 && full.back() == '/') full.pop_back();
  if (full == folder_) return "";
  if (full.compare(0, folder_.size(), folder_) != 0 || full[folder_.size()] != '/') return std::nullopt;
  auto name = full.substr(folder_.size() + 1);
  return is_watched_name(name) ? std::optional(std::move(name)) : std::nullopt;
}

bool Recorder::watches(int descriptor) const {
  return descriptor >= 0 && descriptor < kMostDescriptors && is_watched_[descriptor];
}

std::uint32_t Recorder::file_of(const std::string& name) {
  const auto file = files_.find(name);
  if (file == files_.end()) give_up(("nobody has seen how this file was made: " + name).c_str());
  return file->second;
}

void Recorder::enter(int descriptor, Descriptor entry) {
  if (descriptor >= kMostDescriptors) give_up("too many files are open");
  entry.failures_told = failed_syncs_[entry.file];
  descriptors_[descriptor] = std::move(entry);
  is_watched_[descriptor] = true;
}

// ---- the calls ----

int Recorder::open(int folder, const char* path, const std::string& name, int flags, mode_t mode) {
  if ((flags & (O_SYNC | O_DSYNC)) != 0) give_up("writes that sync by themselves are not understood");
  Lock lock(mutex_);
  struct stat status {};
  const bool is_there = lstat(path_of(name).c_str(), &status) == 0;
  const bool creates = !is_there && (flags & O_CREAT) != 0;
  const bool empties = is_there && (flags & O_TRUNC) != 0 && status.st_size > 0;
  if (creates && judge(Call::create, name) != Verdict::pass) return fail();
  EventHeader* event = nullptr;
  if (creates) event = &trace_.begin(EventKind::create, trace_.header().last_file + 1, name);
  if (empties) event = &trace_.begin(EventKind::truncate, file_of(name), {});
  const auto descriptor = static_cast<int>(really(SYS_openat, folder, path, flags, mode));
  if (descriptor < 0) {
    if (event != nullptr) trace_.forget();
    return descriptor;
  }
  if (creates) files_[name] = ++trace_.header().last_file;
  if (event != nullptr) trace_.finish(*event);
  enter(descriptor, {is_there && S_ISDIR(status.st_mode) ? 0 : file_of(name), name});
  return descriptor;
}

int Recorder::close(int descriptor) {
  Lock lock(mutex_);
  is_watched_[descriptor] = false;
  descriptors_.erase(descriptor);
  return static_cast<int>(really(SYS_close, descriptor));
}

ssize_t Recorder::write_bytes(int descriptor, const Descriptor& entry, std::string_view bytes,
                              std::optional<off_t> at) {
  const bool appends = (fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  const auto place = static_cast<std::uint64_t>(appends ? size_of(descriptor)
                                                : at    ? *at
                                                        : lseek(descriptor, 0, SEEK_CUR));
  std::string old;
  if (keeps_old_) {
    const int readable =
        static_cast<int>(really(SYS_openat, AT_FDCWD, path_of(entry.name).c_str(), O_RDONLY));
    if (readable >= 0) old = read_range(readable, place, bytes.size());
    really(SYS_close, readable);
  }
  auto& event = trace_.begin(EventKind::write, entry.file, bytes, old);
  event.offset = place;
  const auto written = at ? really(SYS_pwrite64, descriptor, bytes.data(), bytes.size(), *at)
                          : really(SYS_write, descriptor, bytes.data(), bytes.size());
  if (written <= 0) {
    trace_.forget();
    return written;
  }
  if (const auto count = static_cast<std::size_t>(written); count < bytes.size()) {
    auto* const begin = reinterpret_cast<char*>(&event + 1);
    std::memmove(begin + count, begin + bytes.size(), old.size());
    event.text_size = count;
    event.old_size = std::min(count, old.size());
  }
  trace_.finish(event);
  return written;
}

ssize_t Recorder::write(int descriptor, const void* bytes, std::size_t size, std::optional<off_t> at) {
  Lock lock(mutex_);
  const auto entry = descriptors_.at(descriptor);
  const auto verdict = judge(Call::write, entry.name);
  if (verdict == Verdict::fail) return fail();
  const auto count = verdict == Verdict::half && size > 1 ? size / 2 : size;
  return write_bytes(descriptor, entry, {static_cast<const char*>(bytes), count}, at);
}

int Recorder::truncate(int descriptor, off_t size) {
  Lock lock(mutex_);
  const auto& entry = descriptors_.at(descriptor);
  if (judge(Call::truncate, entry.name) != Verdict::pass) return fail();
  auto& event = trace_.begin(EventKind::truncate, entry.file, {});
  event.offset = static_cast<std::uint64_t>(size);
  const auto code = static_cast<int>(really(SYS_ftruncate, descriptor, size));
  if (code == 0)
    trace_.finish(event);
  else
    trace_.forget();
  return code;
}

int Recorder::extend(int descriptor, off_t size) {
  {
    Lock lock(mutex_);
    if (size_of(descriptor) >= size) return 0;
  }
  return truncate(descriptor, size);
}

void Recorder::note_site(const Site& site) {
  if (sites_.insert(site.number).second) trace_.add(EventKind::site, 0, site.text, site.number);
}

int Recorder::sync(int descriptor) {
  pthread_mutex_lock(&mutex_);
  const auto entry = descriptors_.at(descriptor);
  const auto nap = static_cast<useconds_t>(120 + (naps_++ * 7919) % 300);
  pthread_mutex_unlock(&mutex_);
  const auto site = site_of_caller(kind_of_file(entry.name, entry.file == 0));
  if (skipped_sites_.contains(site.number)) {
    usleep(nap);
    Lock lock(mutex_);
    trace_.add(EventKind::skipped, entry.file, {}, site.number);
    return 0;
  }
  std::uint64_t begin = 0;
  bool fails = false;
  {
    Lock lock(mutex_);
    note_site(site);
    fails = judge(Call::sync, entry.name, site.number) != Verdict::pass;
    begin = trace_.add(EventKind::sync_begin, entry.file, entry.file == 0 ? entry.name : "", site.number);
  }
  usleep(nap);  // others may write meanwhile, as they may with a real disk
  if (!finish_sync(descriptor, entry, begin, fails)) return 0;
  if (failing_.tells_one) usleep(kBeforeOneIsTold);
  return fail();
}

bool Recorder::finish_sync(int descriptor, const Descriptor& entry, std::uint64_t begin, bool fails) {
  Lock lock(mutex_);
  // Linux tells once through every open descriptor of a file that one of its pages could not be written.
  const bool is_new = fails && !failing_.tells_one;
  fails = fails || failed_syncs_[entry.file] != entry.failures_told;
  trace_.add(fails ? EventKind::sync_failed : EventKind::sync_end, entry.file,
             entry.file == 0 ? entry.name : "", begin);
  if (!fails) return false;
  if (is_new) ++failed_syncs_[entry.file];
  if (const auto own = descriptors_.find(descriptor); own != descriptors_.end())
    own->second.failures_told = failed_syncs_[entry.file];
  if (failing_.drops_cache && entry.file != 0) drop_cache_of(entry.file, descriptor, begin);
  return true;
}

int Recorder::remove(int folder, const char* path, const std::string& name, bool is_folder) {
  Lock lock(mutex_);
  const auto file = files_.find(name);
  if (!is_folder && file != files_.end() && judge(Call::unlink, name) != Verdict::pass) return fail();
  const auto kind = is_folder ? EventKind::remove_folder : EventKind::unlink;
  auto& event = trace_.begin(kind, file == files_.end() ? 0 : file->second, name);
  const auto code = static_cast<int>(really(SYS_unlinkat, folder, path, is_folder ? AT_REMOVEDIR : 0));
  if (code != 0) {
    trace_.forget();
    return code;
  }
  if (!is_folder) files_.erase(name);
  trace_.finish(event);
  return code;
}

int Recorder::rename(int from_folder, const char* from, const std::string& from_name, int to_folder,
                     const char* to, const std::string& to_name) {
  Lock lock(mutex_);
  if (judge(Call::rename, to_name) != Verdict::pass) return fail();
  const auto file = files_.find(from_name);
  if (file == files_.end()) give_up("only files that were seen can be renamed");
  auto& event = trace_.begin(EventKind::rename, file->second, from_name + std::string(1, '\0') + to_name);
  const auto code = static_cast<int>(really(SYS_renameat, from_folder, from, to_folder, to));
  if (code != 0) {
    trace_.forget();
    return code;
  }
  files_[to_name] = file->second;
  if (from_name != to_name) files_.erase(from_name);
  trace_.finish(event);
  return code;
}

int Recorder::make_folder(int folder, const char* path, const std::string& name, mode_t mode) {
  Lock lock(mutex_);
  struct stat status {};
  const bool is_there = lstat(path_of(name).c_str(), &status) == 0;
  if (!is_there && judge(Call::create, name) != Verdict::pass) return fail();
  auto& event = trace_.begin(EventKind::make_folder, 0, name);
  const auto code = static_cast<int>(really(SYS_mkdirat, folder, path, mode));
  if (code == 0)
    trace_.finish(event);
  else
    trace_.forget();
  return code;
}

void Recorder::mark(std::string_view text) {
  if (folder_.empty()) return;
  Lock lock(mutex_);
  trace_.add(EventKind::mark, 0, text);
}

}  // namespace flowfabric::disk
