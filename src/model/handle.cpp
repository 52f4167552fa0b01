#include "flowfabric/handle.h"

#include <array>
#include <limits>

#include "model/describe.h"
#include "model/text.h"

namespace flowfabric {
namespace {

constexpr std::uint8_t kFirstLayout = 0x01;
constexpr std::uint8_t kLayout = 0x02;
constexpr std::uint8_t kVersion = 0x01;

// As the JSON form of a handle spells them.
constexpr std::array<std::string_view, enum_size<HandleBackend>()> kTags = {"Valkey", "Postgres", "Sqlite",
                                                                            "Memory"};
std::string_view tag_of(HandleBackend backend) {
  return kTags[static_cast<std::size_t>(backend)];
}

// ---- writing ----

template <class Unsigned>
void put(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void put(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// ---- reading ----

// What is wrong with the bytes; stays inside this file.
struct Corrupt {
  std::string what;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::string_view field, std::size_t count) {
    if (rest_.size() < count) throw Corrupt{"truncated in " + std::string(field)};
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class Unsigned>
  Unsigned number(std::string_view field) {
    std::uint64_t value = 0;
    std::size_t shift = 0;
    for (const char byte : take(field, sizeof(Unsigned))) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(byte)) << shift;
      shift += 8;
    }
    return static_cast<Unsigned>(value);
  }

  std::int64_t count(std::string_view field) {
    const auto value = number<std::uint64_t>(field);
    if (value > std::numeric_limits<std::int64_t>::max()) {
      throw Corrupt{std::string(field) + " is out of range"};
    }
    return static_cast<std::int64_t>(value);
  }

  std::string text(std::string_view field) {
    const auto bytes = take(field, number<std::uint32_t>(field));
    if (!is_valid_utf8(bytes)) throw Corrupt{std::string(field) + " is not UTF-8"};
    return std::string(bytes);
  }

  template <class Id>
  Id id(std::string_view field) {
    const auto parsed = Id::parse(text(field));
    if (!parsed) throw Corrupt{std::string(field) + " is not an id"};
    return *parsed;
  }

  std::string checked(std::string_view field, Result<void> (*check)(std::string_view)) {
    auto name = text(field);
    if (!check(name)) throw Corrupt{std::string(field) + " is not an id"};
    return name;
  }

  void end() const {
    if (!rest_.empty()) throw Corrupt{std::to_string(rest_.size()) + " bytes after the end"};
  }

 private:
  std::string_view rest_;
};

HandleBackend read_header(Reader& reader) {
  const auto layout = reader.number<std::uint8_t>("layout");
  if (layout == kFirstLayout) return HandleBackend::valkey;
  if (layout != kLayout) throw Corrupt{"unknown layout " + std::to_string(layout)};
  const auto version = reader.number<std::uint8_t>("version");
  if (version != kVersion) throw Corrupt{"unknown version " + std::to_string(version)};
  const auto tag = reader.number<std::uint8_t>("backend tag");
  if (tag < 1 || tag > kTags.size()) throw Corrupt{"unknown backend tag " + std::to_string(tag)};
  return static_cast<HandleBackend>(tag - 1);
}

}  // namespace

std::string encode_handle(const Handle& handle) {
  std::string bytes;
  put(bytes, kLayout);
  put(bytes, kVersion);
  put(bytes, static_cast<std::uint8_t>(static_cast<std::uint8_t>(handle.backend) + 1));
  put(bytes, handle.execution_id.to_string());
  put(bytes, handle.attempt_index);
  put(bytes, handle.attempt_id.to_string());
  put(bytes, handle.lease_id.to_string());
  put(bytes, static_cast<std::uint64_t>(handle.lease_epoch));
  put(bytes, static_cast<std::uint64_t>(handle.lease_ttl_ms));
  put(bytes, handle.lane_id);
  put(bytes, handle.worker_instance_id);
  return bytes;
}

Result<Handle> decode_handle(std::string_view bytes, HandleKind kind) try {
  Reader reader(bytes);
  Handle handle{.backend = read_header(reader), .kind = kind};
  handle.execution_id = reader.id<ExecutionId>("execution_id");
  handle.attempt_index = reader.number<std::uint32_t>("attempt_index");
  handle.attempt_id = reader.id<AttemptId>("attempt_id");
  handle.lease_id = reader.id<LeaseId>("lease_id");
  handle.lease_epoch = reader.count("lease_epoch");
  handle.lease_ttl_ms = reader.count("lease_ttl_ms");
  handle.lane_id = reader.checked("lane_id", check_lane);
  handle.worker_instance_id = reader.checked("worker_instance_id", [](std::string_view name) {
    return check_worker_name("worker_instance_id", name);
  });
  reader.end();
  return handle;
} catch (const Corrupt& corrupt) {
  return fail_with(ErrorCode::corruption, "handle_codec: " + corrupt.what,
                   "These bytes are no handle, or were cut or changed on their way; claim the work again.");
}

Result<void> check_handle_backend(const Handle& handle, HandleBackend expected) {
  if (handle.backend == expected) return {};
  std::string detail = "expected=";
  detail += tag_of(expected);
  detail += " actual=";
  detail += tag_of(handle.backend);
  return fail_with(ErrorCode::handle_from_other_backend, detail,
                   "This handle belongs to another store; use it with an engine on that store.");
}

}  // namespace flowfabric
