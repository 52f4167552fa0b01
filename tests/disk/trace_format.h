// The trace: what a process did to the files of a folder, call by call. The recorder appends to it while the
// process runs; the tests read it when the process is gone. It lies in a file that both have mapped, so that
// it survives a kill.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flowfabric::disk {

// Where the recorder finds what it is to do.
inline constexpr const char* kFolderVariable = "FF_DISK_FOLDER";
inline constexpr const char* kTraceVariable = "FF_DISK_TRACE";
// "CALL K N ERRNO HOW": N calls from the K-th on fail. CALL is one of kCallNames, "any", or a site of syncs.
// HOW, of a sync: the cache may "keep" what was not written, or "drop" it; "alone" drops it, tells only the
// one who asked, and takes its time to do so. Of a write: "half" of it is written first.
inline constexpr const char* kFailVariable = "FF_DISK_FAIL";
// The sites whose syncs are left out.
inline constexpr const char* kSkipVariable = "FF_DISK_SKIP";
// Set: writes keep what they replaced, as a dropped cache needs.
inline constexpr const char* kKeepOldVariable = "FF_DISK_KEEP_OLD";

// The calls that can be made to fail.
enum class Call : std::uint8_t { write, sync, truncate, rename, create, unlink };
inline constexpr std::size_t kCalls = 6;
inline constexpr const char* kCallNames[kCalls] = {"write", "sync", "truncate", "rename", "create", "unlink"};

enum class EventKind : std::uint8_t {
  start = 1,    // a process begins
  create,       // text: path
  make_folder,  // text: path
  write,        // text: bytes, old: what they replaced (when kept)
  truncate,     // to `offset` bytes
  sync_begin,   // `file`, or when that is 0 the folder in text; extra: site
  sync_end,     // extra: position of its begin
  sync_failed,  // extra: position of its begin. What it was to make durable never will be
  unlink,       // text: path
  remove_folder,
  rename,    // text: old path, '\0', new path
  mark,      // text: what the process said
  site,      // extra: number; text: kind of file, ' ', call path
  injected,  // text: what failed, and on which file
  skipped,   // a sync was left out on purpose; `file`, extra: site
};

// Flags of an event.
// It is on disk from the beginning: it was there before, or it is what the disk had when a cache was dropped.
inline constexpr std::uint8_t kDurable = 1;

struct TraceHeader {
  std::atomic<std::uint64_t> end;    // of the last event
  std::atomic<std::uint64_t> begun;  // further than `end`: an event that may or may not have happened
  std::atomic<std::uint32_t> last_file;
  std::atomic<std::uint32_t> is_full;  // the trace has no room, and the process gave up
  // The calls of the last process, and the number that failed on purpose.
  std::atomic<std::uint64_t> calls[kCalls];
  std::atomic<std::uint64_t> failed;
};

struct EventHeader {
  std::uint64_t size;  // up to the next one
  EventKind kind;
  std::uint8_t flags;
  std::uint16_t unused;
  std::uint32_t file;
  std::uint64_t offset;
  std::uint64_t text_size;
  std::uint64_t old_size;
  std::uint64_t extra;
};

inline constexpr std::uint64_t kTraceBytes = std::uint64_t{2} << 30;  // of a file with holes

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// These two hold nothing that a restart needs.
inline bool is_watched_name(std::string_view path) {
  return !ends_with(path, "-shm") && !ends_with(path, ".lock");
}

// In a word, for people.
inline const char* kind_of_file(std::string_view path, bool is_folder) {
  if (is_folder) return "folder";
  if (path.find("redo") != path.npos) return "redo";
  if (ends_with(path, "-wal")) return "wal";
  return ends_with(path, "-journal") ? "journal" : "db";
}

}  // namespace flowfabric::disk
