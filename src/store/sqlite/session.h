// One reading SQLite connection as a session: loads by key, scans by index.
#pragma once

#include <memory>
#include <set>

#include "core/clock/clock_rules.h"
#include "store/sqlite/disk_health.h"
#include "store/sqlite/mapping.h"
#include "store/sqlite/recent.h"
#include "store/sqlite/shown_mark.h"
#include "store/store.h"

namespace flowfabric::store::sqlite {

struct SessionSettings {
  std::string path;
  Durability durability{};
  std::function<std::int64_t()> now_ms;
  std::shared_ptr<ShownMark> shown;
  std::shared_ptr<DiskHealth> health;
};

class SqliteSession : public Session {
 public:
  explicit SqliteSession(SessionSettings settings);

  bool loads_instantly() const override { return true; }
  std::int64_t begin(core::Unit& unit) override;
  void load(core::Unit& unit) override;
  // It only reads.
  void commit(core::Unit& unit) override;
  void rollback() noexcept override;

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

 protected:
  // What was read since the last begin was read as one; what is read after this, too.
  void begin_reading();
  std::int64_t now_ms() const { return settings_.now_ms(); }
  const SessionSettings& settings() const { return settings_; }
  // Of the writing session, which knows more than the database shows.
  Recent* recent_{nullptr};

 private:
  // Before a question is asked that the database answers: it has to show everything by then.
  virtual void see_everything() {}

  Statement& statement(const std::string& sql) { return statements_.of(*connection_, sql); }
  std::shared_ptr<const void> find(const RecordType& type, const AnyKey& key);
  template <class Record>
  std::shared_ptr<const Record> find(const typename Record::Key& key) {
    return std::static_pointer_cast<const Record>(find(record_type<Record>(), any_key<Record>(key)));
  }
  std::set<std::int64_t> offering_routes();
  void load_routes(core::Unit& unit);
  std::vector<core::Offer> read_offers(const core::OfferScan& scan);
  std::vector<std::shared_ptr<const Execution>> find_offers(const core::OfferScan& scan);
  template <class Record>
  static std::vector<Record> rows(Statement& query) {
    const ResetAfterUse reset(query);
    std::vector<Record> found;
    while (query.step()) found.push_back(read_all<Record>(query.get()));
    return found;
  }
  std::map<LaneCountKey, std::int64_t> counts(const std::string& sql);
  Statement& groups_statement(const std::string& columns, const GroupFilter& filter, std::size_t limit);
  std::vector<core::ListPosition> scan_groups(const ListScan::InGroups& of, const ListScan& scan);
  Statement& due_statement(const DueScan& scan, const core::ClockRule& rule, std::string_view column,
                           const std::string& columns);
  void read_due(const DueScan& scan, const core::ClockRule& rule, std::string_view column, std::size_t limit,
                DueRecords& records);
  std::optional<std::int64_t> first_due(const DueScan& scan, const core::ClockRule& rule,
                                        std::string_view column);
  std::vector<WorkerKey> answer(const core::WorkersOf& question);
  std::vector<ExecutionId> answer(const core::LeasesOf& question);
  std::vector<ExecutionId> answer(const core::BlockedOnRoute& question);
  std::vector<GroupKey> answer(const core::GroupsOf& question);
  std::vector<ExecutionId> answer(const core::ExecutionsIn& question);
  template <class Question>
  std::vector<EdgeKey> edges_by(const std::string& column, const ExecutionId& end, const Question& question);
  std::vector<EdgeKey> answer(const core::EdgesFrom& question);
  std::vector<EdgeKey> answer(const core::EdgesInto& question);
  std::vector<ExecutionId> answer(const core::Descendants& question);
  std::vector<core::MemberPhase> answer(const core::MembersOf& question);
  std::vector<ExecutionId> answer(const core::OwedCancels& question);
  std::vector<WaitpointRecordKey> answer(const core::OpenWaitpoints& question);
  std::vector<WaitpointRecordKey> answer(const core::WaitpointsNamed& question);
  std::vector<HmacKeyKey> answer(const core::RetiredSecrets& question);
  std::vector<core::ListPosition> answer(const core::BlockedOn& question);
  std::vector<core::WindowEntry> answer(const core::WindowOf& question);
  std::vector<QuotaAdmissionKey> answer(const core::SlotsOf& question);
  std::vector<QuotaAdmissionKey> answer(const core::StraySlotsOf& question);
  std::vector<QuotaPolicyKey> answer(const core::FullKeysOf& question);
  std::vector<ScopeLimitsKey> answer(const core::ScopesOf& question);
  std::vector<SpendKey> answer(const core::SpendingOf& question);
  template <class Record>
  std::vector<Record> all_of_flow(const FlowKey& flow, const std::string& order);

  SessionSettings settings_;
  std::unique_ptr<Connection> connection_;
  std::array<std::optional<Statement>, kRecordTypes> selects_;
  Statements statements_;
};

}  // namespace flowfabric::store::sqlite
