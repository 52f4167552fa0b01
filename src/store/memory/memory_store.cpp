#include "store/memory/memory_store.h"

#include <mutex>
#include <set>

namespace flowfabric::store {

namespace {

using core::Offer;
using core::OfferScan;
using core::Slot;
using core::Unit;

template <class Record>
using Table = std::map<typename Record::Key, std::shared_ptr<const Record>>;
template <class Event>
using Log = std::vector<Event>;

struct Database {
  std::mutex mutex;  // held for the length of a transaction
  std::function<std::int64_t()> now_ms;
  bool instant{true};

  boost::mp11::mp_rename<boost::mp11::mp_transform<Table, Records>, std::tuple> tables;
  boost::mp11::mp_rename<boost::mp11::mp_transform<Log, Events>, std::tuple> logs;
  std::map<LaneCountKey, std::int64_t> counts;
  std::map<std::int64_t, std::set<Offer>> offers;
  std::set<std::pair<std::int64_t, DueKey>> due;
  std::map<std::string, std::set<std::int64_t>> lane_routes;

  template <class Record>
  Table<Record>& table() {
    return std::get<Table<Record>>(tables);
  }
  template <class Event>
  Log<Event>& log() {
    return std::get<Log<Event>>(logs);
  }

  // Keeps the indexes of one record, as it comes or goes.
  template <class Record>
  void index(const Record* record, bool comes) {
    const auto update = [comes](auto& set, const auto& entry) {
      if (comes)
        set.insert(entry);
      else
        set.erase(entry);
    };
    if (!record) return;
    if constexpr (has_clock<Record>) {
      if (record->next_due_at_ms) update(due, std::pair(*record->next_due_at_ms, DueKey(record->key())));
    }
    if constexpr (std::is_same_v<Record, Execution>) {
      if (record->offer_order) update(offers[record->route_id], Offer{*record->offer_order, record->key()});
    }
    if constexpr (std::is_same_v<Record, Route>) update(lane_routes[record->lane_id], record->route_id);
  }

  template <class Record>
  void write(const Slot<Record>& slot) {
    index<Record>(slot.stored.get(), false);
    index<Record>(slot.changed.get(), true);
    if (slot.changed)
      table<Record>().insert_or_assign(slot.key, slot.changed);
    else
      table<Record>().erase(slot.key);
  }

  template <class Event>
  void append(const std::vector<Event>& events) {
    for (auto event : events) {
      event.event_id = static_cast<std::int64_t>(log<Event>().size()) + 1;
      log<Event>().push_back(std::move(event));
    }
  }

  template <class Event>
  std::vector<Event> events_after(std::int64_t after, std::size_t limit) {
    const auto& all = log<Event>();
    std::vector<Event> page;
    for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(after, 0));
         i < all.size() && page.size() < limit; ++i) {
      page.push_back(all[i]);
    }
    return page;
  }
};

class MemorySession final : public Session {
 public:
  explicit MemorySession(std::shared_ptr<Database> database)
      : database_(std::move(database)), lock_(database_->mutex, std::defer_lock) {}

  bool loads_instantly() const override { return database_->instant; }

  std::int64_t begin(Unit& unit) override {
    lock_.lock();
    load(unit);
    return database_->now_ms();
  }

  void load(Unit& unit) override {
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Records>>(
        [&]<class Record>(std::type_identity<Record>) {
          for (const auto& key : std::exchange(unit.wanted<Record>(), {})) {
            const auto& table = database_->table<Record>();
            const auto it = table.find(key);
            unit.put<Record>(key, it == table.end() ? nullptr : it->second);
          }
        });
    for (const auto& lane : std::exchange(unit.wanted_routes(), {})) {
      std::vector<Route> routes;
      for (const auto id : database_->lane_routes[lane])
        routes.push_back(*database_->table<Route>().at({id}));
      unit.put_routes(lane, std::move(routes));
    }
    for (const auto& scan : std::exchange(unit.wanted_offers(), {})) {
      const auto& offers = database_->offers[scan.route_id];
      auto it = scan.after ? offers.upper_bound(*scan.after) : offers.begin();
      std::vector<std::shared_ptr<const Execution>> rows;
      for (; it != offers.end() && rows.size() < scan.limit; ++it) {
        rows.push_back(database_->table<Execution>().at(it->execution_id));
      }
      unit.put_offers(scan, std::move(rows));
    }
  }

  void commit(Unit& unit) override {
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Records>>(
        [&]<class Record>(std::type_identity<Record>) {
          unit.for_each_dirty<Record>([&](const Slot<Record>& slot) { database_->write(slot); });
        });
    boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Events>>(
        [&]<class Event>(std::type_identity<Event>) { database_->append(unit.appended<Event>()); });
    for (const auto& [key, delta] : unit.count_deltas()) database_->counts[key] += delta;
    lock_.unlock();
  }

  void rollback() noexcept override {
    if (lock_.owns_lock()) lock_.unlock();
  }

  std::vector<DueKey> due(std::int64_t now_ms, std::size_t limit) override {
    std::vector<DueKey> keys;
    for (const auto& [time, key] : database_->due) {
      if (time > now_ms || keys.size() == limit) break;
      keys.push_back(key);
    }
    return keys;
  }

  std::optional<std::int64_t> next_due() override {
    if (database_->due.empty()) return std::nullopt;
    return database_->due.begin()->first;
  }

  std::vector<Attempt> attempts_of(const ExecutionId& id) override {
    std::vector<Attempt> attempts;
    const auto& table = database_->table<Attempt>();
    for (auto it = table.lower_bound({id.partition, id.uuid, 0});
         it != table.end() && it->first.partition_key == id.partition && it->first.execution_id == id.uuid;
         ++it) {
      attempts.push_back(*it->second);
    }
    return attempts;
  }

  std::vector<LeaseEvent> lease_events(std::int64_t after, std::size_t limit) override {
    return database_->events_after<LeaseEvent>(after, limit);
  }
  std::vector<CompletionEvent> completion_events(std::int64_t after, std::size_t limit) override {
    return database_->events_after<CompletionEvent>(after, limit);
  }

  std::map<PublicState, std::int64_t> count_lane(const std::string& lane) override {
    std::map<PublicState, std::int64_t> counts;
    for (const auto& [key, count] : database_->counts) {
      if (key.lane_id == lane && count != 0) counts[key.public_state] = count;
    }
    return counts;
  }

 private:
  std::shared_ptr<Database> database_;
  std::unique_lock<std::mutex> lock_;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::unique_ptr<Session> open_writer() override { return std::make_unique<MemorySession>(database_); }
  std::unique_ptr<Session> open_reader() override { return std::make_unique<MemorySession>(database_); }

 private:
  std::shared_ptr<Database> database_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_memory_store(const StoreUrl& url, const StoreOptions& options) {
  auto database = std::make_shared<Database>();
  database->now_ms = options.now_ms;
  for (const auto& [key, value] : url.options) {
    if (key == "load" && value == "deferred") {
      database->instant = false;
    } else {
      return fail_with(ErrorCode::invalid_input, "store URL: unknown option",
                       "memory: knows no option '" + key + "=" + value + "'.");
    }
  }
  return std::make_unique<MemoryStore>(std::move(database));
}

}  // namespace flowfabric::store
