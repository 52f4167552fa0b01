#include "api/live.h"

#include <algorithm>
#include <charconv>

#include "api/errors.h"
#include "api/json.h"
#include "model/base64.h"
#include "model/describe.h"

namespace flowfabric::api {

namespace {

constexpr std::string_view kKeepAwake = ": still here\n\n";
constexpr std::uint32_t kFramesPerPiece = 100;
constexpr std::uint32_t kEventsPerPiece = 100;

std::string error_event(const Error& error) {
  return sse_event("", "error", error_body(error, ""));
}

std::size_t place_of(EventFamily family) {
  return static_cast<std::size_t>(family);
}

}  // namespace

// Our JSON has no line breaks, so one line of data is enough.
std::string sse_event(std::string_view id, std::string_view name, std::string_view data) {
  std::string text;
  if (!id.empty()) text.append("id: ").append(id).append("\n");
  text.append("event: ").append(name).append("\ndata: ").append(data).append("\n\n");
  return text;
}

// ---- frames -----------------------------------------------------------------------------------------------

LiveFrames::LiveFrames(Engine& engine, TailStream from, std::shared_ptr<void> permit)
    : engine_(engine), from_(std::move(from)), permit_(std::move(permit)) {
  from_.block_ms = kKeepAwakeMs;
  from_.count = kFramesPerPiece;
}

void LiveFrames::next(std::function<void(std::optional<std::string>)> piece) {
  if (ended_) return piece(std::nullopt);
  engine_.post(from_, [self = shared_from_this(), piece = std::move(piece)](Result<StreamPage> page) {
    if (!page) {
      self->ended_ = true;
      return piece(error_event(page.error()));
    }
    std::string text;
    for (const auto& frame : page->frames) {
      JsonWriter out;
      out.object().field("id", frame.id).field("fields", frame.fields).end();
      text += sse_event(frame.id, "frame", out.text());
      self->from_.after = frame.id;
    }
    if (page->closed_at && page->frames.size() < kFramesPerPiece) {
      self->ended_ = true;
      JsonWriter out;
      out.object().field("closed_at", page->closed_at).field("closed_reason", page->closed_reason).end();
      text += sse_event("", "closed", out.text());
    }
    piece(text.empty() ? std::string(kKeepAwake) : std::move(text));
  });
}

void LiveFrames::abandon() {
  std::lock_guard lock(mutex_);
  permit_.reset();
}

// ---- events -----------------------------------------------------------------------------------------------

std::string_view kind_of(EventFamily family) {
  switch (family) {
    case EventFamily::lease_history:
      return "lease";
    case EventFamily::completion:
      return "completion";
    case EventFamily::signal_delivery:
      return "signal";
    case EventFamily::operator_:
      return "operator";
    case EventFamily::instance_tags:
      return "tags";
    case EventFamily::worker_registry:
      break;
  }
  return "worker";
}

std::optional<EventFamily> family_of(std::string_view kind) {
  for (std::size_t i = 0; i < kFamilies; ++i) {
    if (const auto family = static_cast<EventFamily>(i); kind_of(family) == kind) return family;
  }
  return std::nullopt;
}

Result<EventPlace> EventPlace::parse(std::string_view text, const std::vector<EventFamily>& families) {
  EventPlace place;
  if (text == "0") {
    for (const auto family : families) place.cursors[place_of(family)] = first_cursor();
    return place;
  }
  const auto bad = [] {
    return fail_with(ErrorCode::invalid_input, "cursor",
                     "Give the `id` of an event as it was sent, such as lease:12,completion:7, or 0 to start "
                     "with the oldest that is kept.");
  };
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const auto colon = part.find(':');
    if (colon == std::string_view::npos) return bad();
    const auto family = family_of(part.substr(0, colon));
    const auto digits = part.substr(colon + 1);
    std::int64_t number{};
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!family || digits.empty() || error != std::errc{} || last != digits.data() + digits.size() ||
        number < 0) {
      return bad();
    }
    place.cursors[place_of(*family)] = cursor_of(number);
  }
  return place;
}

std::string EventPlace::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < kFamilies; ++i) {
    if (!cursors[i]) continue;
    const auto number = parse_cursor(*cursors[i]);
    if (!number) continue;
    if (!text.empty()) text += ',';
    text.append(kind_of(static_cast<EventFamily>(i))).append(":").append(std::to_string(*number));
  }
  return text;
}

std::string event_json(const EventView& event) {
  JsonWriter out;
  out.object()
      .field("kind", kind_of(event.family))
      .field("name", event.type)
      .field("at", event.at)
      .field("execution_id", event.execution_id)
      .field("detail", event.fields)
      .end();
  return out.take();
}

LiveEvents::LiveEvents(Engine& engine, Pool& readers, std::vector<EventFamily> families, EventFilter filter,
                       EventPlace place, bool follows, std::shared_ptr<void> permit)
    : engine_(engine),
      readers_(readers),
      filter_(std::move(filter)),
      follows_(follows),
      permit_(std::move(permit)),
      place_(std::move(place)) {
  for (const auto family : families) families_.push_back({family});
}

Result<void> LiveEvents::start() {
  for (const auto& each : families_) {
    if (auto ok = start(each.family); !ok) return ok;
  }
  ready_ = still_here();
  return {};
}

Result<void> LiveEvents::start(EventFamily family) {
  auto& cursor = place_.cursors[place_of(family)];
  const auto looked = engine_.call(FollowEvents{.family = family, .cursor = cursor.value_or(""), .limit = 1});
  // Missed and unreadable events are reported within the stream.
  const bool is_told =
      !looked && cursor &&
      (looked.error().code == ErrorCode::stream_disconnected || looked.error().code == ErrorCode::corruption);
  if (!looked && !is_told) return std::unexpected(looked.error());
  if (!cursor) cursor = looked->cursor;
  return {};
}

void LiveEvents::ask(EventFamily family, std::string cursor) {
  readers_.run([self = shared_from_this(), family, cursor = std::move(cursor)] {
    self->engine_.post(FollowEvents{.family = family,
                                    .cursor = cursor,
                                    .filter = self->filter_,
                                    .limit = kEventsPerPiece,
                                    .wait_ms = self->follows_ ? kKeepAwakeMs : 0},
                       [self, family](Result<EventBatch> batch) { self->take(family, std::move(batch)); });
  });
}

std::string LiveEvents::still_here() const {
  return ": still here\nid: " + place_.to_string() + "\n\n";
}

std::string LiveEvents::told(const EventBatch& batch, EventFamily family) {
  std::string text;
  auto& cursor = place_.cursors[place_of(family)];
  for (const auto& event : batch.events) {
    cursor = event.cursor;
    text += sse_event(place_.to_string(), kind_of(family), event_json(event));
  }
  cursor = batch.cursor;
  return text;
}

std::string LiveEvents::refused(const Error& error, EventFamily family) {
  const bool is_damaged = error.code == ErrorCode::corruption;
  auto next = from_base64(error.detail);
  const bool names_next = next && parse_cursor(*next);
  ends_ = ends_ || !is_damaged || !names_next;
  if (!names_next) return error_event(error);
  place_.cursors[place_of(family)] = *std::move(next);
  JsonWriter out;
  const auto id = place_.to_string();
  out.object().field("cursor", id).field("detail", error.advice).end();
  return sse_event(id, is_damaged ? "damaged" : "lagged", out.text());
}

void LiveEvents::take(EventFamily family, Result<EventBatch> batch) {
  std::function<void(std::optional<std::string>)> piece;
  std::string text;
  {
    std::lock_guard lock(mutex_);
    for (auto& each : families_) {
      if (each.family != family) continue;
      each.asked = false;
      // A read that only passes events which the filter leaves out moves the cursor, and is not the last.
      each.is_read =
          !follows_ && batch && batch->events.empty() && batch->cursor == place_.cursors[place_of(family)];
    }
    text = std::exchange(ready_, {}) + (batch ? told(*batch, family) : refused(batch.error(), family));
    if (!waiting_) {
      ready_ = std::move(text);
      return;
    }
    piece = std::exchange(waiting_, nullptr);
    if (text.empty()) text = still_here();
  }
  piece(std::move(text));
}

void LiveEvents::next(std::function<void(std::optional<std::string>)> piece) {
  std::string text;
  std::vector<std::pair<EventFamily, std::string>> idle;
  {
    std::lock_guard lock(mutex_);
    text = std::exchange(ready_, {});
    ends_ = ends_ || std::ranges::all_of(families_, &Family::is_read);
    if (text.empty() && !ends_) {
      waiting_ = std::move(piece);
      for (auto& family : families_) {
        if (family.is_read || std::exchange(family.asked, true)) continue;
        idle.emplace_back(family.family, *place_.cursors[place_of(family.family)]);
      }
    }
  }
  if (piece) return piece(text.empty() ? std::nullopt : std::optional(std::move(text)));
  for (auto& [family, cursor] : idle) ask(family, std::move(cursor));
}

void LiveEvents::abandon() {
  std::lock_guard lock(mutex_);
  ends_ = true;
  waiting_ = nullptr;
  permit_.reset();
}

}  // namespace flowfabric::api
