// Sees every call that changes a file below a folder, makes it, and writes down that it has happened. Syncs
// are not made, they only take a moment: what they would have done is worked out from the trace. Can be told
// to let calls fail, as a disk would.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "disk/recorder/sites.h"
#include "disk/recorder/trace_writer.h"

namespace flowfabric::disk {

class Recorder {
 public:
  static Recorder& get();

  // The path relative to the folder ("" is the folder itself) when it is one that is watched.
  std::optional<std::string> watched(int folder, const char* path);
  bool watches(int descriptor) const;

  // Replacements of the calls of the same names; `errno` has the reason of a failure.
  int open(int folder, const char* path, const std::string& name, int flags, mode_t mode);
  int close(int descriptor);
  ssize_t write(int descriptor, const void* bytes, std::size_t size, std::optional<off_t> at);
  int truncate(int descriptor, off_t size);
  // Grows the file to at least this many bytes.
  int extend(int descriptor, off_t size);
  int sync(int descriptor);
  int remove(int folder, const char* path, const std::string& name, bool is_folder);
  int rename(int from_folder, const char* from, const std::string& from_name, int to_folder, const char* to,
             const std::string& to_name);
  int make_folder(int folder, const char* path, const std::string& name, mode_t mode);
  void mark(std::string_view text);

 private:
  struct Descriptor {
    std::uint32_t file;  // 0: a folder
    std::string name;
    std::uint64_t failures_told{0};  // of syncs of the file, to who uses this descriptor
  };
  // Which calls fail, and how.
  struct Failing {
    std::string call;  // empty: none
    unsigned long long first{0};
    unsigned long long count{0};
    int reason{0};
    bool drops_cache{false};
    bool tells_one{false};
    bool writes_half{false};
  };
  enum class Verdict { pass, half, fail };

  Recorder();
  void read_failing();
  void read_skipped();
  bool remember_names();
  void note_what_is_there(const std::string& name);
  Verdict judge(Call call, const std::string& name, std::uint64_t site = 0);
  int fail();
  std::uint32_t file_of(const std::string& name);
  void enter(int descriptor, Descriptor entry);
  void note_site(const Site& site);
  // Says whether it has failed.
  bool finish_sync(int descriptor, const Descriptor& entry, std::uint64_t begin, bool fails);
  void drop_cache_of(std::uint32_t file, int descriptor, std::uint64_t failed_begin);
  ssize_t write_bytes(int descriptor, const Descriptor& entry, std::string_view bytes,
                      std::optional<off_t> at);
  std::string path_of(const std::string& name) const { return name.empty() ? folder_ : folder_ + "/" + name; }

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::string folder_;  // empty: nothing is watched
  TraceWriter trace_;
  Failing failing_;
  std::set<std::uint64_t> skipped_sites_;
  bool keeps_old_{false};
  unsigned long long judged_{0};
  unsigned long long judged_of_all_{0};
  std::uint32_t naps_{0};
  std::map<std::string, std::uint32_t> files_;
  std::map<std::uint32_t, std::uint64_t> failed_syncs_;  // of a file, how many
  std::map<int, Descriptor> descriptors_;
  std::set<std::uint64_t> sites_;
  static constexpr int kMostDescriptors = 65536;
  std::atomic<bool> is_watched_[kMostDescriptors]{};
};

}  // namespace flowfabric::disk
