#include "store/sqlite/writing_session.h"

#include <algorithm>

namespace flowfabric::store::sqlite {

namespace {

using core::Unit;

// Whoever is told takes its time: what is worked out meanwhile must not pile up.
constexpr std::size_t kMostBehind = 8;
// What was worked out while the writer was busy is written together: larger commits cost less.
constexpr std::size_t kMostToWrite = 4;

const StoreFailure kRestsOnFailure{{ErrorCode::unavailable, "a call before this one could not be stored",
                                    "The disk reported trouble. Nothing of this call was stored; repeat it."},
                                   Retry::now};

StoreFailure not_known_after(const StoreFailure& failure) {
  return {{ErrorCode::unavailable, failure.error.detail,
           "A call before this one could not be stored. It is not known whether this one was; repeating it "
           "is safe."}};
}

}  // namespace

WritingSession::WritingSession(SessionSettings settings)
    : SqliteSession(settings), writer_(settings.path, settings.durability, settings.durable) {
  recent_ = &known_;
  write_thread_ = std::thread([this] { write_loop(); });
  sync_thread_ = std::thread([this] { sync_loop(); });
}

WritingSession::~WritingSession() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  moved_.notify_all();
  write_thread_.join();
  sync_thread_.join();
}

std::int64_t WritingSession::begin(Unit& unit) {
  std::size_t to_write = 0;
  bool had_failed = false;
  {
    std::unique_lock lock(mutex_);
    if (has_failed_) moved_.wait(lock, [&] { return behind_.empty(); });
    had_failed = std::exchange(has_failed_, false);
    if (had_failed) trouble_.reset();
    to_write = to_write_;
  }
  if (had_failed) known_ = {};
  known_.are_written_but(to_write);
  return SqliteSession::begin(unit);
}

void WritingSession::see_everything() {
  if (!known_.is_ahead()) return;
  {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return to_write_ == 0; });
    if (has_failed_) throw kRestsOnFailure;
  }
  known_.are_written_but(0);
  begin_reading();
}

void WritingSession::write_at_once(const Unit& unit) {
  try {
    writer_.write({&unit});
    writer_.sync();
  } catch (...) {
    settings().durable->settle(1);
    known_ = {};
    throw;
  }
  settings().durable->settle(1);
  known_.remember(unit);
}

void WritingSession::commit(Unit& unit) {
  rollback();
  await_durable();
  {
    std::lock_guard lock(mutex_);
    if (has_failed_) throw kRestsOnFailure;
  }
  write_at_once(unit);
}

void WritingSession::commit_behind(std::unique_ptr<Unit> unit, bool others_wait, Settled settled) {
  rollback();
  const bool has_changes = unit->has_changes();
  {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] {
      const bool has_room = behind_.size() < kMostBehind && (!has_changes || to_write_ < kMostToWrite);
      return has_failed_ || has_room;
    });
    if (has_failed_) throw kRestsOnFailure;
    const bool is_alone = behind_.empty() && !(has_changes && others_wait);
    if (!is_alone) {
      const std::shared_ptr<const Unit> shared = std::move(unit);
      behind_.emplace_back(shared, std::move(settled), has_changes, !has_changes);
      if (has_changes) ++to_write_;
      lock.unlock();
      moved_.notify_all();
      if (has_changes) known_.add(shared);
      return;
    }
  }
  if (has_changes) write_at_once(*unit);
  settled(std::nullopt);
}

void WritingSession::await_durable() {
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [&] { return behind_.empty(); });
}

void WritingSession::write_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    moved_.wait(lock, [&] { return stopping_ || to_write_ > 0; });
    if (to_write_ == 0) return;
    std::vector<Behind*> batches;
    std::vector<const Unit*> units;
    for (auto& batch : behind_) {
      if (batch.is_written) continue;
      batches.push_back(&batch);
      units.push_back(batch.unit.get());
    }
    std::optional<StoreFailure> failure;
    if (has_failed_) failure = kRestsOnFailure;
    lock.unlock();
    try {
      if (failure)
        settings().durable->announce(units.size());
      else
        writer_.write(units);
    } catch (const StoreFailure& thrown) {
      failure = thrown;
    } catch (const std::exception& thrown) {
      failure = StoreFailure{{ErrorCode::unavailable, thrown.what(),
                              "The batch could not be written; nothing was changed. Repeat the call."}};
    }
    lock.lock();
    has_failed_ |= failure.has_value();
    for (auto* batch : batches) {
      batch->failure = failure;
      batch->is_written = true;
    }
    to_write_ -= batches.size();
    moved_.notify_all();
  }
}

void WritingSession::sync_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    moved_.wait(lock, [&] { return behind_.empty() ? stopping_ : behind_.front().is_written; });
    if (behind_.empty()) return;
    // A deque's elements stay where they are while others are added at its end.
    std::vector<Behind*> batches;
    for (auto& batch : behind_) {
      if (!batch.is_written) break;
      batches.push_back(&batch);
    }
    lock.unlock();
    settle(batches);
    writer_.shorten_log();
    lock.lock();
    behind_.erase(behind_.begin(), behind_.begin() + static_cast<std::ptrdiff_t>(batches.size()));
    moved_.notify_all();
  }
}

void WritingSession::settle(const std::vector<Behind*>& batches) {
  const auto changes = std::ranges::count_if(batches, &Behind::has_changes);
  std::optional<StoreFailure> unsynced;
  if (changes > 0 && !trouble_) {
    try {
      writer_.sync();
    } catch (const StoreFailure& failure) {
      unsynced = failure;
      std::lock_guard lock(mutex_);
      has_failed_ = true;
    }
  }
  settings().durable->settle(static_cast<std::uint64_t>(changes));
  for (auto* batch : batches) {
    auto failure = unsynced ? unsynced : std::move(batch->failure);
    if (!failure && trouble_) failure = not_known_after(*trouble_);
    if (failure) trouble_ = failure;
    batch->settled(failure);
    batch->settled = nullptr;
    batch->unit.reset();
  }
}

}  // namespace flowfabric::store::sqlite
