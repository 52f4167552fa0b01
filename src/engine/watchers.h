// Those who wait for something to happen: for frames of a stream, or for events. Woken by the name of what
// they watch, answered with nothing when their time is up. One thread serves them all; one that waits costs
// neither a thread, a timer nor a look at the store.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/operation.h"
#include "flowfabric/events.h"

namespace flowfabric::engine {

// What can be watched. No name of a lane begins like these.
std::string stream_of(const ExecutionId& id);
std::string feed_of(EventFamily family);
bool is_watchable(const std::string& name);
Error too_many_wait();

class Watchers {
 public:
  // Looks, and answers if there is something, or if it is told that this is the last look. True: it has
  // answered.
  using Look = std::move_only_function<bool(bool last)>;

  // `others_write`: what another server writes is told by a bell, and looked for now and then in case one was
  // not heard.
  Watchers(std::size_t limit, bool others_write);
  ~Watchers();

  // The first look is taken soon, on a thread of the engine. False: too many wait already, or it is over.
  [[nodiscard]] bool watch(std::string name, SteadyTime until, Look look);

  bool are_there() const { return count_ > 0; }
  std::size_t size() const { return count_; }
  // Something has happened to these, and is stored.
  void wake(const std::vector<std::string>& names);
  void wake_all();

  // Those who wait take their last look.
  void stop();

 private:
  struct Waiting {
    std::string name;
    SteadyTime until;
    Look look;
    bool is_woken{true};  // something may have happened since its last look
  };
  using Place = std::list<Waiting>::iterator;

  void loop();
  void wake(Place place);
  void take_looks(const std::vector<Place>& woken);
  void remove(Place place);

  const std::size_t limit_;
  const bool others_write_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_{false};
  std::list<Waiting> waiting_;
  std::unordered_multimap<std::string, Place> by_name_;
  std::multimap<SteadyTime, Place> by_time_;
  std::vector<Place> woken_;
  std::thread thread_;
};

}  // namespace flowfabric::engine
