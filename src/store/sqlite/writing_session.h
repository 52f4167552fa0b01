// The session of the one writer. Batches pass through three threads:
//
//     caller: work out batch 4  │  writer: write batches 2, 3  │  syncer: make batch 1 durable, and tell
//
// What batches 2 and 3 have changed is in memory (`Recent`), so that batch 4 can be worked out on top of it
// although the database does not show it yet. A question that only an index can answer waits until it does.
// When a batch cannot be written, or not be made durable, all that was worked out on top of it is discarded.
//
// With nothing else to do, the caller does it all by itself: that saves an idle engine two changes of thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "store/sqlite/session.h"
#include "store/sqlite/writer.h"

namespace flowfabric::store::sqlite {

class WritingSession final : public SqliteSession {
 public:
  explicit WritingSession(SessionSettings settings);
  ~WritingSession() override;

  std::int64_t begin(core::Unit& unit) override;
  void commit(core::Unit& unit) override;
  void commit_behind(std::unique_ptr<core::Unit> unit, bool others_wait, Settled settled) override;
  void await_durable() override;

 private:
  // A batch that was worked out, until it was told of.
  struct Behind {
    std::shared_ptr<const core::Unit> unit;
    Settled settled;
    bool has_changes{};
    bool is_written{};
    std::optional<StoreFailure> failure{};
  };

  void see_everything() override;
  void write_at_once(const core::Unit& unit);
  void write_loop();
  void sync_loop();
  void settle(const std::vector<Behind*>& batches);

  Writer writer_;
  Recent known_;

  std::mutex mutex_;
  std::condition_variable moved_;
  std::deque<Behind> behind_;
  std::size_t to_write_{0};  // of them
  bool has_failed_{false};   // what is worked out now rests on something that was not stored
  bool stopping_{false};
  std::optional<StoreFailure> trouble_;  // of the batch told of last, while what follows rests on it
  std::thread write_thread_;
  std::thread sync_thread_;
};

}  // namespace flowfabric::store::sqlite
