// Output of attempts, and events: pages, tails, and live streams.
#include <fmt/format.h>

#include "api/live.h"
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

constexpr std::uint32_t kMaxFrames = 1000;
constexpr std::int64_t kMaxBlockMs = 30'000;

ExecutionId id_of(const CallPtr& call) {
  return path_id<ExecutionId>("execution_id", call->segments[0]);
}

std::shared_ptr<void> permit_for(const CallPtr& call, Permits& permits, std::string_view what) {
  if (call->services.draining) {
    throw Error{ErrorCode::unavailable, std::string(what), "The server is shutting down."};
  }
  if (auto permit = permits.take()) return permit;
  throw Error{ErrorCode::resource_exhausted, fmt::format("{}: {}", what, permits.most()),
              "Too many read or follow streams of this server at once: try again in a moment."};
}

FrameVisibility visibility_of(const Query& query) {
  const auto given = query.text("visibility");
  if (!given) return FrameVisibility::all;
  const auto known = enum_from_name<FrameVisibility>(*given);
  if (!known)
    refuse_input("query parameter visibility must be all or exclude_best_effort",
                 "Give one of them, or none for all.");
  return *known;
}

void write_frame(JsonWriter& out, const FrameView& frame) {
  out.object().field("id", frame.id).field("fields", frame.fields).end();
}

void reply_page(Call& self, const StreamPage& page) {
  JsonWriter out;
  out.object().key("frames").array();
  for (const auto& frame : page.frames) write_frame(out, frame);
  out.end()
      .field("count", static_cast<std::uint64_t>(page.frames.size()))
      .field_if("closed_at", page.closed_at)
      .field_if("closed_reason", page.closed_reason)
      .end();
  self.reply(200, out.take());
}

void read_stream(const CallPtr& call) {
  ReadStream request{.execution_id = {}, .attempt_index = attempt_of(call)};
  const auto& query = call->query;
  request.from = query.text("from").value_or("start");
  request.to = query.text("to").value_or("end");
  request.count = read_limit(query, 100, 1, kMaxFrames);
  request.visibility = visibility_of(query);
  request.execution_id = id_of(call);
  auto permit = permit_for(call, call->services.stream_operations, "stream_ops");
  call->read(std::move(request), [permit](Call& self, const StreamPage& page) { reply_page(self, page); });
}

void tail_stream(const CallPtr& call) {
  TailStream request{.execution_id = {}, .attempt_index = attempt_of(call)};
  const auto& query = call->query;
  request.after = query.text("after").value_or("0-0");
  request.block_ms = query.number<std::int64_t>("block_ms").value_or(0);
  if (request.block_ms < 0 || request.block_ms > kMaxBlockMs) {
    refuse_input("query parameter block_ms must be between 0 and 30000", "Wait for less, and ask again.");
  }
  request.count = read_limit(query, 50, 1, kMaxFrames);
  request.visibility = visibility_of(query);
  request.execution_id = id_of(call);
  // A client that leaves gives its permit back, although the engine still waits.
  auto permit = std::make_shared<std::shared_ptr<void>>(
      permit_for(call, call->services.stream_operations, "stream_ops"));
  const auto answer = [permit](Call& self, const StreamPage& page) { reply_page(self, page); };
  if (request.block_ms == 0) return call->read(std::move(request), answer);
  call->exchange->on_abandoned = [call, permit] {
    permit->reset();
    reply_page(*call, StreamPage{});
  };
  call->run(std::move(request), answer);
}

// ---- live -------------------------------------------------------------------------------------------------

http::Response live(std::shared_ptr<http::BodySource> source) {
  return {.content_type = "text/event-stream",
          .headers = {{"cache-control", "no-store"}},
          .source = std::move(source)};
}

// The place at which a returning client left off.
std::optional<std::string> resume_point(const CallPtr& call) {
  if (const auto* last = call->exchange->request.header("last-event-id"); last && !last->empty())
    return *last;
  return call->query.text("after");
}

void follow_stream(const CallPtr& call) {
  TailStream from{.execution_id = {}, .attempt_index = attempt_of(call)};
  from.visibility = visibility_of(call->query);
  from.after = resume_point(call).value_or("0-0");
  if (!FrameId::parse(from.after))
    refuse_input("the cursor to resume from is not the id of a frame",
                 "Give the id of the last frame that you have seen, or none for all.");
  from.execution_id = id_of(call);
  auto permit = permit_for(call, call->services.live_streams, "live_streams");
  call->reply(live(std::make_shared<LiveFrames>(call->engine(), std::move(from), std::move(permit))));
}

std::vector<EventFamily> families_of(const Query& query) {
  std::vector<EventFamily> families;
  for (const auto& kind : query.all("kind")) {
    const auto family = family_of(kind);
    if (!family) {
      refuse_input("query parameter kind must be lease, completion, signal, operator, tags or worker",
                   "Repeat kind for several, or leave it out for all.");
    }
    if (std::ranges::find(families, *family) == families.end()) families.push_back(*family);
  }
  if (!families.empty()) return families;
  for (std::size_t i = 0; i < kFamilies; ++i) families.push_back(static_cast<EventFamily>(i));
  return families;
}

EventFilter event_filter_of(const Query& query) {
  EventFilter filter{.namespace_ = query.text("namespace"), .lane_id = query.text("lane")};
  filter.flow_id = query.id<FlowId>("flow");
  filter.execution_id = query.id<ExecutionId>("execution");
  filter.types = query.all("name");
  if (const auto tag = query.text("tag")) {
    const auto equals = tag->find('=');
    if (equals == std::string::npos) refuse_input("query parameter tag must be key=value", kTagAdvice);
    filter.tag = {tag->substr(0, equals), tag->substr(equals + 1)};
  }
  return filter;
}

bool follows(const Query& query) {
  const auto word = query.text("follow").value_or("true");
  if (word != "true" && word != "false")
    refuse_input("query parameter follow must be true or false", "false ends with the newest event.");
  return word == "true";
}

void follow_events(const CallPtr& call) {
  const auto families = families_of(call->query);
  auto filter = event_filter_of(call->query);
  const bool does_follow = follows(call->query);
  auto place = EventPlace();
  if (const auto from = resume_point(call)) place = unwrap(EventPlace::parse(*from, families));
  auto permit = permit_for(call, call->services.live_streams, "live_streams");
  auto events =
      std::make_shared<LiveEvents>(call->engine(), call->services.readers, families, std::move(filter),
                                   std::move(place), does_follow, std::move(permit));
  call->services.readers.run([self = call, events] {
    const auto started = events->start();
    if (!started) return self->reply(started.error());
    self->reply(live(events));
  });
}

// ---- one execution ----------------------------------------------------------------------------------------

void read_output(const CallPtr& call) {
  ReadOutput request;
  const auto& query = call->query;
  request.cursor = query.text("cursor").value_or("");
  const auto attempts = query.text("attempts").value_or("all");
  if (attempts != "all" && attempts != "latest")
    refuse_input("query parameter attempts must be all or latest", "Give one of them, or none for all.");
  request.latest_attempt_only = attempts == "latest";
  request.count = read_limit(query, 100, 1, kMaxFrames);
  request.visibility = visibility_of(query);
  request.execution_id = id_of(call);
  auto permit = permit_for(call, call->services.stream_operations, "stream_ops");
  call->read(std::move(request), [permit](Call& self, const OutputPage& page) {
    JsonWriter out;
    out.object().key("frames").array();
    for (const auto& [attempt_index, frame] : page.frames) {
      out.object()
          .field("attempt_index", attempt_index)
          .field("id", frame.id)
          .field("fields", frame.fields)
          .end();
    }
    self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
  });
}

void read_summary(const CallPtr& call) {
  const auto attempt = attempt_of(call);
  call->read(ReadSummary{.execution_id = id_of(call), .attempt_index = attempt},
             [](Call& self, const std::optional<SummaryDocument>& summary) {
               if (!summary) return self.reply(Error{ErrorCode::stream_not_found, "", "It has no summary."});
               JsonWriter out;
               out.object()
                   .key("document")
                   .raw(summary->document_json)
                   .field("version", summary->version)
                   .field("patch_kind", summary->patch_kind)
                   .field("first_applied_ms", summary->first_applied_ms)
                   .field("last_updated_ms", summary->last_updated_ms)
                   .end();
               self.reply(200, out.take());
             });
}

void list_streams(const CallPtr& call) {
  call->read(ListStreams{id_of(call)}, [](Call& self, const std::vector<StreamInfo>& streams) {
    JsonWriter out;
    out.object().key("streams").array();
    for (const auto& stream : streams) {
      out.object()
          .field("stream_id", stream.stream_id)
          .field("attempt_index", stream.attempt_index)
          .field("created_at", stream.created_at)
          .field("frame_count", stream.frame_count)
          .field("frames_kept", stream.frames_kept)
          .field("total_bytes", stream.total_bytes)
          .field("last_id", stream.last_id)
          .field("last_frame_at", stream.last_frame_at)
          .field("retention_maxlen", stream.retention_maxlen)
          .field("has_durable_frame", stream.has_durable_frame)
          .field("has_summary", stream.has_summary)
          .field("closed_at", stream.closed_at)
          .field("closed_reason", stream.closed_reason)
          .end();
    }
    self.reply(200, out.end().field("next_cursor", std::optional<std::string>{}).end().take());
  });
}

// The history of an execution, in order. The cursor is the number of entries read.
std::string_view kind_of_entry(std::string_view what) {
  if (what == "signal") return "signal";
  if (what == "ended") return "completion";
  if (what.starts_with("attempt_") || what == "lease_lost") return "lease";
  constexpr std::string_view lifecycle[] = {"created",          "delayed",        "waiting_for_children",
                                            "paused_by_budget", "suspended",      "resumed",
                                            "suspension_ended", "retry_scheduled"};
  return std::ranges::find(lifecycle, what) != std::end(lifecycle) ? "lifecycle" : "operator";
}

void read_history(const CallPtr& call) {
  const auto skip = call->query.number<std::uint32_t>("cursor").value_or(0);
  const auto limit = read_limit(call->query, 100, 1, 1000);
  call->read(ReadHistory{id_of(call)}, [skip, limit](Call& self, const std::vector<HistoryEntry>& entries) {
    const auto count = static_cast<std::uint32_t>(entries.size());
    const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, std::uint64_t{skip} + limit));
    JsonWriter out;
    out.object().key("events").array();
    for (auto i = skip; i < end; ++i) {
      const auto& entry = entries[i];
      out.object()
          .field("cursor", std::to_string(i + 1))
          .field("kind", kind_of_entry(entry.what))
          .field("name", entry.what)
          .field("at", entry.at);
      const auto attempt = entry.fields.find("attempt_index");
      out.key("attempt_index");
      if (attempt == entry.fields.end())
        out.null();
      else
        out.raw(attempt->second);
      out.field("detail", entry.fields).end();
    }
    out.end();
    out.field("next_cursor", end < count ? std::optional(std::to_string(end)) : std::nullopt).end();
    self.reply(200, out.take());
  });
}

constexpr Route kRoutes[] = {
    {"GET", "/v1/executions/{id}/attempts/{idx}/stream", "read_attempt_stream", Body::none, kSmallBody,
     read_stream},
    {"GET", "/v1/executions/{id}/attempts/{idx}/stream/tail", "tail_attempt_stream", Body::none, kSmallBody,
     tail_stream},
    {"GET", "/v1/executions/{id}/attempts/{idx}/stream/live", "follow_attempt_stream", Body::none, kSmallBody,
     follow_stream},
    {"GET", "/v1/executions/{id}/attempts/{idx}/summary", "read_summary", Body::none, kSmallBody,
     read_summary},
    {"GET", "/v1/executions/{id}/attempts/{idx}/stream/summary", "read_stream_summary", Body::none,
     kSmallBody, read_summary},
    {"GET", "/v1/executions/{id}/streams", "list_streams", Body::none, kSmallBody, list_streams},
    {"GET", "/v1/executions/{id}/stream", "read_output", Body::none, kSmallBody, read_output},
    {"GET", "/v1/executions/{id}/events", "read_history", Body::none, kSmallBody, read_history},
    {"GET", "/v1/events", "follow_events", Body::none, kSmallBody, follow_events},
};

}  // namespace

std::span<const Route> stream_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
