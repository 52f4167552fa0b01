// The store: loads and commits records, and knows no rule.
//
// A Store is opened once per process; a Session is one connection to it, used by one thread at a time.
// A writing session takes a batch through begin → load… → commit. Trouble travels as StoreFailure, which the
// engine turns into answers; operations never see it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/unit.h"
#include "model/partition.h"
#include "model/records.h"

namespace flowfabric::store {

struct StoreFailure {
  Error error;
};

// A record whose time has come.
using DueKey = std::variant<ExecutionId, CreateDedupKey>;

class Session : public core::Loader {
 public:
  // Starts a transaction, loads what the unit wants already, and tells the store's time.
  virtual std::int64_t begin(core::Unit& unit) = 0;
  // Writes every change of the unit and makes it durable. A failure with code `unavailable` means that
  // nobody knows whether it was; any other means that it was not.
  virtual void commit(core::Unit& unit) = 0;
  // Ends the transaction without a trace. Allowed at any time.
  virtual void rollback() noexcept = 0;

  // ---- reads, inside a transaction ----

  virtual std::vector<DueKey> due(std::int64_t now_ms, std::size_t limit) = 0;
  virtual std::optional<std::int64_t> next_due() = 0;
  virtual std::vector<Attempt> attempts_of(const ExecutionId& id) = 0;
  virtual std::vector<LeaseEvent> lease_events(std::int64_t after, std::size_t limit) = 0;
  virtual std::vector<CompletionEvent> completion_events(std::int64_t after, std::size_t limit) = 0;
  virtual std::map<PublicState, std::int64_t> count_lane(const std::string& lane) = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::unique_ptr<Session> open_writer() = 0;
  virtual std::unique_ptr<Session> open_reader() = 0;
};

struct StoreOptions {
  PartitionCounts partitions{};
  std::function<std::int64_t()> now_ms{};  // replaces the clock of an embedded store
};

std::int64_t system_now_ms();

// `memory:` or `sqlite:PATH[?synchronous=full|normal]`; an unknown scheme is refused with the ones there are.
Result<std::unique_ptr<Store>> open_store(const std::string& url, StoreOptions options);

// Brings the schema up to date and says what was done.
Result<std::string> migrate_store(const std::string& url, const StoreOptions& options);

}  // namespace flowfabric::store
