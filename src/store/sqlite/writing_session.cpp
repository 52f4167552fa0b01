#include "store/sqlite/writing_session.h"

#include <algorithm>

#include "store/sqlite/redo/write_down.h"

namespace flowfabric::store::sqlite {

namespace {

using namespace std::chrono_literals;
using core::Unit;

// Whoever is told takes its time: what is worked out meanwhile must not pile up.
constexpr std::size_t kMostUntold = 8;
// How far the tables may be behind. The more, the more is written once instead of several times; and the
// longer reads wait.
constexpr std::size_t kMostUnwrittenChanges = 32768;
constexpr std::size_t kMostUnwrittenBytes = 32 << 20;
constexpr std::size_t kMostUnwritten = 64;
constexpr auto kTryAgainAfter = 100ms;

const StoreFailure kRestsOnFailure{{ErrorCode::unavailable, "a call before this one could not be stored",
                                    "The disk reported trouble. Nothing of this call was stored; repeat it."},
                                   Retry::now};

}  // namespace

WritingSession::WritingSession(SessionSettings settings)
    : SqliteSession(settings),
      writer_(settings.path, settings.durability, settings.health),
      redo_(settings.path, writer_.position().log_id, settings.durability),
      handed_over_(writer_.position().applied),
      durable_(handed_over_),
      written_(handed_over_) {
  recent_ = &known_;
  log_thread_ = std::thread([this] { log_loop(); });
  write_thread_ = std::thread([this] { write_loop(); });
  tidy_thread_ = std::thread([this] { tidy_loop(); });
}

WritingSession::~WritingSession() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (auto* waiting : {&for_logger_, &for_writer_, &for_tidier_}) waiting->notify_all();
  log_thread_.join();
  for_writer_.notify_all();  // there is nothing to wait for any more
  write_thread_.join();
  tidy_thread_.join();
  // What could not be written stays in the redo log.
  if (!unwritten_.empty()) return;
  try {
    if (!writer_.empty_log()) writer_.sync();
    redo_.remove();
  } catch (const StoreFailure&) {
    // Whatever is left of the logs is for the next process.
  }
}

// ---- the caller ----

bool WritingSession::is_in_trouble() const {
  return has_failed_ || held_up_ || !settings().health->is_well();
}

void WritingSession::throw_trouble() const {
  settings().health->require();
  if (has_failed_) throw kRestsOnFailure;
  if (held_up_) throw *held_up_;
}

// For good.
void WritingSession::give_up(const StoreFailure& failure) {
  settings().health->has_failed(failure);
  settings().shown->held_up(settings().health->failure());
  std::lock_guard lock(mutex_);
  for (auto* waiting : {&for_caller_, &for_logger_, &for_writer_, &for_tidier_}) waiting->notify_all();
}

// Goes on from what is durable.
void WritingSession::recover(std::unique_lock<std::mutex>& lock) {
  // The writer may still hold what has failed: its number will be another's.
  for_caller_.wait(lock, [&] {
    const bool has_let_go = untold_.empty() && unwritten_.empty() && !is_writing_;
    return held_up_ || has_let_go || !settings().health->is_well();
  });
  settings().health->require();
  if (held_up_) throw *held_up_;
  handed_over_ = durable_ = written_;
  known_ = {};
  last_events_.reset();
  has_failed_ = false;
}

std::int64_t WritingSession::begin(Unit& unit) {
  std::uint64_t written = 0;
  {
    std::unique_lock lock(mutex_);
    if (has_failed_) recover(lock);
    throw_trouble();
    written = written_;
  }
  known_.are_written(written);
  return SqliteSession::begin(unit);
}

void WritingSession::see_everything() {
  if (!known_.is_ahead()) return;
  std::uint64_t written = 0;
  {
    std::unique_lock lock(mutex_);
    for_caller_.wait(lock, [&] { return unwritten_.empty() || is_in_trouble(); });
    throw_trouble();
    written = written_;
  }
  known_.are_written(written);
  begin_reading();
}

EventNumbers& WritingSession::last_events() {
  if (!last_events_) last_events_ = writer_.last_events();
  return *last_events_;
}

namespace {

void count_events(EventNumbers& last, const Unit& unit) {
  for (const auto& type : event_types()) {
    last[type.place] += static_cast<std::int64_t>(unit.appended(type.place).size());
  }
}

}  // namespace

// Nothing is under way.
void WritingSession::write_at_once(std::shared_ptr<const Unit> unit) {
  const Worked batch{std::move(unit), last_events(), handed_over_ + 1};
  wrote_unsynced_ = settings().durability != Durability::full;
  try {
    writer_.write(batch);
  } catch (...) {
    known_ = {};
    last_events_.reset();
    if (!settings().health->is_well()) give_up(settings().health->failure());
    throw;
  }
  count_events(*last_events_, *batch.unit);
  known_.remember(*batch.unit);
  std::lock_guard lock(mutex_);
  handed_over_ = durable_ = written_ = batch.number;
}

void WritingSession::commit(Unit& unit) {
  rollback();
  await_durable();
  {
    std::lock_guard lock(mutex_);
    throw_trouble();
  }
  write_at_once(std::shared_ptr<const Unit>(std::shared_ptr<void>(), &unit));  // the caller's
}

void WritingSession::commit_behind(std::unique_ptr<Unit> unit, bool others_wait, Settled settled) {
  rollback();
  const bool has_changes = unit->has_changes();
  {
    std::unique_lock lock(mutex_);
    for_caller_.wait(lock, [&] {
      const bool has_room = untold_.size() < kMostUntold && unwritten_.size() < kMostUnwritten &&
                            unwritten_changes_ < kMostUnwrittenChanges &&
                            unwritten_bytes_ < kMostUnwrittenBytes;
      return is_in_trouble() || has_room;
    });
    throw_trouble();
    const bool is_alone = untold_.empty() && (!has_changes || (unwritten_.empty() && !others_wait));
    if (!is_alone) {
      Worked batch{std::move(unit), {}, 0};
      if (has_changes) {
        // Nobody else uses the connection while there is nothing to write.
        batch.last_events = last_events();
        count_events(*last_events_, *batch.unit);
        batch.number = ++handed_over_;
        unwritten_.push_back(batch);
        unwritten_changes_ += batch.unit->change_count();
      }
      untold_.emplace_back(batch, std::move(settled));
      lock.unlock();
      for_logger_.notify_one();
      if (!has_changes) return;
      for_writer_.notify_one();
      known_.add(batch.unit, batch.number);
      return;
    }
  }
  if (has_changes) write_at_once(std::move(unit));
  settled(std::nullopt);
}

void WritingSession::await_durable() {
  std::unique_lock lock(mutex_);
  for_caller_.wait(lock, [&] {
    const bool may_be_written = !held_up_ && settings().health->is_well();
    return untold_.empty() && (unwritten_.empty() || !may_be_written);
  });
}

// ---- the logger ----

void WritingSession::log_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    for_logger_.wait(lock, [&] { return stopping_ || !untold_.empty(); });
    if (untold_.empty()) return;
    // A deque's elements stay where they are while others are added at its end.
    std::vector<Untold*> batches;
    for (auto& batch : untold_) batches.push_back(&batch);
    lock.unlock();
    make_durable(batches);
    lock.lock();
    untold_.erase(untold_.begin(), untold_.begin() + static_cast<std::ptrdiff_t>(batches.size()));
    for_caller_.notify_all();
  }
}

void WritingSession::make_durable(const std::vector<Untold*>& batches) {
  std::optional<StoreFailure> failure;
  {
    std::lock_guard lock(mutex_);
    if (has_failed_ && settings().health->is_well()) failure = kRestsOnFailure;
  }
  std::uint64_t last = 0;
  if (!failure) failure = write_down_all(batches, last);
  if (failure || last > 0) {
    std::lock_guard lock(mutex_);
    if (failure) {
      has_failed_ = true;
      // Whatever was handed over since rests on it.
      for (; !unwritten_.empty() && unwritten_.back().number > durable_; unwritten_.pop_back()) {
        forget_unwritten(unwritten_.back());
      }
      if (unwritten_.empty()) held_up_.reset();  // there is nothing to be written any more
    } else {
      durable_ = last;
      for (const auto* each : batches) {
        if (each->batch.number == 0) continue;
        // What is durable and not yet written stands here in the order of its numbers, one by one.
        unwritten_[each->batch.number - unwritten_.front().number].bytes = each->batch.bytes;
        unwritten_bytes_ += each->batch.bytes;
      }
      settings().shown->told(last);
    }
    for_writer_.notify_one();
    if (failure) for_caller_.notify_all();
  }
  for (auto* each : batches) {
    each->settled(failure);
    *each = {};
  }
}

// What went wrong. Nothing was stored then, or it says that nobody knows.
std::optional<StoreFailure> WritingSession::write_down_all(const std::vector<Untold*>& batches,
                                                           std::uint64_t& last) {
  try {
    settings().health->require();
    for (auto* each : batches) {
      auto& batch = each->batch;
      if (batch.number == 0) continue;
      // An entry may not outlive what was written before it.
      if (wrote_unsynced_.exchange(false)) writer_.sync();
      batch.bytes = redo_.add(batch.number,
                              [&](RedoEntry& entry) { write_down(*batch.unit, batch.last_events, entry); });
      last = batch.number;
    }
    if (last > 0) redo_.sync();
    return std::nullopt;
  } catch (const StoreFailure& failure) {
    return drop(failure);
  } catch (const std::exception& thrown) {
    return drop({{ErrorCode::transport, thrown.what(),
                  "The batch could not be written down; nothing was changed. Repeat the call."}});
  }
}

StoreFailure WritingSession::drop(StoreFailure failure) {
  try {
    if (failure.retry != Retry::after_restart) redo_.drop_gathered();
  } catch (const StoreFailure& worse) {
    failure = worse;
  }
  if (failure.retry == Retry::after_restart) give_up(failure);
  return failure;
}

void WritingSession::forget_unwritten(const Worked& batch) {
  unwritten_changes_ -= batch.unit->change_count();
  unwritten_bytes_ -= batch.bytes;
}

// ---- the writer ----

void WritingSession::write_loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      for_writer_.wait(lock, [&] { return !unwritten_.empty() || (stopping_ && untold_.empty()); });
      if (unwritten_.empty() || !settings().health->is_well()) return;
      is_writing_ = true;
    }
    std::optional<StoreFailure> failure;
    try {
      write_some();
    } catch (const StoreFailure& thrown) {
      failure = thrown;
    } catch (const std::exception& thrown) {
      failure = StoreFailure{{ErrorCode::unavailable, thrown.what(),
                              "What was stored cannot be put into the tables. Repeat the call later."}};
    }
    if (failure && failure->retry == Retry::after_restart) give_up(*failure);
    std::unique_lock lock(mutex_);
    is_writing_ = false;
    held_up_ = unwritten_.empty() ? std::nullopt : failure;
    for_caller_.notify_all();
    if (!held_up_) continue;
    settings().shown->held_up(*failure);
    if (for_writer_.wait_for(lock, kTryAgainAfter, [&] { return stopping_; })) return;
  }
}

void WritingSession::write_some() {
  std::vector<Worked> batches;
  {
    std::lock_guard lock(mutex_);
    batches.assign(unwritten_.begin(), unwritten_.end());
  }
  if (batches.empty()) return;
  const auto last = batches.back().number;
  const bool are_written = writer_.write_logged(batches, [&] {
    std::unique_lock lock(mutex_);
    for_writer_.wait(lock, [&] { return durable_ >= last || is_in_trouble(); });
    return durable_ >= last && settings().health->is_well();
  });
  // Some of them turned out not to be durable, and are gone.
  if (!are_written) return;
  {
    std::lock_guard lock(mutex_);
    for (; !unwritten_.empty() && unwritten_.front().number <= last; unwritten_.pop_front()) {
      forget_unwritten(unwritten_.front());
    }
    written_ = last;
  }
  settings().shown->shown(last);
  for_tidier_.notify_one();
}

// ---- the tidier ----

bool WritingSession::may_tidy() const {
  const auto unsafe = redo_.wants_safe();
  return writer_.wants_shorter_log() || (unsafe > 0 && unsafe <= written_);
}

void WritingSession::tidy_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    for_tidier_.wait(lock, [&] { return stopping_ || may_tidy(); });
    if (stopping_ || !settings().health->is_well()) return;
    const auto written = written_;
    lock.unlock();
    try {
      writer_.shorten_log();
      if (redo_.wants_safe() > 0) {
        writer_.sync();
        redo_.is_safe(written);
      }
      lock.lock();
    } catch (const StoreFailure& failure) {
      // The writing thread meets a full disk, too, and tells; the redo log goes on in the file it has.
      if (failure.retry == Retry::after_restart) give_up(failure);
      lock.lock();
      for_tidier_.wait_for(lock, kTryAgainAfter, [&] { return stopping_; });
    }
  }
}

}  // namespace flowfabric::store::sqlite
