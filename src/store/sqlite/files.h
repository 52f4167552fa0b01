// The store's own calls on files, beside SQLite's. Every call has done what it says, or throws a
// StoreFailure.
//
// A sync that failed is never repeated: Linux marks the pages clean that it could not write, so that the next
// sync succeeds although they never reached the disk. Nor is anything else tried that could have left the
// disk in a state nobody knows. Such failures say `Retry::after_restart`: the process ends, and the next one
// goes on from what is known to be stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace flowfabric::store::sqlite {

// There was no room for what was to be written; nothing else is wrong.
bool is_full(int error_number);

// The failure after which nobody knows what is on the disk.
StoreFailure failed_for_good(const std::string& path, const std::string& what);

class File {
 public:
  File() = default;
  File(std::string path, int flags);  // `open`; new files may be read by nobody else
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  static File of(std::string path, int descriptor);  // which is open already
  // Absent: there is no such file. One that is there and cannot be opened is refused.
  static std::optional<File> open_if_there(const std::string& path, int flags);

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  std::int64_t size() const;
  std::string read_all() const;
  // Fewer bytes at the end of the file.
  std::string read(std::int64_t offset, std::size_t size) const;
  // Says how many bytes were written before there was no room for more.
  std::size_t write_what_fits(std::int64_t offset, std::string_view bytes) const;
  void write(std::int64_t offset, std::string_view bytes) const;
  void truncate(std::int64_t size) const;
  // Everything that was written to the file, through whichever descriptor, is on disk then.
  void sync() const;

 private:
  std::string path_;
  int descriptor_{-1};
};

// Files that were made, renamed or removed in the folder of this one are so on disk then, too.
void sync_folder_of(const std::string& path);
void remove_file(const std::string& path);  // if it is there
void rename_file(const std::string& from, const std::string& to);

// The file that a path means, whatever symbolic links lead there: its neighbours are beside it.
std::string real_path(const std::string& path);

}  // namespace flowfabric::store::sqlite
