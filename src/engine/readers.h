// A pool of reading sessions. Each read runs on the calling thread, in a transaction of its own.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

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
};

class Readers {
 public:
  Readers(store::Store& store, std::uint16_t partitions) : store_(store), partitions_(partitions) {}

  std::uint16_t partitions() const { return partitions_; }

  // Runs f(reading) inside a reading transaction.
  template <class F>
  auto read(F&& f) -> decltype(f(std::declval<Reading&>())) {
    try {
      auto session = take();
      core::Unit unit(*session);
      Reading reading{*session, unit, session->begin(unit)};
      auto result = f(reading);
      session->rollback();
      give_back(std::move(session));
      return result;
    } catch (const core::MissingRecord& missing) {
      return std::unexpected(damaged(missing));
    } catch (const store::StoreFailure& failure) {
      return std::unexpected(failure.error);  // and the session is closed, whatever state it was in
    }
  }

 private:
  static constexpr std::size_t kMaxIdle = 16;

  std::unique_ptr<store::Session> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto session = std::move(idle_.back());
        idle_.pop_back();
        return session;
      }
    }
    return store_.open_reader();
  }

  void give_back(std::unique_ptr<store::Session> session) {
    std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(session));
  }

  store::Store& store_;
  const std::uint16_t partitions_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<store::Session>> idle_;
};

}  // namespace flowfabric::engine
