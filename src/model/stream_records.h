// The records of output streams.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "flowfabric/streams.h"
#include "model/execution_records.h"

namespace flowfabric {

struct StreamKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  auto operator<=>(const StreamKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(StreamKey, (), (partition_key, execution_id, attempt_index))

// Of an attempt that has written something. Whether it is closed, the attempt says.
struct Stream {
  static constexpr const char* table = "ff_stream_meta";
  using Key = StreamKey;
  Key key() const { return {partition_key, execution_id, attempt_index}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  std::int64_t created_at_ms{};
  std::uint64_t retention_maxlen{};
  std::uint64_t last_ms{};  // of the last frame's id
  std::uint64_t last_seq{};
  std::uint64_t frame_count{};  // ever
  std::uint64_t frames_kept{};  // now
  std::uint64_t total_bytes{};
  std::int64_t last_frame_at_ms{};
  std::optional<std::uint64_t> last_caller_seq;
  bool has_durable_frame{false};
  // Of best-effort frames: millionths of a frame per second, when the last came, how many were kept then.
  std::int64_t ema_rate_micro_hz{};
  std::optional<std::int64_t> last_append_ts_ms;
  std::uint64_t maxlen_applied_last{};
  std::optional<std::int64_t> expires_at_ms;   // its frames are gone then
  std::optional<std::int64_t> next_due_at_ms;  // may be early, never late
  bool operator==(const Stream&) const = default;
};
BOOST_DESCRIBE_STRUCT(Stream, (),
                      (partition_key, execution_id, attempt_index, created_at_ms, retention_maxlen, last_ms,
                       last_seq, frame_count, frames_kept, total_bytes, last_frame_at_ms, last_caller_seq,
                       has_durable_frame, ema_rate_micro_hz, last_append_ts_ms, maxlen_applied_last,
                       expires_at_ms, next_due_at_ms))

struct FrameKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  std::uint64_t frame_ms{};
  std::uint64_t frame_seq{};
  auto operator<=>(const FrameKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(FrameKey, (), (partition_key, execution_id, attempt_index, frame_ms, frame_seq))

struct Frame {
  static constexpr const char* table = "ff_stream_frame";
  using Key = FrameKey;
  Key key() const { return {partition_key, execution_id, attempt_index, frame_ms, frame_seq}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  std::uint64_t frame_ms{};
  std::uint64_t frame_seq{};
  std::string frame_type;
  std::int64_t ts_ms{};
  std::string source;
  FrameMode mode{};
  std::optional<std::string> correlation_id;
  std::optional<std::uint64_t> summary_version;
  std::optional<std::uint64_t> ttl_ms;
  Bytes payload;
  bool operator==(const Frame&) const = default;
};
BOOST_DESCRIBE_STRUCT(Frame, (),
                      (partition_key, execution_id, attempt_index, frame_ms, frame_seq, frame_type, ts_ms,
                       source, mode, correlation_id, summary_version, ttl_ms, payload))

// The document that an attempt's summary frames have made so far.
struct StreamSummary {
  static constexpr const char* table = "ff_stream_summary";
  using Key = StreamKey;
  Key key() const { return {partition_key, execution_id, attempt_index}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  std::string document_json;
  std::uint64_t version{};
  std::string patch_kind;
  std::int64_t first_applied_ms{};
  std::int64_t last_updated_ms{};
  bool operator==(const StreamSummary&) const = default;
};
BOOST_DESCRIBE_STRUCT(StreamSummary, (),
                      (partition_key, execution_id, attempt_index, document_json, version, patch_kind,
                       first_applied_ms, last_updated_ms))

}  // namespace flowfabric
