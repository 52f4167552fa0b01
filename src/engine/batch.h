// Runs a batch of operations in one transaction: load, run each in turn, commit, and only then answer.
#pragma once

#include <array>
#include <vector>

#include "engine/waiting_claims.h"
#include "flowfabric/stats.h"
#include "store/store.h"

namespace flowfabric::engine {

// What a committed batch means to the rest of the engine.
struct BatchEffects {
  // Work that became available, and that no claim of the batch was waiting for.
  OfferedWork offers;
  // The earliest clock that the batch has set.
  std::optional<std::int64_t> earliest_due;
  // Executions that were changed, and those whose streams were written to.
  std::vector<ExecutionId> changed;
  std::vector<ExecutionId> written;
  // Logs that have grown.
  std::vector<EventFamily> feeds;
  // For those who count.
  std::vector<core::Note> notes;
  std::array<std::uint32_t, enum_names<LeaseEventType>.size()> lease_events{};
  bool has_lease_events{false};
  std::vector<EndedAttempt> ended_attempts;  // if somebody wants to know
};

// Why a call is not served. A store that was opened and does not let itself be used any more (another
// password, missing rights) is not the fault of the caller, as an input would be.
inline Error told_to_caller(const store::StoreFailure& failure) {
  auto told = failure.error;
  if (told.code == ErrorCode::invalid_input && failure.retry == store::Retry::never)
    told.code = ErrorCode::unavailable;
  return told;
}

struct BatchResult {
  void fail(const store::StoreFailure& why) {
    failure = told_to_caller(why);
    retry = why.retry;
  }

  BatchEffects effects;
  std::optional<Error> failure;               // nothing of the batch was stored (or nobody knows)
  store::Retry retry{store::Retry::never};    // what may be done about that
  std::vector<const Error*> refusals;         // by operation: refused by the engine itself; null otherwise
  std::vector<std::unique_ptr<Error>> owned;  // keeps the refusals alive
};

// What every operation may know.
struct BatchSettings {
  PartitionCounts partitions{};
  std::int64_t retention_ms{};
  std::int64_t budget_grace_ms{};
  std::int64_t reclaim_grace_ms{};
  bool tells_ended_attempts{false};
};

Error damaged(const core::MissingRecord& missing);

// Gives out waiting claims for what a batch offers, and takes what they are enough for off the offers.
using TakeWaiting = std::function<std::vector<Operation>(OfferedWork&)>;

// A batch that was run and is to be committed; null if it failed.
struct WorkedOut {
  BatchResult result;
  std::unique_ptr<core::Unit> unit;
};

// These never throw. The operations, and the claims that joined them, are answered by the caller, from the
// result, once it is durable. A commit that cannot be begun is told by `failed`, and `settled` is not called.
WorkedOut work_out(store::Session& session, std::vector<Operation>& operations, const BatchSettings& settings,
                   const TakeWaiting& take_waiting = {});
void commit(store::Session& session, std::unique_ptr<core::Unit> unit, bool others_wait, BatchResult& failed,
            store::Session::Settled settled);

}  // namespace flowfabric::engine
