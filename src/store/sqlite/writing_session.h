// The session of the one writer. A busy engine's batches pass through three threads:
//
//     caller: work out batch 9  │  logger: make batch 8 durable, and tell  │  writer: batches 1 to 7 into
//     tables
//
// What is not in the tables yet is in memory (`Recent`), so that batch 9 can be worked out on top of it. A
// question that only an index can answer waits until it is there, and so do reads. The writer takes all that
// has come meanwhile as one transaction; what was changed several times is written once. It may fall behind
// by so much and no more.
//
// A batch that cannot be made durable is refused, with all that was worked out on top of it. What is durable
// and cannot be put into the tables (the disk is full) is tried again and again, and nothing new is accepted.
// After a failed sync nothing is tried any more (disk_health.h).
//
// A fourth thread moves long logs into the database. With nothing else to do, the caller writes its batch
// into the tables itself, durably.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "store/sqlite/redo/redo_log.h"
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
  // A batch that was handed over, until it was told of. Without a number: it has changed nothing.
  struct Untold {
    Worked batch;
    Settled settled;
  };

  void see_everything() override;
  bool is_in_trouble() const;
  void throw_trouble() const;
  void give_up(const StoreFailure& failure);
  void recover(std::unique_lock<std::mutex>& lock);
  EventNumbers& last_events();
  void write_at_once(std::shared_ptr<const core::Unit> unit);
  void log_loop();
  void make_durable(const std::vector<Untold*>& batches);
  std::optional<StoreFailure> write_down_all(const std::vector<Untold*>& batches, std::uint64_t& last);
  StoreFailure drop(StoreFailure failure);
  void forget_unwritten(const Worked& batch);
  void write_loop();
  void write_some();
  void tidy_loop();
  bool may_tidy() const;

  Writer writer_;
  RedoLog redo_;
  Recent known_;
  std::optional<EventNumbers> last_events_;  // absent: as the database has it

  std::mutex mutex_;
  // Whom a change of the following may concern.
  std::condition_variable for_caller_;
  std::condition_variable for_logger_;
  std::condition_variable for_writer_;
  std::condition_variable for_tidier_;
  std::deque<Untold> untold_;
  std::deque<Worked> unwritten_;
  std::size_t unwritten_changes_{0};
  std::size_t unwritten_bytes_{0};  // of those that are durable
  std::uint64_t handed_over_;       // the number of the last batch
  std::uint64_t durable_;
  std::uint64_t written_;
  bool is_writing_{false};
  bool has_failed_{false};               // what is worked out now rests on what was not made durable
  std::optional<StoreFailure> held_up_;  // why the tables cannot be written
  bool stopping_{false};
  // The write-ahead log holds what no sync has covered and no entry of the redo log repeats.
  std::atomic<bool> wrote_unsynced_{false};
  std::thread log_thread_;
  std::thread write_thread_;
  std::thread tidy_thread_;
};

}  // namespace flowfabric::store::sqlite
