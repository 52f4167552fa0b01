// Server-sent events: an endless answer, to which the engine adds a piece whenever there is something new.
//
// Nothing is queued for a client: the next piece is read when the client has taken the last one. A client
// that is too slow and has missed events is told so (`event: lagged`) with the cursor to resume from, and the
// connection ends. An event that cannot be read is reported (`event: damaged`) and passed. A client that
// leaves gives its place back at once, even while the engine still waits for it.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/pool.h"
#include "flowfabric/engine.h"
#include "http/message.h"

namespace flowfabric::api {

// The longest silence before a comment is sent, so that proxies do not give up.
inline constexpr std::int64_t kKeepAwakeMs = 15'000;

// `id: …`, `event: …` and `data: …`, ended by an empty line.
std::string sse_event(std::string_view id, std::string_view name, std::string_view data);

// The frames of one attempt from a frame on, until its stream is closed.
class LiveFrames : public http::BodySource, public std::enable_shared_from_this<LiveFrames> {
 public:
  LiveFrames(Engine& engine, TailStream from, std::shared_ptr<void> permit);
  void next(std::function<void(std::optional<std::string>)> piece) override;
  void abandon() override;

 private:
  Engine& engine_;
  TailStream from_;
  std::mutex mutex_;
  std::shared_ptr<void> permit_;
  bool ended_{false};
};

// ---- events -----------------------------------------------------------------------------------------------

// The families of events by the short names that a subscriber uses (`kind`).
std::optional<EventFamily> family_of(std::string_view kind);
std::string_view kind_of(EventFamily family);

inline constexpr std::size_t kFamilies = 6;

// A subscriber's place in each family. As text: `lease:12,completion:7`.
class EventPlace {
 public:
  // Refuses text that is not a place. `0` is the beginning of all families asked for.
  static Result<EventPlace> parse(std::string_view text, const std::vector<EventFamily>& families);
  std::string to_string() const;

  std::array<std::optional<std::string>, kFamilies> cursors{};  // of the engine; absent: from now on
};

// Events of several families, each in its own order: without end, or up to the newest. The first piece says
// where the events begin, and so does a piece after a long silence (`id` without data). A client that loses
// its connection resumes there, and not at the last event it saw.
class LiveEvents : public http::BodySource, public std::enable_shared_from_this<LiveEvents> {
 public:
  // `readers` runs the reads from the store, so that no thread that serves connections waits for them.
  LiveEvents(Engine& engine, Pool& readers, std::vector<EventFamily> families, EventFilter filter,
             EventPlace place, bool follows, std::shared_ptr<void> permit);
  // Finds the current end of the families without a cursor, and refuses cursors that the store has not given
  // out. Waits for the store.
  Result<void> start();

  void next(std::function<void(std::optional<std::string>)> piece) override;
  void abandon() override;

 private:
  struct Family {
    EventFamily family;
    bool asked{false};    // a read is in progress; only its answer moves the family's cursor
    bool is_read{false};  // the end was reached, for a client that does not follow
  };
  Result<void> start(EventFamily family);
  void ask(EventFamily family, std::string cursor);
  void take(EventFamily family, Result<EventBatch> batch);
  std::string told(const EventBatch& batch, EventFamily family);
  std::string refused(const Error& error, EventFamily family);
  std::string still_here() const;

  Engine& engine_;
  Pool& readers_;
  const EventFilter filter_;
  const bool follows_;
  std::mutex mutex_;
  std::shared_ptr<void> permit_;
  std::vector<Family> families_;
  EventPlace place_;
  std::string ready_;  // the next piece
  bool ends_{false};   // after the next piece
  std::function<void(std::optional<std::string>)> waiting_;
};

// The JSON of one event, without its cursor.
std::string event_json(const EventView& event);

}  // namespace flowfabric::api
