// A handle: the ids and the lease of one attempt, as bytes that a worker can pass on or store.
//
// The layout is the specification's (01 §6), little-endian. A text is its length in four bytes, then its
// UTF-8:
//
//   0x02, version 0x01, backend, execution id, attempt index (4), attempt id, lease id, lease epoch (8),
//   lease ttl in ms (8), lane, worker instance
//
// The kind is not part of the bytes. Bytes of the first layout (0x01, then the same from the execution id on)
// are still read; they are Valkey's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"

namespace flowfabric {

// The store that holds the lease. The byte is the place in this list, counted from one.
enum class HandleBackend : std::uint8_t { valkey, postgres, sqlite, memory };
BOOST_DESCRIBE_ENUM(HandleBackend, valkey, postgres, sqlite, memory)

// How the worker got the attempt; `suspended` holds no lease.
enum class HandleKind : std::uint8_t { fresh, resumed, suspended, reclaimed };
BOOST_DESCRIBE_ENUM(HandleKind, fresh, resumed, suspended, reclaimed)

// The form that is passed on: `opaque` holds the bytes, which do not contain the kind.
struct OpaqueHandle {
  HandleBackend backend{};
  HandleKind kind{};
  std::string opaque;
  bool operator==(const OpaqueHandle&) const = default;
};

struct Handle {
  HandleBackend backend{};
  HandleKind kind{};
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
  AttemptId attempt_id;
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  std::int64_t lease_ttl_ms{};
  std::string lane_id;
  std::string worker_instance_id;
  bool operator==(const Handle&) const = default;
};

std::string encode_handle(const Handle& handle);

// Bytes that no encoder made are `corruption`, detail `handle_codec: <what is wrong>`.
Result<Handle> decode_handle(std::string_view bytes, HandleKind kind);

// `handle_from_other_backend`, detail `expected=<tag> actual=<tag>` with the tags `Valkey`, `Postgres`,
// `Sqlite` and `Memory`.
Result<void> check_handle_backend(const Handle& handle, HandleBackend expected);

}  // namespace flowfabric
