// Reads: each runs on the calling thread, in a transaction of its own on a reading session from a pool.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "store/store.h"

namespace flowfabric::engine {

class Readers {
 public:
  explicit Readers(store::Store& store) : store_(store) {}

  // Runs f(session, unit) inside a reading transaction.
  template <class F>
  auto read(F&& f) -> decltype(f(std::declval<store::Session&>(), std::declval<core::Unit&>()));

 private:
  std::unique_ptr<store::Session> take();
  void give_back(std::unique_ptr<store::Session> session);

  store::Store& store_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<store::Session>> idle_;
};

Result<ExecutionSnapshot> answer(Readers& readers, const DescribeExecution& request);
Result<std::optional<std::string>> answer(Readers& readers, const ReadResult& request);
Result<std::vector<AttemptSnapshot>> answer(Readers& readers, const ListAttempts& request);
Result<std::map<PublicState, std::int64_t>> answer(Readers& readers, const CountLane& request);
Result<std::vector<LeaseEventView>> answer(Readers& readers, const ReadLeaseEvents& request);
Result<std::vector<CompletionEventView>> answer(Readers& readers, const ReadCompletions& request);

}  // namespace flowfabric::engine
