// Executions as this process wrote them last, so that the next operation on them asks the database only
// whether they are still the same. Every version of a row carries the transaction that wrote it (`xmin`): if
// that is still ours, nobody has changed the row since. Shared by the sessions of a process. Safe from any
// thread.
#pragma once

#include <array>
#include <mutex>

#include "model/records.h"
#include "store/record_cache.h"

namespace flowfabric::store::postgres {

struct CachedExecution {
  std::shared_ptr<const Execution> execution;
  std::uint32_t written_by{};                 // the transaction
  std::shared_ptr<const ExecutionSpec> spec;  // null: not known
};

class ExecutionCache {
 public:
  using Shared = std::shared_ptr<const CachedExecution>;

  Shared find(const ExecutionId& id) {
    auto& shard = shard_of(id);
    std::lock_guard lock(shard.mutex);
    const auto* kept = shard.cache.find(id);
    return kept ? *kept : nullptr;
  }
  void put(const ExecutionId& id, CachedExecution cached) {
    auto& shard = shard_of(id);
    std::lock_guard lock(shard.mutex);
    shard.cache.put(id, std::make_shared<const CachedExecution>(std::move(cached)));
  }
  void forget(const ExecutionId& id) {
    auto& shard = shard_of(id);
    std::lock_guard lock(shard.mutex);
    shard.cache.forget(id);
  }

 private:
  struct Shard {
    std::mutex mutex;
    Generations<ExecutionId, Shared> cache;
  };
  Shard& shard_of(const ExecutionId& id) { return shards_[id.uuid.bytes.back() % shards_.size()]; }

  std::array<Shard, 4> shards_;
};

}  // namespace flowfabric::store::postgres
