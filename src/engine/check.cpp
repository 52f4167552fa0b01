#include "engine/check.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <limits>

#include "core/doctor/check.h"
#include "core/doctor/limit_check.h"
#include "core/doctor/suspension_check.h"
#include "core/execution/tags.h"
#include "core/suspension/suspension.h"
#include "engine/random_seed.h"
#include "model/waitpoint_token.h"

namespace flowfabric::engine {

namespace {

constexpr std::size_t kPage = 500;
constexpr std::size_t kFlowPage = 50;
constexpr std::size_t kMaxListed = 1000;

ExecutionId owner_of(const AnyKey& key) {
  return key.type().owner(key.get());
}

template <class... Listed>
std::vector<const RecordType*> types_of() {
  return {&record_type<Listed>()...};
}

// Calls f(key) for the keys of a table that belong to executions after `after` and up to `last`.
template <class F>
void for_each_owned(Reading& reading, const RecordType& type, const std::optional<ExecutionId>& after,
                    const std::optional<ExecutionId>& last, F&& f) {
  std::optional<AnyKey> from;
  if (after) from.emplace(*type.key, [&](void* at) { type.key->make_first(at, *after); });
  for (;;) {
    const auto keys = reading.session.keys_after(type, from, kPage);
    for (const auto& key : keys) {
      const auto owner = owner_of(key);
      if (last && *last < owner) return;
      if (!after || *after < owner) f(key);
    }
    if (keys.size() < kPage) return;
    from = keys.back();
  }
}

// The id just before, whether there is such an execution or not.
std::optional<ExecutionId> before(ExecutionId id) {
  for (auto byte = id.uuid.bytes.rbegin(); byte != id.uuid.bytes.rend(); ++byte) {
    if ((*byte)-- != 0) return id;
  }
  if (id.partition == 0) return std::nullopt;
  --id.partition;
  return id;
}

class Check {
 public:
  Check(Readers& readers, Committers& committer, const CheckStore& request, const EngineOptions& options)
      : readers_(readers), committer_(committer), request_(request), options_(options) {}

  Result<StoreReport> run() {
    if (auto ok = check_executions(); !ok) return std::unexpected(ok.error());
    for (const auto* type : types_of<Attempt, ExecutionSpec>()) {
      if (auto ok = check_owners(*type); !ok) return std::unexpected(ok.error());
    }
    if (auto ok = check_tag_rows(); !ok) return std::unexpected(ok.error());
    for (const auto* type :
         types_of<Lane, Route, Group, CreateDedup, Worker, DeadWorker, BulkJob, Edge, EdgeGroup,
                  PendingCancelGroup, CancelBacklog, CancelBacklogMember, DependencyDispatch, HmacKey,
                  Keystore, Breach, UsageDedup, Spend, QuotaAdmission, ScopeLimits, LaneClock>()) {
      if (auto ok = read_table(*type, true); !ok) return std::unexpected(ok.error());
    }
    // These have been counted with their executions.
    for (const auto* type : types_of<Signal, SignalDedup, SuspendDedup>()) {
      if (auto ok = read_table(*type, false); !ok) return std::unexpected(ok.error());
    }
    if (auto ok = check_keystore(); !ok) return std::unexpected(ok.error());
    if (auto ok = check_each<Flow>(kFlowPage, "flow "); !ok) return std::unexpected(ok.error());
    if (auto ok = check_each<Budget>(kFlowPage, "budget "); !ok) return std::unexpected(ok.error());
    if (auto ok = check_each<QuotaPolicy>(kPage, "quota policy "); !ok) return std::unexpected(ok.error());
    if (auto ok = check_counts(); !ok) return std::unexpected(ok.error());
    return std::move(report_);
  }

 private:
  Result<void> check_executions() {
    std::optional<ExecutionId> after;
    for (bool more = true; more;) {
      std::vector<std::pair<ExecutionId, std::vector<std::string>>> faulty;
      std::vector<Orphan> orphans;
      auto read = readers_.read([&](Reading& reading) -> Result<void> {
        const auto ids = reading.session.keys_after<Execution>(after, kPage);
        more = ids.size() == kPage;
        const auto last = more ? std::optional(ids.back()) : std::nullopt;
        find_orphans(reading, record_type<Grant>(), after, last, ids, orphans);
        const auto with_suspensions =
            find_orphans(reading, record_type<Suspension>(), after, last, ids, orphans);
        for (const auto* type : types_of<PastSuspension, Waitpoint, Signal, SignalDedup, SuspendDedup>()) {
          find_strays(reading, *type, after, last, ids, with_suspensions, orphans);
        }
        for (const auto& id : ids) {
          if (auto wrong = faults_of(reading, id); !wrong.empty()) {
            faulty.emplace_back(id, std::move(wrong));
          }
        }
        report_.executions += ids.size();
        report_.records += ids.size();
        if (more) after = ids.back();
        return {};
      });
      if (!read) return read;
      for (const auto& [id, wrong] : faulty) {
        note_all(id, id.to_string(), wrong);
      }
      note_orphans(orphans);
    }
    return {};
  }

  // The same for tables that need not lie in the order of their executions.
  Result<void> check_owners(const RecordType& type) {
    std::optional<AnyKey> after;
    for (bool more = true; more;) {
      std::vector<Orphan> orphans;
      auto read = readers_.read([&](Reading& reading) -> Result<void> {
        const auto keys = reading.session.keys_after(type, after, kPage);
        for (const auto& key : keys) reading.unit.want<Execution>(owner_of(key));
        // An execution that cannot be read is there, and has been reported already.
        trouble_of([&] { reading.session.load(reading.unit); });
        for (const auto& key : keys) {
          trouble_of([&] {
            if (!reading.find<Execution>(owner_of(key))) orphans.push_back(orphan({&type, key}));
          });
        }
        report_.records += keys.size();
        more = keys.size() == kPage;
        if (more) after = keys.back();
        return {};
      });
      if (!read) return read;
      note_orphans(orphans);
    }
    return {};
  }

  struct Orphan {
    std::string where;
    std::string what;
    std::function<void(core::Unit&, core::Context&)> erase;  // empty: it must not be
  };

  static Orphan orphan(const RecordKey& record) {
    const auto owner = owner_of(record.key);
    return {std::string(record.type->table) + " " + owner.to_string(), "belongs to no execution",
            [record, owner](core::Unit& unit, core::Context&) {
              const auto place = record.type->place;
              // Unless an execution of this id has been created since.
              if (unit.find<Execution>(owner) || !unit.find(place, record.key.get())) return;
              unit.erase(place, record.key.get());
            }};
  }

  void note_orphans(std::vector<Orphan>& orphans) {
    for (auto& orphan : orphans) {
      note(orphan.where, orphan.what, orphan.erase && repair(std::move(orphan.erase)));
    }
  }

  // Returns who owns something in this table.
  std::vector<ExecutionId> find_orphans(Reading& reading, const RecordType& type,
                                        const std::optional<ExecutionId>& after,
                                        const std::optional<ExecutionId>& last,
                                        const std::vector<ExecutionId>& ids, std::vector<Orphan>& orphans) {
    std::vector<ExecutionId> owners;
    for_each_owned(reading, type, after, last, [&](const AnyKey& key) {
      ++report_.records;
      const auto owner = owner_of(key);
      if (owners.empty() || owners.back() != owner) owners.push_back(owner);
      if (!std::ranges::binary_search(ids, owner)) orphans.push_back(orphan({&type, key}));
    });
    return owners;
  }

  // What is kept beside a suspension, too. Without one it is all that is left, and nothing says of what.
  void find_strays(Reading& reading, const RecordType& type, const std::optional<ExecutionId>& after,
                   const std::optional<ExecutionId>& last, const std::vector<ExecutionId>& ids,
                   const std::vector<ExecutionId>& with_suspensions, std::vector<Orphan>& orphans) {
    for (const auto& owner : find_orphans(reading, type, after, last, ids, orphans)) {
      const bool stray =
          std::ranges::binary_search(ids, owner) && !std::ranges::binary_search(with_suspensions, owner);
      if (stray) {
        orphans.push_back(
            {std::string(type.table) + " " + owner.to_string(), "belongs to no suspension", {}});
      }
    }
  }

  template <class Key>
  std::vector<std::string> faults_of(Reading& reading, const Key& key) {
    std::vector<std::string> wrong;
    const auto problem = trouble_of([&] { wrong = readable_faults_of(reading, key); });
    if (problem) wrong.push_back(*problem);
    return wrong;
  }

  // What cannot be read about a record, if that is the trouble with it.
  template <class F>
  static std::optional<std::string> trouble_of(F&& f) {
    try {
      f();
      return std::nullopt;
    } catch (const store::StoreFailure& failure) {
      if (failure.error.code != ErrorCode::corruption) throw;
      return failure.error.detail;
    }
  }

  std::vector<std::string> readable_faults_of(Reading& reading, const ExecutionId& id) {
    reading.unit.want<ExecutionSpec>(id);
    reading.unit.want<Grant>(id);
    reading.unit.want<Suspension>(core::suspension_key(id));
    core::Neighbourhood found{.execution = reading.find<Execution>(id),
                              .spec = reading.find<ExecutionSpec>(id),
                              .grant = reading.find<Grant>(id)};
    if (!found.execution) return {};  // removed since
    for (const auto& attempt : reading.session.attempts_of(id)) {
      found.attempts.push_back(attempt.attempt_index);
    }
    found.lane = reading.find<Lane>({found.execution->lane_id});
    found.route = reading.find<Route>({found.execution->route_id});
    found.group = reading.find<Group>({found.execution->group_id});
    for (const auto& row : core::tag_rows(*found.execution)) {
      if (!reading.find<ExecutionTag>(row)) found.untagged.push_back(row.tag_key);
    }
    auto wrong = core::faults(found);
    std::ranges::move(faults_of_suspensions(reading, *found.execution), std::back_inserter(wrong));
    return wrong;
  }

  std::vector<std::string> faults_of_suspensions(Reading& reading, const Execution& execution) {
    const auto id = execution.key();
    core::SuspensionNeighbourhood found{.execution = &execution,
                                        .latest = reading.find<Suspension>(core::suspension_key(id))};
    if (!found.latest) return core::faults(found);
    found.past = owned_by<PastSuspension>(reading, id);
    found.waitpoints = owned_by<Waitpoint>(reading, id);
    for_each_owned(reading, record_type<Signal>(), before(id), id,
                   [&](const AnyKey& key) { found.signals.push_back(key.as<SignalKey>().signal_index); });
    for (const auto* waitpoint : found.waitpoints) {
      const auto parts = split_token(waitpoint->token);
      if (!parts) continue;
      const std::string kid(parts->kid);
      if (const auto* secret = reading.find<HmacKey>({kid})) found.secrets[kid] = secret;
    }
    return core::faults(found);
  }

  template <class Record>
  std::vector<const Record*> owned_by(Reading& reading, const ExecutionId& id) {
    std::vector<typename Record::Key> keys;
    for_each_owned(reading, record_type<Record>(), before(id), id,
                   [&](const AnyKey& key) { keys.push_back(key.template as<typename Record::Key>()); });
    for (const auto& key : keys) reading.unit.want<Record>(key);
    reading.session.load(reading.unit);
    std::vector<const Record*> records;
    for (const auto& key : keys) records.push_back(&reading.unit.require<Record>(key));
    return records;
  }

  Result<void> check_keystore() {
    std::vector<HmacKeyKey> kids;
    const auto look = [&](Reading& reading) -> Result<std::vector<std::string>> {
      std::vector<std::string> wrong;
      // What cannot be read has been reported already.
      trouble_of([&] {
        core::KeystoreNeighbourhood found{.keystore = reading.find<Keystore>({})};
        kids = reading.session.keys_after<HmacKey>(std::nullopt, kPage);
        for (const auto& kid : kids) {
          if (const auto* key = reading.find<HmacKey>(kid)) found.keys.push_back(key);
        }
        wrong = core::faults(found);
      });
      return wrong;
    };
    const auto wrong = readers_.read(look);
    if (!wrong) return std::unexpected(wrong.error());
    if (wrong->empty()) return {};
    const bool changed =
        repair([&kids](core::Unit& unit, core::Context&) { core::repair_keystore(unit, kids); });
    const auto left = changed ? readers_.read(look) : wrong;
    for (const auto& what : *wrong) {
      note(Keystore::table, what, left && std::ranges::find(*left, what) == left->end());
    }
    return {};
  }

  template <class Key>
  bool is_sound(const Key& key) {
    const auto sound =
        readers_.read([&](Reading& reading) -> Result<bool> { return faults_of(reading, key).empty(); });
    return sound && *sound;
  }

  // The faults of an execution or a flow, after trying to repair them.
  template <class Key>
  void note_all(const Key& key, const std::string& where, const std::vector<std::string>& faults) {
    const bool repaired =
        repair([&key](core::Unit& unit, core::Context& at) { core::repair(unit, key, at); }) && is_sound(key);
    for (const auto& what : faults) note(where, what, repaired);
  }

  Result<void> check_tag_rows() {
    std::optional<ExecutionTagKey> after;
    for (bool more = true; more;) {
      std::vector<ExecutionTagKey> superfluous;
      auto read = readers_.read([&](Reading& reading) -> Result<void> {
        const auto rows = reading.session.keys_after<ExecutionTag>(after, kPage);
        for (const auto& row : rows) {
          // An execution that cannot be read has been reported already.
          trouble_of([&] {
            const auto* execution = reading.find<Execution>({row.partition_key, row.execution_id});
            if (!says_the_same(execution, row)) superfluous.push_back(row);
          });
        }
        report_.records += rows.size();
        more = rows.size() == kPage;
        if (more) after = rows.back();
        return {};
      });
      if (!read) return read;
      for (const auto& row : superfluous) {
        const ExecutionId id{row.partition_key, row.execution_id};
        const bool repaired = repair([&](core::Unit& unit, core::Context&) {
          if (!says_the_same(unit.find<Execution>(id), row) && unit.find<ExecutionTag>(row)) {
            unit.erase<ExecutionTag>(row);
          }
        });
        note("ff_exec_tag " + id.to_string(), "the execution has no tag " + row.tag_key + " like this",
             repaired);
      }
    }
    return {};
  }

  static std::string name_of(const FlowKey& key) { return key.flow_id.to_string(); }
  static std::string name_of(const BudgetKey& key) { return key.budget_id.to_string(); }
  static std::string name_of(const QuotaPolicyKey& key) { return key.quota_policy_id.to_string(); }

  // Every record of a table with what belongs to it, as they are at one moment.
  template <class Record>
  Result<void> check_each(std::size_t page, const std::string& what) {
    std::optional<typename Record::Key> after;
    for (bool more = true; more;) {
      std::vector<std::pair<typename Record::Key, std::vector<std::string>>> faulty;
      auto read = readers_.read([&](Reading& reading) -> Result<void> {
        const auto keys = reading.session.keys_after<Record>(after, page);
        for (const auto& key : keys) {
          if (auto wrong = faults_of(reading, key); !wrong.empty())
            faulty.emplace_back(key, std::move(wrong));
        }
        report_.records += keys.size();
        more = keys.size() == page;
        if (more) after = keys.back();
        return {};
      });
      if (!read) return read;
      for (const auto& [key, wrong] : faulty) note_all(key, what + name_of(key), wrong);
    }
    return {};
  }

  std::vector<std::string> readable_faults_of(Reading& reading, const BudgetKey& key) {
    core::BudgetNeighbourhood found{.budget = reading.find<Budget>(key)};
    if (!found.budget) return {};  // removed since
    std::optional<ExecutionId> after;
    for (bool more = true; more;) {
      const auto entries = reading.ask(core::SpendingOf{key.budget_id, after, kPage});
      for (const auto& entry : entries) reading.unit.want<Spend>(entry);
      reading.session.load(reading.unit);
      for (const auto& entry : entries) found.ledger.push_back(&reading.unit.require<Spend>(entry));
      more = entries.size() == kPage;
      if (more) after = flowfabric::owner_of(entries.back());
    }
    return core::faults(found);
  }

  std::vector<std::string> readable_faults_of(Reading& reading, const QuotaPolicyKey& key) {
    const auto* policy = reading.find<QuotaPolicy>(key);
    if (!policy) return {};  // removed since
    const core::WindowOf all{key, std::numeric_limits<std::uint32_t>::max()};
    return core::faults({policy, reading.ask(core::SlotsOf{key}).size(), reading.ask(all).size()});
  }

  std::vector<std::string> readable_faults_of(Reading& reading, const FlowKey& key) {
    core::FlowNeighbourhood found{.flow = reading.find<Flow>(key)};
    if (!found.flow) return {};  // removed since
    found.backlog = reading.find<CancelBacklog>(key);
    found.edges = reading.session.edges_of(key);
    found.joins = reading.session.joins_of(key);
    const auto members = reading.ask(core::MembersOf{key.flow_id});
    for (const auto& member : members) {
      const auto& id = member.execution_id;
      reading.unit.want<Execution>(id);
      if (member.phase == LifecyclePhase::terminal) {
        reading.unit.want<DependencyDispatch>({id.partition, id.uuid});
      }
    }
    reading.session.load(reading.unit);
    for (const auto& member : members) {
      const auto& id = member.execution_id;
      found.members[id] = reading.unit.find<Execution>(id);
      const bool over = member.phase == LifecyclePhase::terminal;
      if (over && reading.unit.find<DependencyDispatch>({id.partition, id.uuid})) found.going_on.insert(id);
    }
    return core::faults(found);
  }

  // Reads every record of a table.
  Result<void> read_table(const RecordType& type, bool counts) {
    std::optional<AnyKey> after;
    for (bool more = true; more;) {
      auto read = readers_.read([&](Reading& reading) -> Result<void> {
        const auto keys = reading.session.keys_after(type, after, kPage);
        for (const auto& key : keys) {
          if (const auto problem = trouble_of([&] { load(reading, type, key); })) {
            note(std::string(type.table) + " " + shown_columns(key), *problem, false);
          }
        }
        if (counts) report_.records += keys.size();
        more = keys.size() == kPage;
        if (more) after = keys.back();
        return {};
      });
      if (!read) return read;
    }
    return {};
  }

  static void load(Reading& reading, const RecordType& type, const AnyKey& key) {
    reading.unit.want(type.place, key.get());
    reading.session.load(reading.unit);
  }

  static bool says_the_same(const Execution* execution, const ExecutionTagKey& row) {
    if (!execution) return false;
    const auto rows = core::tag_rows(*execution);
    return std::ranges::find(rows, row) != rows.end();
  }

  // Counts are kept by deltas, and put right by deltas: what happens meanwhile does no harm.
  Result<void> check_counts() {
    std::map<LaneCountKey, std::int64_t> missing;
    auto read = readers_.read([&](Reading& reading) -> Result<void> {
      const auto problem = trouble_of([&] {
        missing = reading.session.count_executions();
        for (const auto& [key, count] : reading.session.lane_counts()) missing[key] -= count;
      });
      if (!problem) return {};
      missing.clear();
      note("ff_lane_count", *problem, false);
      return {};
    });
    if (!read) return read;
    for (const auto& [key, delta] : missing) {
      if (delta == 0) continue;
      const bool repaired =
          repair([&](core::Unit& unit, core::Context&) { unit.count(key.lane_id, key.public_state, delta); });
      note("ff_lane_count " + key.lane_id + " " + std::string(enum_name(key.public_state)),
           "the count is off by " + std::to_string(-delta), repaired);
    }
    return {};
  }

  // False when repairs were not asked for, or the repair was refused.
  bool repair(std::function<void(core::Unit&, core::Context&)> change) {
    if (!request_.repair) return false;
    auto done = std::make_shared<std::promise<bool>>();
    Operation operation;
    operation.run = [change = std::move(change)](core::Unit& unit, core::Context& at) {
      change(unit, at);
      return Outcome::keep;
    };
    operation.answer = [done](const Error* refusal) { done->set_value(refusal == nullptr); };
    operation.seed = random_seed();
    operation.deadline = std::chrono::steady_clock::now() + options_.operation_deadline;
    auto repaired = done->get_future();
    committer_.submit(std::move(operation));
    return repaired.get();
  }

  void note(std::string where, std::string what, bool repaired) {
    ++report_.found;
    if (repaired) ++report_.repaired;
    if (report_.violations.size() < kMaxListed) {
      report_.violations.push_back({std::move(where), std::move(what), repaired});
    }
  }

  Readers& readers_;
  Committers& committer_;
  const CheckStore& request_;
  const EngineOptions& options_;
  StoreReport report_;
};

}  // namespace

Result<StoreReport> check_store(Readers& readers, Committers& committer, const CheckStore& request,
                                const EngineOptions& options) {
  return Check(readers, committer, request, options).run();
}

}  // namespace flowfabric::engine
