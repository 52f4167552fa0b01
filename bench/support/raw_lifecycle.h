// Lifecycles without an engine: the rows that it would write, written by hand, set by set. The rows are
// copied from a lifecycle that an engine has run in the same schema.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/records.h"
#include "support/bench.h"

namespace flowfabric::bench {

inline constexpr const char* kLane = "bench";

// The rows of one lifecycle: the hot row in its three states, and everything around it.
struct LifecycleRows {
  Execution waiting;
  Execution running;
  Execution done;
  ExecutionSpec spec;
  Attempt attempt;
  LeaseEvent acquired;
  LeaseEvent released;
  CompletionEvent completion;
};
// Has an engine run one, in a schema that is empty.
LifecycleRows run_one_lifecycle(const std::string& url);

struct Claimed {
  ExecutionId id;
  LeaseId lease_id;
  AttemptId attempt_id;
  std::int64_t started_at_ms{};
};

struct RawBatch {
  std::size_t creates{};
  std::size_t claims{};  // at most
  std::vector<Claimed> completes{};
};

// One connection. Every batch is a transaction, and on disk when `run` returns.
class RawWriter {
 public:
  virtual ~RawWriter() = default;
  // Returns what was claimed.
  virtual std::vector<Claimed> run(const RawBatch& batch) = 0;
};

// Reads under locks what is to be changed, in one round trip, and writes it in another, as the engine does.
std::unique_ptr<RawWriter> read_then_write(const std::string& url, const LifecycleRows& rows,
                                           std::int32_t writer);
// One statement for all claims and one for all completes, in one round trip: the least a database can be
// asked.
std::unique_ptr<RawWriter> single_statements(const std::string& url, const LifecycleRows& rows,
                                             std::int32_t writer);

}  // namespace flowfabric::bench
