// How long the logs of the SQLite store may become. Tests make them short.
#pragma once

#include <cstdint>

namespace flowfabric::store::sqlite {

struct Sizes {
  // Of the write-ahead log, at which it is moved into the database: about 64 MiB.
  int checkpoint_pages{16000};
  // Of a file of the redo log, at which it is the other file's turn.
  std::int64_t redo_turn_bytes{32 << 20};
};

// Of this process. To be changed before a store is opened.
inline Sizes& sizes() {
  static Sizes of_process;
  return of_process;
}

}  // namespace flowfabric::store::sqlite
