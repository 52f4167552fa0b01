// The store: loads and commits records, and knows no rule.
//
// A Store is opened once per process; a Session is one connection to it, used by one thread at a time.
// A writing session takes a batch through begin → load… → commit. Trouble travels as StoreFailure, which the
// engine turns into answers; operations never see it.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/list_position.h"
#include "core/rule.h"
#include "core/unit.h"
#include "flowfabric/listing.h"
#include "model/partition.h"
#include "model/record_type.h"

namespace flowfabric::store {

// What a batch that failed may do. Nothing of it was stored, unless its commit says otherwise.
enum class Retry {
  never,
  now,            // another writer was in the way
  when_back,      // the store is away
  one_by_one,     // one of its operations cannot be stored, or meets damage; the others can
  after_restart,  // nobody knows what is on the disk, and this process will not find out
};

struct StoreFailure {
  Error error;
  Retry retry{Retry::never};
};

// Asks for what a clock has to see to by a time, oldest first.
struct DueScan {
  std::int64_t until_ms{};
  core::ClockScope scope{};
  std::size_t limit{};        // of each kind of record
  std::size_t purge_limit{};  // of each kind that is to be removed
};
// A record whose time has come.
struct DueRecord {
  std::int64_t due_at_ms{};
  RecordKey key;
};
// What is due, but nobody can tell what it is.
struct UnreadableKey {
  std::string shown;  // its table, and its key as it is stored
  Error error;
};
struct DueRecords {
  std::vector<DueRecord> found;
  std::vector<UnreadableKey> unreadable;
};

// Which groups a filter matches; what is absent matches any.
struct GroupFilter {
  std::optional<std::string> lane_id{};
  std::optional<std::string> namespace_{};
  std::optional<std::string> execution_kind{};
  bool operator==(const GroupFilter&) const = default;
};

// A walk through executions, by time of creation.
struct ListScan {
  struct Everything {};
  // The executions of all groups that the filter matches, in these states: one look at each group for a page,
  // however many there are. (The others walk along one index.)
  struct InGroups {
    GroupFilter groups;
    std::vector<PublicState> states;
  };
  struct InGroup {
    std::int64_t group_id{};
    PublicState state{};
  };
  struct InFlow {
    FlowId flow_id;
  };
  struct Flows {};  // not executions, but flows: each by its partition and id
  struct Tagged {
    std::string key;
    std::string value;
  };
  std::variant<Everything, InGroup, InGroups, InFlow, Flows, Tagged> of;
  ListOrder order{};
  std::optional<core::ListPosition> after;
  std::size_t limit{};
};

struct FlowCounts {
  std::map<PublicState, std::int64_t> by_state;  // of its members
  std::int64_t without_harm{};                   // of them, cancelled for one of the reasons given
};
// Open suspensions of some partitions, oldest first.
struct SuspendedScan {
  std::uint16_t first_partition{};
  std::uint16_t last_partition{};
  std::optional<std::int64_t> after_ms;  // of the one that was seen last
  std::optional<Uuid> after_id;          // alone: whatever is above it
  std::size_t limit{};
};
// How many executions of a namespace a worker instance runs.
struct LeaseCount {
  std::string worker_instance_id;
  std::string namespace_;
  std::uint64_t leases{};
};
BOOST_DESCRIBE_STRUCT(LeaseCount, (), (worker_instance_id, namespace_, leases))
struct NodeName {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string node_name;
};
BOOST_DESCRIBE_STRUCT(NodeName, (), (partition_key, execution_id, node_name))

// What the clock wants to know when it wakes up.
struct AgendaQuestion {
  std::vector<std::string> waiting_lanes;  // that claims wait for
  core::ClockScope scope{};
  std::int64_t until_ms{};  // what is due later does not matter yet
};
struct Agenda {
  std::int64_t now_ms{};
  std::optional<std::int64_t> next_due;      // of a record, or of a removal
  std::optional<std::int64_t> oldest_event;  // that may be trimmed
  // On which of the routes that were asked about something is offered; only where others offer, too.
  std::vector<Route> offered;
};

struct ExpiredLeaseScan {
  std::int64_t now_ms{};
  std::int64_t as_of_ms{};
  std::optional<std::string> namespace_;
  std::optional<core::ListPosition> after;  // the time is that of the expiry
  std::size_t limit{};
};

// What an event log holds: ids after the first number, and none after the second that could still be followed
// by a smaller one. Nobody has been given an id after the third.
struct EventRange {
  std::int64_t trimmed_up_to{};
  std::int64_t end{};
  std::int64_t last{};
};

// Frames of a stream between two ids, both included, oldest first.
struct FrameScan {
  StreamKey stream;
  FrameId from;
  FrameId to;
  bool without_best_effort{false};
  std::size_t limit{};
};

// A page of a table's keys, or of an event log, to be filled in.
struct KeyPage {
  const RecordType& type;
  std::optional<AnyKey> after;
  std::size_t limit{};
  std::vector<AnyKey> found{};
};
struct EventPage {
  const EventType& type;
  std::int64_t after{};
  std::size_t limit{};
  std::vector<std::shared_ptr<void>> found{};
  std::optional<std::int64_t> damaged{};  // the event after those, if it cannot be read
};
template <class Event>
struct EventsFound {
  std::vector<Event> found{};
  std::optional<std::int64_t> damaged{};
};

class Session : public core::Loader {
 public:
  // Starts a transaction, loads what the unit wants already, and tells the store's time.
  virtual std::int64_t begin(core::Unit& unit) = 0;
  // The store's time after the last load, where that takes long enough to matter: what was loaded since the
  // beginning may be younger than the beginning.
  virtual std::optional<std::int64_t> time_of_load() const { return std::nullopt; }
  // Writes every change of the unit and makes it durable. A failure with code `unavailable` means that
  // nobody knows whether it was; any other means that it was not.
  virtual void commit(core::Unit& unit) = 0;
  // Ends the transaction without a trace. Allowed at any time.
  virtual void rollback() noexcept = 0;

  // Told when a batch, and every one before it, is durable; or what `commit` would have thrown. Batches are
  // told of one by one, in their order, on any thread.
  using Settled = std::move_only_function<void(const std::optional<StoreFailure>&)>;
  // Like `commit`, but a store where that takes long may return before: as soon as the next batch can begin,
  // which sees what this one has changed. When it throws, `settled` is not called. `others_wait`: there is
  // something to work out meanwhile.
  virtual void commit_behind(std::unique_ptr<core::Unit> unit, bool others_wait, Settled settled);
  // What this session was given to commit may not be durable yet: waits until it is, until everybody has been
  // told, and until others can read it.
  virtual void await_durable() {}

  // Round trips to a server so far.
  virtual std::uint64_t round_trips() const { return 0; }

  // Outside of a transaction.
  virtual Agenda agenda(const AgendaQuestion& question);

  // ---- reads, inside a transaction ----

  // One whose key cannot be read holds up nobody.
  virtual DueRecords due(const DueScan& scan) = 0;
  // When the first of them is due; the limits do not count.
  virtual std::optional<std::int64_t> next_due(const DueScan& scan) = 0;
  virtual std::vector<Attempt> attempts_of(const ExecutionId& id) = 0;
  virtual std::map<PublicState, std::int64_t> count_lane(const std::string& lane) = 0;
  // Counted row by row, for the consistency check.
  virtual std::map<LaneCountKey, std::int64_t> count_executions() = 0;
  virtual std::map<LaneCountKey, std::int64_t> lane_counts() = 0;
  virtual std::vector<core::ListPosition> scan(const ListScan& scan) = 0;
  // Those of them that are there, in the same order.
  virtual std::vector<ListedExecution> listed(const std::vector<core::ListPosition>& positions) = 0;
  virtual std::vector<Group> groups(const GroupFilter& filter, std::size_t limit) = 0;
  virtual std::vector<ExecutionId> expired_leases(const ExpiredLeaseScan& scan) = 0;
  // What these run whose leases have not lapsed by then.
  virtual std::vector<LeaseCount> count_leases(const std::vector<std::string>& instances,
                                               std::int64_t now_ms) = 0;
  virtual FlowCounts count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) = 0;
  // By edge id, and by downstream.
  virtual std::vector<Edge> edges_of(const FlowKey& flow) = 0;
  virtual std::vector<EdgeGroup> joins_of(const FlowKey& flow) = 0;
  // Of the members that have one.
  virtual std::vector<NodeName> node_names(const FlowId& flow) = 0;
  virtual std::vector<SuspensionKey> suspended(const SuspendedScan& scan) = 0;
  virtual std::vector<Frame> frames(const FrameScan& scan) = 0;
  virtual std::vector<Stream> streams_of(const ExecutionId& id) = 0;
  virtual std::vector<OperatorEvent> operator_events_of(const ExecutionId& id) = 0;
  // The latest of its lease events with a pause's reason, oldest first.
  virtual std::vector<LeaseEvent> pauses_of(const ExecutionId& id, std::size_t limit) = 0;
  virtual EventRange event_range(EventFamily family) = 0;
  // When the oldest event happened that may be trimmed.
  virtual std::optional<std::int64_t> oldest_event() = 0;

  virtual void fill(KeyPage& page) = 0;
  virtual void fill(EventPage& page) = 0;

  std::vector<AnyKey> keys_after(const RecordType& type, std::optional<AnyKey> after, std::size_t limit) {
    KeyPage page{type, std::move(after), limit};
    fill(page);
    return std::move(page.found);
  }
  template <class Record>
  std::vector<typename Record::Key> keys_after(const std::optional<typename Record::Key>& after,
                                               std::size_t limit) {
    const std::vector<AnyKey> found = keys_after(
        record_type<Record>(), after ? std::optional(any_key<Record>(*after)) : std::nullopt, limit);
    std::vector<typename Record::Key> keys;
    keys.reserve(found.size());
    for (const auto& key : found) keys.push_back(key.as<typename Record::Key>());
    return keys;
  }
  template <class Event>
  EventsFound<Event> event_page(std::int64_t after, std::size_t limit) {
    EventPage page{event_type<Event>(), after, limit};
    fill(page);
    EventsFound<Event> events{.damaged = page.damaged};
    events.found.reserve(page.found.size());
    for (const auto& event : page.found) events.found.push_back(std::move(*static_cast<Event*>(event.get())));
    return events;
  }
  // Up to one that cannot be read; if that is the first, it is refused.
  template <class Event>
  std::vector<Event> events_after(std::int64_t after, std::size_t limit) {
    auto page = event_page<Event>(after, limit);
    if (page.damaged && page.found.empty()) {
      throw StoreFailure{{ErrorCode::corruption,
                          "event " + std::to_string(*page.damaged) + ": cannot be read",
                          "Go on after this event."}};
    }
    return std::move(page.found);
  }
};

// Tells the other servers on the same store that work is offered, and hears it from them. A hint only: what
// is lost is found by the next look at the agenda.
class Bell {
 public:
  virtual ~Bell() = default;
  // Returns at once.
  virtual void ring(const std::vector<std::string>& lanes) = 0;
};
// No lanes: something may have been missed, look everywhere.
using HeardBell = std::function<void(const std::vector<std::string>& lanes)>;

class Store {
 public:
  virtual ~Store() = default;
  virtual std::unique_ptr<Session> open_writer() = 0;
  virtual std::unique_ptr<Session> open_reader() = 0;

  // How many writing and reading sessions an engine should have at most.
  virtual std::size_t writers() const { return 1; }
  virtual std::size_t readers() const { return std::numeric_limits<std::size_t>::max(); }
  // Other processes may use it at the same time.
  virtual bool is_shared() const { return false; }
  // While it is away: do calls wait for it, up to their deadline, or fail at once?
  virtual bool waits_when_away() const { return false; }
  virtual std::unique_ptr<Bell> open_bell(HeardBell) { return nullptr; }
};

struct StoreOptions {
  PartitionCounts partitions{};
  std::function<std::int64_t()> now_ms{};  // replaces the store's clock
  // Told once, on any thread, when the store has met `Retry::after_restart`, and refuses everything from then
  // on.
  std::function<void(const Error&)> failed{};
};

std::int64_t system_now_ms();

// `memory:`, `sqlite:PATH[?synchronous=full|normal]` or `postgres://…`; an unknown scheme is refused with the
// ones there are.
Result<std::unique_ptr<Store>> open_store(const std::string& url, StoreOptions options);

// Brings the schema up to date and says what was done.
Result<std::string> migrate_store(const std::string& url, const StoreOptions& options);
// The SQL that it would run.
Result<std::string> plan_store_migration(const std::string& url, const StoreOptions& options);

bool is_postgres_url(const std::string& url);

// The URL without its password, to be shown.
std::string redacted_url(const std::string& url);

}  // namespace flowfabric::store
