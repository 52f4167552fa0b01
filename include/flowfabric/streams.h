// Output streams: the output of an attempt while it runs (tokens, logs, progress), frame by frame.
//
// Every attempt has its own stream, which its first frame creates and its end closes. An attempt that
// continues after a pause continues its stream. Frames are numbered by time and never change; the oldest are
// dropped when there are too many.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"
#include "flowfabric/operations.h"

namespace flowfabric {

inline constexpr std::size_t kMaxFrameBytes = 65'536;
inline constexpr std::size_t kMaxSummaryBytes = 1u << 20;

// `<ms>-<seq>`: the time of the append, and the number of earlier frames in that millisecond.
struct FrameId {
  std::uint64_t ms{};
  std::uint64_t seq{};
  auto operator<=>(const FrameId&) const = default;
  std::string to_string() const;
  // Also `<ms>` alone, which means `<ms>-<seq>`.
  static std::optional<FrameId> parse(std::string_view text, std::uint64_t seq = 0);
};

// How long a frame is kept.
//   durable      kept until there are enough newer frames (the policy's `retention_maxlen`)
//   summary      its payload changes the attempt's document (JSON Merge Patch), of which it is one version
//   best_effort  for present readers: gone after twice its time to live, unless the stream has other frames
enum class FrameMode : std::uint8_t { durable, summary, best_effort };
BOOST_DESCRIBE_ENUM(FrameMode, durable, summary, best_effort)

// The default type of a frame.
enum class FrameKind : std::uint8_t { stdout_, stderr_, event, blob };
BOOST_DESCRIBE_ENUM(FrameKind, stdout_, stderr_, event, blob)

// The number of frames that are kept follows the rate at which they come.
struct BestEffort {
  std::uint64_t ttl_ms{10'000};
  std::int64_t maxlen_floor{64};
  std::int64_t maxlen_ceiling{16'384};
  double ema_alpha{0.2};
};

struct FrameAppended {
  std::string stream_id;        // the frame's id
  std::uint64_t frame_count{};  // all frames ever appended
  std::optional<std::uint64_t> summary_version;
  bool duplicate{false};  // `seq` is a repetition: nothing was appended, and the id is that of the last frame
  bool operator==(const FrameAppended&) const = default;
};
// Appends a frame for the holder of the lease or, without a lease, for the engine's owner (`source` is
// `system` or `operator`).
struct AppendFrame {
  using Answer = FrameAppended;
  ExecutionId execution_id;
  std::optional<std::uint32_t> attempt_index{};  // absent: the current one
  LeaseFence fence{};
  std::string source{"worker"};
  std::string payload{};
  std::string frame_type{};  // any word; empty: the kind's
  FrameKind kind{FrameKind::event};
  std::optional<std::string> correlation_id{};
  std::optional<std::uint64_t> seq{};  // the caller's rising number, which makes a repeated call safe
  std::optional<std::int64_t> ts{};    // when it was produced
  FrameMode mode{FrameMode::durable};
  std::string patch_kind{
      "json-merge-patch"};  // of a summary; `JsonMergePatch` is the same, others are refused
  BestEffort best_effort{};
};

// ---- reading ----------------------------------------------------------------------------------------------

enum class FrameVisibility : std::uint8_t { all, exclude_best_effort };
BOOST_DESCRIBE_ENUM(FrameVisibility, all, exclude_best_effort)

struct FrameView {
  std::string id;
  std::map<std::string, std::string> fields;
  bool operator==(const FrameView&) const = default;
};
struct StreamPage {
  std::vector<FrameView> frames;
  std::optional<std::int64_t> closed_at;
  std::optional<std::string> closed_reason;
  bool operator==(const StreamPage&) const = default;
};
// Frames between two ids, both included. `start` and `end` are ids, too; `<ms>` is all of a millisecond.
struct ReadStream {
  using Answer = StreamPage;
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
  std::string from{"start"};
  std::string to{"end"};
  std::uint32_t count{100};  // 1–10 000
  FrameVisibility visibility{};
};
// Frames after an id. If there are none, the call waits until there are some, the stream is closed, or the
// time is up.
struct TailStream {
  using Answer = StreamPage;
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
  std::string after{"0-0"};
  std::int64_t block_ms{0};  // 0–30 000
  std::uint32_t count{50};   // 1–10 000
  FrameVisibility visibility{};
};

struct OutputFrame {
  std::uint32_t attempt_index{};
  FrameView frame;
  bool operator==(const OutputFrame&) const = default;
};
struct OutputPage {
  std::vector<OutputFrame> frames;
  std::optional<std::string> next_cursor;
  bool operator==(const OutputPage&) const = default;
};
// The frames of all attempts of an execution, one attempt after the other.
struct ReadOutput {
  using Answer = OutputPage;
  ExecutionId execution_id;
  std::string cursor{};  // `<attempt index>:<frame id>`, exclusive; empty: from the beginning
  bool latest_attempt_only{false};
  std::uint32_t count{100};  // 1–10 000
  FrameVisibility visibility{};
};

struct SummaryDocument {
  std::string document_json;
  std::uint64_t version{};
  std::string patch_kind;
  std::int64_t first_applied_ms{};
  std::int64_t last_updated_ms{};
  bool operator==(const SummaryDocument&) const = default;
};
// The answer is absent if no frame has ever changed the summary.
struct ReadSummary {
  using Answer = std::optional<SummaryDocument>;
  ExecutionId execution_id;
  std::uint32_t attempt_index{};
};

struct StreamInfo {
  std::string stream_id;  // <execution id>:<attempt index>
  std::uint32_t attempt_index{};
  std::int64_t created_at{};
  std::uint64_t frame_count{};
  std::uint64_t frames_kept{};
  std::uint64_t total_bytes{};
  std::string last_id;
  std::int64_t last_frame_at{};
  std::uint64_t retention_maxlen{};
  std::uint64_t maxlen_applied_last{};  // of best-effort frames; 0: there were none
  bool has_durable_frame{};
  bool has_summary{};
  std::optional<std::int64_t> closed_at;
  std::optional<std::string> closed_reason;
  bool operator==(const StreamInfo&) const = default;
};
// The streams of an execution that have ever had a frame, by attempt.
struct ListStreams {
  using Answer = std::vector<StreamInfo>;
  ExecutionId execution_id;
};

}  // namespace flowfabric
