// Server-sent events: an endless answer, each piece of which the engine gives when there is something new.
//
// Nothing is queued for a client: what it is sent next is read when it has taken what was before. A client
// that is too slow finds events gone, is told so (`event: lagged`) with the cursor to resume from, and the
// connection ends. An event that cannot be read is told (`event: damaged`) and passed. One that leaves gives
// back its place at once, whatever is still being waited for.
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

// How long nothing may happen before a comment is sent, so that proxies do not give up.
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

// What a subscriber may ask for by its `kind`: the families of events, by shorter names.
std::optional<EventFamily> family_of(std::string_view kind);
std::string_view kind_of(EventFamily family);

inline constexpr std::size_t kFamilies = 6;

// How far somebody has read in each family. As text: `lease:12,completion:7`.
class EventPlace {
 public:
  // Refuses what is none. `0` is the beginning of all that are asked for.
  static Result<EventPlace> parse(std::string_view text, const std::vector<EventFamily>& families);
  std::string to_string() const;

  std::array<std::optional<std::string>, kFamilies> cursors{};  // of the engine; absent: from now on
};

// Events of several families, each in its own order: without end, or those that there are. The first piece
// says where they begin, and so does one that comes when nothing has happened for a while (`id` without
// data): whoever loses the connection then resumes there, and not where it last saw an event.
class LiveEvents : public http::BodySource, public std::enable_shared_from_this<LiveEvents> {
 public:
  // `readers`: for the looks at the store, which nobody who serves connections waits for.
  LiveEvents(Engine& engine, Pool& readers, std::vector<EventFamily> families, EventFilter filter,
             EventPlace place, bool follows, std::shared_ptr<void> permit);
  // Finds out where "now" is, for the families of which no cursor was given, and refuses cursors that the
  // store has not given out. Waits for the store.
  Result<void> start();

  void next(std::function<void(std::optional<std::string>)> piece) override;
  void abandon() override;

 private:
  struct Family {
    EventFamily family;
    bool asked{false};    // an answer is on its way; only it moves the family's cursor
    bool is_read{false};  // there is no more of it, for somebody who does not follow
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
  std::string ready_;  // what is to be sent next
  bool ends_{false};   // after that
  std::function<void(std::optional<std::string>)> waiting_;
};

// The JSON of one event, without its cursor.
std::string event_json(const EventView& event);

}  // namespace flowfabric::api
