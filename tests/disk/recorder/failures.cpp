// Calls that the recorder makes fail.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "disk/recorder/real_calls.h"
#include "disk/recorder/recorder.h"

namespace flowfabric::disk {

void Recorder::read_failing() {
  const char* const text = std::getenv(kFailVariable);
  if (text == nullptr) return;
  char call[32];
  char how[32];
  if (std::sscanf(text, "%31s %llu %llu %d %31s", call, &failing_.first, &failing_.count, &failing_.reason,
                  how) != 5)
    give_up("FF_DISK_FAIL is not to be understood");
  failing_.call = call;
  failing_.tells_one = std::strcmp(how, "alone") == 0;
  failing_.drops_cache = std::strcmp(how, "drop") == 0 || failing_.tells_one;
  failing_.writes_half = std::strcmp(how, "half") == 0;
}

void Recorder::read_skipped() {
  const char* const text = std::getenv(kSkipVariable);
  if (text == nullptr) return;
  std::istringstream words(text);
  for (std::string word; words >> word;) skipped_sites_.insert(std::stoull(word, nullptr, 16));
}

Recorder::Verdict Recorder::judge(Call call, const std::string& name, std::uint64_t site) {
  ++trace_.header().calls[static_cast<std::size_t>(call)];
  ++judged_of_all_;
  if (failing_.call.empty()) return Verdict::pass;
  char of_site[24];
  std::snprintf(of_site, sizeof of_site, "%llx", static_cast<unsigned long long>(site));
  const char* const word = kCallNames[static_cast<std::size_t>(call)];
  if (failing_.call != "any" && failing_.call != word && (site == 0 || failing_.call != of_site))
    return Verdict::pass;
  ++judged_;
  const auto first = failing_.first + (failing_.writes_half ? 1 : 0);
  const bool is_half = failing_.writes_half && judged_ == failing_.first && call == Call::write;
  const bool fails = judged_ >= first && judged_ < first + failing_.count;
  if (!fails && !is_half) return Verdict::pass;
  ++trace_.header().failed;
  trace_.add(EventKind::injected, 0, std::string(word) + " " + name + (is_half ? " (half)" : ""));
  return is_half ? Verdict::half : Verdict::fail;
}

int Recorder::fail() {
  errno = failing_.reason;
  return -1;
}

// The file's content is read from the disk again: what was not yet there is lost. Its size is not. A sync
// that began later and has succeeded meanwhile has stored what this one was for.
void Recorder::drop_cache_of(std::uint32_t file, int descriptor, std::uint64_t failed_begin) {
  std::uint64_t pending_from = 0;
  std::vector<std::uint64_t> events;
  for (auto position = trace_.first(); position < trace_.end(); position += trace_.at(position).size) {
    const auto& event = trace_.at(position);
    if (event.file != file) continue;
    const bool is_sync = event.kind == EventKind::sync_end || event.kind == EventKind::sync_failed;
    if (is_sync && event.extra != failed_begin) pending_from = std::max(pending_from, event.extra);
    const bool is_change = event.kind == EventKind::write || event.kind == EventKind::truncate;
    if (is_change && position < failed_begin) events.push_back(position);
  }
  auto limit = static_cast<std::uint64_t>(size_of(descriptor));
  char own_path[40];
  std::snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", descriptor);
  const auto writable = static_cast<int>(really(SYS_openat, AT_FDCWD, own_path, O_RDWR | O_CLOEXEC));
  for (auto it = events.rbegin(); it != events.rend() && *it >= pending_from; ++it) {
    const auto event = trace_.at(*it);
    if (event.kind == EventKind::truncate) limit = std::min(limit, event.offset);
    if (event.kind == EventKind::truncate || (event.flags & kDurable) != 0 || event.offset >= limit) continue;
    std::string old(trace_.old_of(trace_.at(*it)));
    old.resize(std::min(event.text_size, limit - event.offset));  // where there was nothing, there are zeros
    auto& restored = trace_.begin(EventKind::write, file, old);
    restored.offset = event.offset;
    restored.flags = kDurable;
    if (really(SYS_pwrite64, writable, old.data(), old.size(), event.offset) != static_cast<long>(old.size()))
      give_up("old content cannot be put back");
    trace_.finish(restored);
  }
  really(SYS_close, writable);
}

}  // namespace flowfabric::disk
