// The bytes of a handle (01 §6).
#include "flowfabric/handle.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "support/printing.h"

namespace flowfabric {
namespace {

using namespace std::string_literals;

// The specification's vector; the SHA-256 of these 173 bytes is
// 0f7dcdba5f30b2c0c23d7d7b7b820721b2b1a7ce609eedef3da24b4fabfea97c.
const std::string kHeader = "\x02\x01\x02"s;
const std::string kFields =
    "\x2b\0\0\0{fp:0}:550e8400-e29b-41d4-a716-446655440000"
    "\x03\0\0\0"
    "\x24\0\0\0"
    "11111111-1111-1111-1111-111111111111"
    "\x24\0\0\0"
    "22222222-2222-2222-2222-222222222222"
    "\x07\0\0\0\0\0\0\0"
    "\x30\x75\0\0\0\0\0\0"
    "\x07\0\0\0"
    "default"
    "\x08\0\0\0"
    "worker-1"s;
const std::string kBytes = kHeader + kFields;

Handle vector_of(HandleBackend backend = HandleBackend::postgres, HandleKind kind = HandleKind::fresh) {
  return {.backend = backend,
          .kind = kind,
          .execution_id = *ExecutionId::parse("{fp:0}:550e8400-e29b-41d4-a716-446655440000"),
          .attempt_index = 3,
          .attempt_id = *AttemptId::parse("11111111-1111-1111-1111-111111111111"),
          .lease_id = *LeaseId::parse("22222222-2222-2222-2222-222222222222"),
          .lease_epoch = 7,
          .lease_ttl_ms = 30'000,
          .lane_id = "default",
          .worker_instance_id = "worker-1"};
}

// The vector with some bytes in place of others.
std::string changed(const std::string& from, const std::string& to) {
  auto bytes = kBytes;
  return bytes.replace(bytes.find(from), from.size(), to);
}

TEST(HandleCodec, EncodesTheVectorOfTheSpecification) {
  EXPECT_EQ(kBytes.size(), 173u);
  EXPECT_EQ(encode_handle(vector_of()), kBytes);
}

TEST(HandleCodec, DecodesTheVectorOfTheSpecification) {
  for (const auto kind :
       {HandleKind::fresh, HandleKind::resumed, HandleKind::suspended, HandleKind::reclaimed}) {
    EXPECT_EQ(decode_handle(kBytes, kind), vector_of(HandleBackend::postgres, kind));
  }
}

TEST(HandleCodec, TheKindIsNotInTheBytes) {
  EXPECT_EQ(encode_handle(vector_of(HandleBackend::postgres, HandleKind::reclaimed)), kBytes);
}

TEST(HandleCodec, EveryBackendHasItsTag) {
  for (const auto& [backend, tag] :
       {std::pair{HandleBackend::valkey, '\x01'}, std::pair{HandleBackend::postgres, '\x02'},
        std::pair{HandleBackend::sqlite, '\x03'}, std::pair{HandleBackend::memory, '\x04'}}) {
    const auto bytes = encode_handle(vector_of(backend));
    EXPECT_EQ(bytes[2], tag) << backend;
    EXPECT_EQ(decode_handle(bytes, HandleKind::fresh), vector_of(backend));
  }
}

TEST(HandleCodec, TheFirstLayoutIsReadAsValkeys) {
  EXPECT_EQ(decode_handle("\x01" + kFields, HandleKind::fresh), vector_of(HandleBackend::valkey));
}

TEST(HandleCodec, TheWidestValuesComeBack) {
  auto widest = vector_of(HandleBackend::memory);
  widest.execution_id.partition = 65'535;
  widest.attempt_index = 0xFFFF'FFFF;
  widest.lease_epoch = std::numeric_limits<std::int64_t>::max();
  widest.lease_ttl_ms = std::numeric_limits<std::int64_t>::max();
  widest.lane_id = std::string(64, '~');
  widest.worker_instance_id = "größe";

  EXPECT_EQ(decode_handle(encode_handle(widest), HandleKind::fresh), widest);
}

TEST(HandleCodec, OtherSpellingsOfAnIdBecomeCanonical) {
  const auto upper = changed("550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440000");

  EXPECT_EQ(decode_handle(upper, HandleKind::fresh), vector_of());
}

// ---- corruption ----

void expect_corrupt(const std::string& bytes, const std::string& detail) {
  SCOPED_TRACE(::testing::PrintToString(bytes));
  const auto handle = decode_handle(bytes, HandleKind::fresh);
  ASSERT_FALSE(handle);
  EXPECT_EQ(error_name(handle.error().code), "corruption");
  EXPECT_EQ(handle.error().detail, detail);
  EXPECT_FALSE(handle.error().advice.empty());
}

TEST(HandleCodec, BytesCutAnywhereAreCorrupt) {
  std::set<std::string> details;
  for (std::size_t size = 0; size < kBytes.size(); ++size) {
    const auto handle = decode_handle(std::string_view(kBytes).substr(0, size), HandleKind::fresh);
    ASSERT_FALSE(handle) << size;
    EXPECT_EQ(handle.error().code, ErrorCode::corruption) << size;
    details.insert(handle.error().detail);
  }

  std::set<std::string> expected;
  for (const char* field : {"layout", "version", "backend tag", "execution_id", "attempt_index", "attempt_id",
                            "lease_id", "lease_epoch", "lease_ttl_ms", "lane_id", "worker_instance_id"}) {
    expected.insert("handle_codec: truncated in "s + field);
  }
  EXPECT_EQ(details, expected);
}

TEST(HandleCodec, EveryOtherCorruptionIsNamed) {
  expect_corrupt(kBytes + "\0x"s, "handle_codec: 2 bytes after the end");
  expect_corrupt("\x03" + kBytes, "handle_codec: unknown layout 3");
  expect_corrupt("\x02\x02\x02" + kFields, "handle_codec: unknown version 2");
  expect_corrupt("\x02\x01\0"s + kFields, "handle_codec: unknown backend tag 0");
  expect_corrupt("\x02\x01\x05" + kFields, "handle_codec: unknown backend tag 5");
  expect_corrupt(changed("{fp:0}", "{gp:0}"), "handle_codec: execution_id is not an id");
  expect_corrupt(changed("-a716-",
                         "\xff"
                         "a716-"),
                 "handle_codec: execution_id is not UTF-8");
  expect_corrupt(changed("1111-1111-", "1111-111x-"), "handle_codec: attempt_id is not an id");
  expect_corrupt(changed("2222-2222-", "2222-222x-"), "handle_codec: lease_id is not an id");
  expect_corrupt(changed("\x07\0\0\0\0\0\0\0"s, "\x07\0\0\0\0\0\0\x80"s),
                 "handle_codec: lease_epoch is out of range");
  expect_corrupt(changed("\x30\x75\0\0\0\0\0\0"s, "\x30\x75\0\0\0\0\0\xff"s),
                 "handle_codec: lease_ttl_ms is out of range");
  expect_corrupt(changed("default", "def\nult"), "handle_codec: lane_id is not an id");
  expect_corrupt(changed("default", "def\xc3(lt"), "handle_codec: lane_id is not UTF-8");
  expect_corrupt(changed("worker-1", "worker 1"), "handle_codec: worker_instance_id is not an id");
}

TEST(HandleCodec, ALengthBeyondTheBytesIsTruncation) {
  expect_corrupt(changed("\x08\0\0\0"s, "\xff\xff\xff\xff"), "handle_codec: truncated in worker_instance_id");
}

// ---- another store's ----

TEST(HandleCodec, AHandleFitsOnlyItsOwnBackend) {
  const auto handle = vector_of(HandleBackend::postgres);
  EXPECT_TRUE(check_handle_backend(handle, HandleBackend::postgres));

  const std::map<HandleBackend, std::string> details = {
      {HandleBackend::valkey, "expected=Valkey actual=Postgres"},
      {HandleBackend::sqlite, "expected=Sqlite actual=Postgres"},
      {HandleBackend::memory, "expected=Memory actual=Postgres"}};
  for (const auto& [backend, detail] : details) {
    const auto checked = check_handle_backend(handle, backend);
    ASSERT_FALSE(checked);
    EXPECT_EQ(error_name(checked.error().code), "handle_from_other_backend");
    EXPECT_EQ(checked.error().detail, detail);
    EXPECT_FALSE(checked.error().advice.empty());
  }
}

}  // namespace
}  // namespace flowfabric
