#include "engine/stream_reads.h"

#include <limits>

#include "core/stream/stream.h"
#include "model/base64.h"
#include "model/text.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxFrames = 10'000;
// A page that holds more is as long as it may be, whatever was asked for: 10 000 of the largest frames are
// 640 MB.
constexpr std::size_t kPageBytes = 8u << 20;
constexpr std::uint32_t kStep = kPageBytes / kMaxFrameBytes;
constexpr std::int64_t kMaxBlockMs = 30'000;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr FrameId kEnd{kLargest, kLargest};

Result<void> check_count(std::uint32_t count) {
  if (count == 0) {
    return fail_with(ErrorCode::invalid_input, "count_limit must be >= 1", "Ask for 1 to 10000 frames.");
  }
  if (count > kMaxFrames) {
    return fail_with(ErrorCode::invalid_input, "count_limit_exceeds_hard_cap", "Ask for 1 to 10000 frames.");
  }
  return {};
}

std::unexpected<Error> bad_cursor(const std::string& text) {
  return fail_with(ErrorCode::invalid_input, "cursor: " + truncate_utf8(text, 64),
                   "Give a frame's id (<ms>-<seq> or <ms>); a read also takes start and end.");
}

FrameId clamp(const FrameId& id) {
  return {std::min(id.ms, kLargest), std::min(id.seq, kLargest)};
}

// The first id that could follow.
FrameId after(const FrameId& given) {
  const auto id = clamp(given);
  if (id.seq < kLargest) return {id.ms, id.seq + 1};
  return {std::min(id.ms, kLargest - 1) + 1, 0};
}

// A bound of a read: of `<ms>` alone, the whole millisecond.
Result<FrameId> bound(const std::string& text, std::uint64_t seq) {
  if (text == "start") return FrameId{};
  if (text == "end") return kEnd;
  const auto id = FrameId::parse(text, seq);
  if (!id) return bad_cursor(text);
  return clamp(*id);
}

FrameView view(const Frame& frame) {
  const bool is_text = is_valid_utf8(frame.payload.data);
  FrameView seen{FrameId{frame.frame_ms, frame.frame_seq}.to_string(),
                 {{"frame_type", frame.frame_type},
                  {"ts", std::to_string(frame.ts_ms)},
                  {"payload", is_text ? frame.payload.data : to_base64(frame.payload.data)},
                  {"encoding", is_text ? "utf8" : "binary"},
                  {"source", frame.source},
                  {"mode", std::string(enum_name(frame.mode))}}};
  if (frame.correlation_id) seen.fields["correlation_id"] = *frame.correlation_id;
  if (frame.summary_version) seen.fields["summary_version"] = std::to_string(*frame.summary_version);
  if (frame.ttl_ms) seen.fields["ttl_ms"] = std::to_string(*frame.ttl_ms);
  return seen;
}

// Where reading all attempts goes on.
struct Place {
  std::uint32_t attempt_index{};
  FrameId from;
};
Result<Place> place_of(const std::string& cursor) {
  if (cursor.empty()) return Place{};
  const auto colon = cursor.find(':');
  if (colon == cursor.npos) return bad_cursor(cursor);
  const auto attempt = FrameId::parse(cursor.substr(0, colon));
  const auto id = FrameId::parse(cursor.substr(colon + 1));
  const bool fits = attempt && attempt->seq == 0 && attempt->ms <= std::numeric_limits<std::uint32_t>::max();
  if (!fits || !id) return bad_cursor(cursor);
  return Place{static_cast<std::uint32_t>(attempt->ms), after(*id)};
}

std::optional<core::Closing> closing_of(Reading& reading, const ExecutionId& id,
                                        std::uint32_t attempt_index) {
  reading.unit.want<Execution>(id);
  const auto* ended = reading.find<Attempt>({id.partition, id.uuid, attempt_index});
  return core::closing_of(reading.unit.find<Execution>(id), attempt_index, ended);
}

// Hands over frames step by step, while the page has room for more. `bytes`: what is in it.
template <class Take>
void each_frame(Reading& reading, store::FrameScan scan, std::size_t& bytes, Take take) {
  auto left = scan.limit;
  while (left > 0 && bytes < kPageBytes) {
    scan.limit = std::min<std::size_t>(left, kStep);
    const auto frames = reading.session.frames(scan);
    for (const auto& frame : frames) {
      bytes += frame.payload.data.size();
      take(frame);
    }
    if (frames.size() < scan.limit) return;
    left -= frames.size();
    scan.from = after(FrameId{frames.back().frame_ms, frames.back().frame_seq});
  }
}

struct Wanted {
  ExecutionId execution_id;
  std::uint32_t attempt_index;
  FrameId from;
  FrameId to;
  std::uint32_t count;
  FrameVisibility visibility;
};
Result<StreamPage> page_of(Readers& readers, const Wanted& wanted) {
  return readers.read([&](Reading& reading) -> Result<StreamPage> {
    const auto key = core::stream_key(wanted.execution_id, wanted.attempt_index);
    StreamPage page;
    std::size_t bytes = 0;
    const auto* stream = reading.find<Stream>(key);
    if (stream && !core::has_expired(*stream, reading.now_ms) && wanted.from <= wanted.to) {
      const bool some = wanted.visibility == FrameVisibility::exclude_best_effort;
      each_frame(reading, {key, wanted.from, wanted.to, some, wanted.count}, bytes,
                 [&](const Frame& frame) { page.frames.push_back(view(frame)); });
    }
    // Behind a full page there may be more: a reader that stops where the stream is closed must not stop
    // here.
    if (bytes >= kPageBytes) return page;
    if (const auto closing = closing_of(reading, wanted.execution_id, wanted.attempt_index)) {
      page.closed_at = closing->at_ms;
      page.closed_reason = closing->reason;
    }
    return page;
  });
}

Result<void> check_tail(const TailStream& request) {
  if (auto ok = check_count(request.count); !ok) return ok;
  if (!FrameId::parse(request.after)) return bad_cursor(request.after);
  if (request.block_ms >= 0 && request.block_ms <= kMaxBlockMs) return {};
  return fail_with(ErrorCode::invalid_input, "block_ms: out of range", "Wait for 0 to 30000 ms.");
}

Result<StreamPage> look(Readers& readers, const TailStream& request) {
  const auto from = after(*FrameId::parse(request.after));
  return page_of(
      readers, {request.execution_id, request.attempt_index, from, kEnd, request.count, request.visibility});
}

}  // namespace

Result<StreamPage> answer(Readers& readers, const ReadStream& request) {
  if (auto ok = check_count(request.count); !ok) return std::unexpected(ok.error());
  const auto from = bound(request.from, 0);
  if (!from) return std::unexpected(from.error());
  const auto to = bound(request.to, kLargest);
  if (!to) return std::unexpected(to.error());
  return page_of(
      readers, {request.execution_id, request.attempt_index, *from, *to, request.count, request.visibility});
}

Result<OutputPage> answer(Readers& readers, const ReadOutput& request) {
  if (auto ok = check_count(request.count); !ok) return std::unexpected(ok.error());
  const auto seen = place_of(request.cursor);
  if (!seen) return std::unexpected(seen.error());
  return readers.read([&](Reading& reading) -> Result<OutputPage> {
    auto streams = reading.session.streams_of(request.execution_id);
    if (request.latest_attempt_only && streams.size() > 1) streams.erase(streams.begin(), streams.end() - 1);
    const bool some = request.visibility == FrameVisibility::exclude_best_effort;
    OutputPage page;
    std::size_t bytes = 0;
    for (const auto& stream : streams) {
      if (stream.attempt_index < seen->attempt_index || core::has_expired(stream, reading.now_ms)) continue;
      const auto from = stream.attempt_index == seen->attempt_index ? seen->from : FrameId{};
      // One more than asked for tells whether there are more.
      const auto left = request.count + 1 - page.frames.size();
      each_frame(reading, {stream.key(), from, kEnd, some, left}, bytes, [&](const Frame& frame) {
        page.frames.push_back({stream.attempt_index, view(frame)});
      });
      if (page.frames.size() <= request.count && bytes < kPageBytes) continue;
      if (page.frames.size() > request.count) page.frames.pop_back();
      const auto& last = page.frames.back();
      page.next_cursor = std::to_string(last.attempt_index) + ":" + last.frame.id;
      break;
    }
    return page;
  });
}

void tail(Readers& readers, Watchers& watchers, TailStream request,
          std::function<void(Result<StreamPage>)> answer) {
  if (auto ok = check_tail(request); !ok) return answer(std::unexpected(ok.error()));
  if (request.block_ms == 0) return answer(look(readers, request));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.block_ms);
  auto name = stream_of(request.execution_id);
  const bool waits =
      watchers.watch(std::move(name), until, [&readers, request = std::move(request), answer](bool last) {
        auto page = look(readers, request);
        const bool done = last || !page || !page->frames.empty() || page->closed_at;
        if (done) answer(std::move(page));
        return done;
      });
  if (!waits) answer(std::unexpected(too_many_wait()));
}

Result<std::optional<SummaryDocument>> answer(Readers& readers, const ReadSummary& request) {
  return readers.read([&](Reading& reading) -> Result<std::optional<SummaryDocument>> {
    const auto* found =
        reading.find<StreamSummary>(core::stream_key(request.execution_id, request.attempt_index));
    if (!found) return std::nullopt;
    return SummaryDocument{.document_json = found->document_json,
                           .version = found->version,
                           .patch_kind = found->patch_kind,
                           .first_applied_ms = found->first_applied_ms,
                           .last_updated_ms = found->last_updated_ms};
  });
}

Result<std::vector<StreamInfo>> answer(Readers& readers, const ListStreams& request) {
  return readers.read([&](Reading& reading) -> Result<std::vector<StreamInfo>> {
    std::vector<StreamInfo> found;
    for (const auto& stream : reading.session.streams_of(request.execution_id)) {
      const auto closing = closing_of(reading, request.execution_id, stream.attempt_index);
      found.push_back(
          {.stream_id = request.execution_id.to_string() + ":" + std::to_string(stream.attempt_index),
           .attempt_index = stream.attempt_index,
           .created_at = stream.created_at_ms,
           .frame_count = stream.frame_count,
           .frames_kept = core::has_expired(stream, reading.now_ms) ? 0 : stream.frames_kept,
           .total_bytes = stream.total_bytes,
           .last_id = FrameId{stream.last_ms, stream.last_seq}.to_string(),
           .last_frame_at = stream.last_frame_at_ms,
           .retention_maxlen = stream.retention_maxlen,
           .maxlen_applied_last = stream.maxlen_applied_last,
           .has_durable_frame = stream.has_durable_frame,
           .has_summary = reading.find<StreamSummary>(stream.key()) != nullptr,
           .closed_at = closing ? std::optional(closing->at_ms) : std::nullopt,
           .closed_reason = closing ? std::optional(closing->reason) : std::nullopt});
    }
    return found;
  });
}

}  // namespace flowfabric::engine
