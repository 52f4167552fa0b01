// One PostgreSQL connection as a session. What a batch wants is posted together and read in one round trip;
// what it changed is written as one statement per table and kind of change, together with the commit, in
// another.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "core/clock/clock_rules.h"
#include "store/postgres/claim_cursors.h"
#include "store/postgres/contested.h"
#include "store/postgres/execution_cache.h"
#include "store/postgres/offering_routes.h"
#include "store/postgres/row_types.h"

namespace flowfabric::store::postgres {

enum class Access { read, write };

inline const std::string kBeginWriting = "begin isolation level read committed";
inline const std::string kBeginReading = "begin isolation level repeatable read read only";

struct SessionSettings {
  ConnectionSettings connection;
  std::function<std::int64_t()> now_ms;  // replaces the database's clock
  std::shared_ptr<const RowTypes> row_types;
  // Shared by all sessions of a process.
  std::shared_ptr<ClaimCursors> cursors;
  std::shared_ptr<ExecutionCache> cache;
  std::shared_ptr<OfferingRoutes> offering;
  std::shared_ptr<std::atomic<std::uint64_t>> inserted;  // rows
};

class PostgresSession final : public Session {
 public:
  PostgresSession(SessionSettings settings, Access access);

  bool loads_instantly() const override { return false; }
  bool has_other_writers() const override { return access_ == Access::write; }
  const std::vector<Route>* remembered_routes(const std::string& lane) const override;
  std::optional<FlowId> remembered_flow(const ExecutionId& id) const override;

  std::uint64_t round_trips() const override {
    return round_trips_ + (connection_ ? connection_->round_trips() : 0);
  }
  std::int64_t begin(core::Unit& unit) override;
  std::optional<std::int64_t> time_of_load() const override { return now_ms_; }
  void load(core::Unit& unit) override;
  void commit(core::Unit& unit) override;
  void rollback() noexcept override;
  Agenda agenda(const AgendaQuestion& question) override;

  DueRecords due(const DueScan& scan) override;
  std::optional<std::int64_t> next_due(const DueScan& scan) override;
  std::vector<Attempt> attempts_of(const ExecutionId& id) override;
  EventRange event_range(EventFamily family) override;
  std::vector<Frame> frames(const FrameScan& scan) override;
  std::vector<Stream> streams_of(const ExecutionId& id) override;
  std::vector<OperatorEvent> operator_events_of(const ExecutionId& id) override;
  std::vector<LeaseEvent> pauses_of(const ExecutionId& id, std::size_t limit) override;
  std::map<PublicState, std::int64_t> count_lane(const std::string& lane) override;
  std::map<LaneCountKey, std::int64_t> count_executions() override;
  std::map<LaneCountKey, std::int64_t> lane_counts() override;
  std::vector<core::ListPosition> scan(const ListScan& scan) override;
  std::vector<ListedExecution> listed(const std::vector<core::ListPosition>& positions) override;
  std::vector<Group> groups(const GroupFilter& filter, std::size_t limit) override;
  std::vector<ExecutionId> expired_leases(const ExpiredLeaseScan& scan) override;
  std::vector<LeaseCount> count_leases(const std::vector<std::string>& instances,
                                       std::int64_t now_ms) override;
  FlowCounts count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) override;
  std::vector<Edge> edges_of(const FlowKey& flow) override;
  std::vector<EdgeGroup> joins_of(const FlowKey& flow) override;
  std::vector<NodeName> node_names(const FlowId& flow) override;
  std::vector<SuspensionKey> suspended(const SuspendedScan& scan) override;
  std::optional<std::int64_t> oldest_event() override;
  void fill(KeyPage& page) override;
  void fill(EventPage& page) override;

 private:
  Connection& connected();
  void post_begin(const std::string& sql);
  void post_clock();

  // ---- loading ----
  void post_wanted(core::Unit& unit);
  void post_records(core::Unit& unit, const RecordType& type);
  void post_locks(core::Unit& unit, const RecordType& type);
  // Takes out those that are answered in another way.
  void answer_otherwise(core::Unit& unit, const RecordType& type, std::vector<AnyKey>& keys);
  void post_routes(core::Unit& unit, const std::string& lane);
  std::vector<ExecutionId> post_cached(core::Unit& unit, std::vector<ExecutionId> ids);
  // Of executions that were locked: who wrote each last; absent: it is not there.
  using Versions = std::map<ExecutionId, std::optional<std::uint32_t>>;
  static std::uint32_t version_of(const Rows& rows, int row, int column);
  void take_cached(core::Unit& unit, const Versions& versions);

  // A scan for offers, as its rows come in.
  struct Offers {
    core::OfferScan scan;
    ClaimCursors::Start start;
    bool by_cache{};  // only keys and versions were asked for
    std::vector<std::shared_ptr<const Execution>> rows{};
    std::map<ExecutionId, std::size_t> missing{};  // their places
  };
  void post_offers(core::Unit& unit, const core::OfferScan& scan);
  void take_offers(core::Unit& unit, std::shared_ptr<Offers> offers, const Rows& rows);
  void post_missing(core::Unit& unit, std::shared_ptr<Offers> offers);
  void put_offers(core::Unit& unit, Offers& offers);
  std::shared_ptr<const Execution> take_offer(core::Unit& unit, const Rows& rows, int row);
  void post_answer(core::Unit& unit, const core::WorkersOf& question);
  void post_answer(core::Unit& unit, const core::LeasesOf& question);
  void post_answer(core::Unit& unit, const core::BlockedOnRoute& question);
  void post_answer(core::Unit& unit, const core::GroupsOf& question);
  void post_answer(core::Unit& unit, const core::ExecutionsIn& question);
  void post_answer(core::Unit& unit, const core::EdgesInto& question);
  void post_answer(core::Unit& unit, const core::Descendants& question);
  void post_answer(core::Unit& unit, const core::MembersOf& question);
  void post_answer(core::Unit& unit, const core::OwedCancels& question);
  void post_answer(core::Unit& unit, const core::OpenWaitpoints& question);
  void post_answer(core::Unit& unit, const core::WaitpointsNamed& question);
  void post_answer(core::Unit& unit, const core::RetiredSecrets& question);
  void post_answer(core::Unit& unit, const core::BlockedOn& question);
  void post_answer(core::Unit& unit, const core::WindowOf& question);
  void post_answer(core::Unit& unit, const core::SlotsOf& question);
  void post_answer(core::Unit& unit, const core::StraySlotsOf& question);
  void post_answer(core::Unit& unit, const core::FullKeysOf& question);
  void post_answer(core::Unit& unit, const core::ScopesOf& question);
  void post_answer(core::Unit& unit, const core::SpendingOf& question);
  void post_edges_from(core::Unit& unit);
  void post_edges(core::Unit& unit, std::vector<core::EdgesFrom> questions, bool to_resolve);
  void take_edges(core::Unit& unit, const std::vector<core::EdgesFrom>& questions, const Rows& rows);
  void take_downstreams(core::Unit& unit, const Rows& rows);
  bool put_remembered(core::Unit& unit, const GroupKey& key);
  void remember(const GroupKey& key, const std::shared_ptr<const Group>& group);
  std::vector<QuotaPolicyKey> post_contested(core::Unit& unit, std::vector<QuotaPolicyKey> keys);

  // ---- writing ----
  void post_changes(const core::Unit& unit, const RecordType& type);
  void post_updates(const RecordType& type, const std::vector<const core::AnySlot*>& slots);
  void post_events(const core::Unit& unit, const EventType& type);
  void post_trim(const EventType& type, std::int64_t before_ms);
  void post_counts(const core::Unit& unit);
  void post_new_members(const core::Unit& unit);
  void post_members_gone(const std::vector<ExecutionId>& removed);
  void post_drops(const core::Unit& unit);
  // Of a row that was read without a lock.
  bool is_only_counted(const core::AnySlot& slot) const;
  void check_counted(const core::Unit& unit);
  std::vector<QuotaPolicyKey> post_counted(const core::Unit& unit);
  void remember(const core::Unit& unit);
  void remember_execution(const core::Unit& unit, const core::AnySlot& slot);

  // ---- reading ----
  template <class Struct>
  std::vector<Struct> rows(const std::string& sql, const Parameters& parameters = {}) {
    std::vector<Struct> found;
    connection_->run(sql, parameters, [&](const Rows& result) { found = result.all<Struct>(); });
    return found;
  }
  std::map<LaneCountKey, std::int64_t> counts(const std::string& sql);
  ListScan::InGroups all_groups();
  void post_due(const DueScan& scan, const core::ClockRule& rule, std::string_view column, std::size_t limit,
                DueRecords& records);
  void begin_reading();
  bool read_settled(EventPage& page);
  std::int64_t settled_event();

  const SessionSettings settings_;
  const Access access_;
  const std::int32_t writer_;  // of the lane counts
  std::unique_ptr<Connection> connection_;
  std::uint64_t round_trips_{0};  // of connections that were lost
  bool in_transaction_{false};
  bool holds_locks_{false};
  std::int64_t now_ms_{0};
  std::uint64_t replans_at_{0};  // rows inserted
  std::unordered_map<std::string, std::vector<Route>> remembered_routes_;
  // A group never changes, and its record says whether it can be relied on (core/registry/registration.h).
  std::unordered_map<std::int64_t, std::shared_ptr<const Group>> remembered_groups_;
  std::vector<core::OfferScan> short_scans_;
  std::vector<std::shared_ptr<Offers>> incomplete_;
  // Routes whose offers were mostly not in the cache, and how many scans to go before it is tried again.
  std::unordered_map<std::int64_t, int> uncached_routes_;
  std::uint32_t transaction_{0};
  Contested<QuotaPolicyKey> contested_;
  std::set<QuotaPolicyKey> locked_policies_;  // by this transaction
  // Of what is due, those whose keys could not be read: they are looked past.
  std::size_t unreadable_due_{0};
};

}  // namespace flowfabric::store::postgres
