#include "engine/runtime.h"

namespace flowfabric::engine {

Runtime::Runtime(std::unique_ptr<store::Store> opened, EngineOptions given, HandleBackend handles)
    : options(std::move(given)),
      backend(handles),
      store(std::move(opened)),
      readers(*store, partitions_of(options), options.operation_deadline),
      watchers(options.max_watchers, store->is_shared()),
      waiting(options.max_waiting_claims,
              [this](SteadyTime until) {
                if (clock_is_up_) clock.note_waiting(until);
              }),
      committers(*store, options, waiting, [this](const BatchEffects& effects) { note(effects); },
                 {.unserved = [this](const std::vector<std::string>& lanes) { tell_others(lanes); },
                  .waits_when_away = store->waits_when_away()}),
      clock(*store, committers, waiting, options) {
  clock_is_up_ = true;
  auto opened_bell = store->open_bell([this](const std::vector<std::string>& names) { heard(names); });
  std::lock_guard lock(bell_mutex_);
  bell_ = std::move(opened_bell);
}

Runtime::~Runtime() {
  close_bell();
}

void Runtime::tell_others(const std::vector<std::string>& names) {
  std::lock_guard lock(bell_mutex_);
  if (bell_) bell_->ring(names);
}

void Runtime::heard(std::vector<std::string> names) {
  const bool everywhere = names.empty();
  if (everywhere) watchers.wake_all();
  watchers.wake(names);
  std::erase_if(names, is_watchable);
  if ((everywhere || !names.empty()) && waiting.waits_for(names)) clock.hurry();
}

// The bell's thread uses the other parts.
void Runtime::close_bell() {
  std::unique_ptr<store::Bell> closing;
  {
    std::lock_guard lock(bell_mutex_);
    closing = std::move(bell_);
  }
}

// On the committer's thread, after every commit.
void Runtime::note(const BatchEffects& effects) {
  tally.add(effects);
  tell_warnings(effects);
  if (!effects.ended_attempts.empty()) options.attempts_ended(effects.ended_attempts);
  if (clock_is_up_ && effects.earliest_due) clock.note_due(*effects.earliest_due);
  if (!store->is_shared() && !watchers.are_there()) return;
  std::vector<std::string> names;
  for (const auto family : effects.feeds) names.push_back(feed_of(family));
  for (const auto& id : effects.written) names.push_back(stream_of(id));
  if (store->is_shared()) {
    for (const auto& id : streaming_among(effects)) names.push_back(stream_of(id));
    if (!names.empty()) tell_others(names);
  }
  if (!watchers.are_there()) return;
  // The end of an execution closes its stream.
  for (const auto& id : effects.changed) names.push_back(stream_of(id));
  watchers.wake(names);
}

void Runtime::tell_warnings(const BatchEffects& effects) {
  if (!options.warning) return;
  for (const auto& note : effects.notes) {
    if (note.what == core::Noted::warning) options.warning(note.label);
  }
}

// The changed executions whose streams were written to through this engine lately: somebody may watch them
// elsewhere.
std::vector<ExecutionId> Runtime::streaming_among(const BatchEffects& effects) {
  constexpr std::size_t most = 100'000;
  std::lock_guard lock(bell_mutex_);
  if (streaming_.size() > most) streaming_.clear();
  streaming_.insert(effects.written.begin(), effects.written.end());
  std::vector<ExecutionId> found;
  if (streaming_.empty()) return found;
  for (const auto& id : effects.changed) {
    if (streaming_.contains(id)) found.push_back(id);
  }
  return found;
}

void Runtime::stop(std::chrono::milliseconds grace) {
  std::lock_guard lock(stop_mutex_);
  const auto until = std::chrono::steady_clock::now() + grace;
  watchers.stop();
  committers.stop(until);
  clock.stop();
  close_bell();
  for (auto& operation : waiting.take_all()) operation.answer(nullptr);
}

EngineStats Runtime::stats() const {
  auto stats = committers.stats();
  clock.add_to(stats);
  tally.add_to(stats);
  for (const auto& [kind, count] : readers.failures()) stats.store_failures[kind] += count;
  stats.waiting_claims = waiting.size();
  stats.watchers = watchers.size();
  return stats;
}

}  // namespace flowfabric::engine
