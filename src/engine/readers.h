// A pool of reading sessions. Each read runs on the calling thread, in a transaction of its own. When all
// sessions are in use it waits for one; when the store is away it waits for that, if it is to be waited for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/backoff.h"
#include "engine/batch.h"
#include "store/store.h"

namespace flowfabric::engine {

struct Reading {
  store::Session& session;
  core::Unit& unit;
  std::int64_t now_ms;

  // Sessions load on the spot or in rounds, like any other.
  template <class Record>
  const Record* find(const typename Record::Key& key) {
    unit.want<Record>(key);
    session.load(unit);
    return unit.find<Record>(key);
  }
  template <class Record>
  const Record& require(const typename Record::Key& key) {
    find<Record>(key);
    return unit.require<Record>(key);
  }
  // Runs f(unit), which takes from the unit what it needs, until all of that was there.
  template <class F>
  auto run(F&& f) -> decltype(f(unit)) {
    unit.begin_operation();
    for (;;) {
      try {
        return f(unit);
      } catch (const core::NotLoaded&) {
        unit.undo();
        session.load(unit);
      }
    }
  }
  template <class Question>
  std::vector<typename Question::Found> ask(const Question& question) {
    unit.want_answer(question);
    session.load(unit);
    return unit.ask(question);
  }
};

class Readers {
 public:
  Readers(store::Store& store, const PartitionCounts& partitions,
          std::chrono::milliseconds patience = std::chrono::seconds(30))
      : store_(store), partitions_(partitions), patience_(patience) {}

  const PartitionCounts& partitions() const { return partitions_; }
  // How often the store failed, by the kind of error.
  Counts failures() const {
    std::lock_guard lock(mutex_);
    return failures_;
  }

  // Runs f(reading) inside a reading transaction.
  template <class F>
  auto read(F&& f) -> decltype(f(std::declval<Reading&>())) {
    const auto until = std::chrono::steady_clock::now() + patience_;
    Backoff backoff(std::chrono::milliseconds(10), std::chrono::milliseconds(500));
    bool reconnected = false;
    for (;;) {
      try {
        return read_once(f, until);
      } catch (const core::MissingRecord& missing) {
        return std::unexpected(damaged(missing));
      } catch (const store::StoreFailure& failure) {
        count(failure);
        // A connection may have been lost long ago, unnoticed, and the others with it.
        if (failure.retry == store::Retry::when_back) {
          close_idle();
          if (!std::exchange(reconnected, true)) continue;
        }
        const bool waits = failure.retry == store::Retry::now ||
                           (failure.retry == store::Retry::when_back && store_.waits_when_away());
        if (!waits || std::chrono::steady_clock::now() >= until)
          return std::unexpected(told_to_caller(failure));
      } catch (const std::exception& thrown) {
        // As a batch does (`succeeds`): nothing that is thrown may leave a thread, and end the process.
        return fail_with(ErrorCode::unavailable, thrown.what(), "The engine could not read this. Repeat it.");
      }
      std::this_thread::sleep_for(backoff.next());
    }
  }

 private:
  static constexpr std::size_t kMaxIdle = 16;

  void count(const store::StoreFailure& failure) {
    std::lock_guard lock(mutex_);
    ++failures_[std::string(enum_name(error_info(failure.error.code).kind))];
  }

  void close_idle() {
    std::vector<std::unique_ptr<store::Session>> closed;
    std::lock_guard lock(mutex_);
    closed.swap(idle_);
  }

  // A session in use. One that is not given back is closed, whatever state it was in.
  class Borrowed {
   public:
    Borrowed(Readers& readers, std::chrono::steady_clock::time_point until)
        : readers_(readers), session_(readers.take(until)) {}
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() {
      std::lock_guard lock(readers_.mutex_);
      --readers_.in_use_;
      if (is_whole_ && readers_.idle_.size() < kMaxIdle) readers_.idle_.push_back(std::move(session_));
      readers_.returned_.notify_one();
    }
    store::Session& operator*() { return *session_; }
    void is_whole() { is_whole_ = true; }

   private:
    Readers& readers_;
    std::unique_ptr<store::Session> session_;
    bool is_whole_{false};
  };

  template <class F>
  auto read_once(F& f, std::chrono::steady_clock::time_point until) -> decltype(f(std::declval<Reading&>())) {
    Borrowed session(*this, until);
    core::Unit unit(*session);
    Reading reading{*session, unit, (*session).begin(unit)};
    auto result = f(reading);
    (*session).rollback();
    session.is_whole();
    return result;
  }

  std::unique_ptr<store::Session> take(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    const bool free = returned_.wait_until(lock, until, [&] { return in_use_ < store_.readers(); });
    if (!free) {
      throw store::StoreFailure{
          {ErrorCode::resource_exhausted, "readers",
           "All connections for reads are in use: repeat the call, or raise readers= in "
           "the store's URL."}};
    }
    ++in_use_;
    if (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
    lock.unlock();
    try {
      return store_.open_reader();
    } catch (...) {
      lock.lock();
      --in_use_;
      returned_.notify_one();
      throw;
    }
  }

  store::Store& store_;
  const PartitionCounts partitions_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  Counts failures_;
  std::condition_variable returned_;
  std::size_t in_use_{0};
  std::vector<std::unique_ptr<store::Session>> idle_;
};

}  // namespace flowfabric::engine
