// SQLite's write-ahead log as a file, which we sync ourselves.
#pragma once

#include <fcntl.h>

#include "store/sqlite/files.h"

namespace flowfabric::store::sqlite {

class WalFile {
 public:
  // There is one as soon as somebody has read from the database.
  explicit WalFile(const std::string& database_path) : file_(database_path + "-wal", O_RDWR) {}

  // Every transaction that was committed is on disk then.
  void sync() const { file_.sync(); }

  // Writes what is in the file once more. A process before this one may have ended because a sync failed:
  // then the file as the kernel shows it is not what is on disk, and a sync would not change that, for its
  // pages pass for clean. Nobody else may write meanwhile.
  void write_again() const {
    constexpr std::int64_t piece = 1 << 20;
    const auto size = file_.size();
    for (std::int64_t at = 0; at < size; at += piece) {
      file_.write(at, file_.read(at, static_cast<std::size_t>(std::min(piece, size - at))));
    }
  }

 private:
  File file_;
};

}  // namespace flowfabric::store::sqlite
