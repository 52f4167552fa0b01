// The states that a disk may be in when the power fails. Synced data is there. Of everything written since,
// each sector is there or not, whatever the order of the writes; each name may be as it was before, until its
// folder was synced.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "disk/chooser.h"
#include "disk/trace.h"

namespace flowfabric::disk {

// Files by their paths, and folders, whose paths end with '/'.
using Content = std::map<std::string, std::string>;

void write_files(const Content& content, const std::string& folder);
// The actual contents of a folder, except for unwatched files.
Content read_files(const std::string& folder);

// Goes through a trace, once, and gives the states of every point.
class Disk {
 public:
  explicit Disk(const Trace& trace) : trace_(trace) {}

  // The power is cut before the event of this number.
  void advance_to(std::size_t event);
  Content state(const Choice& choice) const;
  // The number of calls that are not known to be on disk.
  std::size_t pending() const;

 private:
  enum class Fate { pending, durable, lost };  // lost: a sync of it has failed, and no other one will be made
  struct Change {
    std::size_t event;
    bool is_truncation;
    std::uint64_t offset;  // or the new size
    std::string_view bytes;
    Fate fate;
  };
  struct File {
    std::string base;  // all changes before the following
    std::deque<Change> changes;
  };
  struct NameChange {
    std::size_t event;
    EventKind kind;
    std::uint32_t file;
    std::string path;
    std::string to;                  // of a rename
    std::set<std::string> unsynced;  // folders
    Fate fate;
  };
  struct Names {
    std::map<std::string, std::uint32_t> files;
    std::set<std::string> folders;
  };

  void apply(std::size_t index, const Event& event);
  void add_name(std::size_t index, const Event& event);
  void finish_sync(const Event& end, std::size_t begin, bool has_failed);
  void fold_names();
  static void apply(const NameChange& change, Names& names);
  static void apply(const Change& change, std::string& bytes);
  static void fold(File& file);
  std::string content_of(std::uint32_t id, const File& file, const Chooser& chooser) const;
  Names names_of(const Chooser& chooser) const;
  std::string path_of(std::uint32_t file) const;

  const Trace& trace_;
  std::size_t next_{0};
  std::map<std::uint64_t, std::size_t> syncs_;  // under way: by position of their begin
  std::map<std::uint32_t, File> files_;
  std::map<std::uint32_t, std::string> paths_;  // as they were made
  Names names_;
  std::deque<NameChange> name_changes_;
};

}  // namespace flowfabric::disk
