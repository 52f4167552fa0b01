// The parts of a running engine, and how they tell each other what has happened.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/clock.h"
#include "engine/committers.h"
#include "engine/readers.h"
#include "engine/tally.h"
#include "engine/waiting_claims.h"
#include "engine/watchers.h"
#include "flowfabric/engine.h"
#include "flowfabric/handle.h"

namespace flowfabric::engine {

struct Runtime {
  Runtime(std::unique_ptr<store::Store> opened, EngineOptions given, HandleBackend handles);
  ~Runtime();

  // Another server has rung: lanes that offer something, and names that may be watched.
  void heard(std::vector<std::string> names);
  void stop(std::chrono::milliseconds grace);
  EngineStats stats() const;

  EngineOptions options;
  const HandleBackend backend;
  std::unique_ptr<store::Store> store;
  Readers readers;
  Tally tally;
  Watchers watchers;

 private:
  void tell_others(const std::vector<std::string>& names);
  void close_bell();
  void note(const BatchEffects& effects);
  void tell_warnings(const BatchEffects& effects);
  std::vector<ExecutionId> streaming_among(const BatchEffects& effects);

  std::mutex stop_mutex_;
  std::atomic<bool> clock_is_up_{false};
  std::mutex bell_mutex_;
  std::unique_ptr<store::Bell> bell_;  // null where nobody else can hear it
  std::unordered_set<ExecutionId> streaming_;

 public:
  WaitingClaims waiting;
  // Their threads use everything above, from the moment they are made.
  Committers committers;
  Clock clock;
};

}  // namespace flowfabric::engine

struct flowfabric::Engine::Impl : engine::Runtime {
  using Runtime::Runtime;
};
