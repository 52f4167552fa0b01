// The unit of work: the records that a batch of operations reads and writes.
//
// It is an identity map shared by a whole batch: two operations on one record see each other, in order, and
// the record is written once. Each operation runs between `begin_operation` and either `keep` or `undo`, so
// that a refused operation leaves no trace.
//
// Operations are written as straight code: `find` gives a record or nothing. When a record was not loaded
// yet, a store that loads instantly is asked on the spot; otherwise the operation is abandoned with
// NotLoaded, which only the batch catches, and is run again when the missing records are there.
#pragma once

#include <array>
#include <boost/mp11.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/list_position.h"
#include "core/note.h"
#include "model/describe.h"
#include "model/partition.h"
#include "model/records.h"

namespace flowfabric::core {

class Unit;

// What a unit asks for records: implemented by every store's session.
class Loader {
 public:
  virtual ~Loader() = default;
  // Fetches everything the unit wants (`wanted<R>()`, `wanted_offers()`, …), and clears those lists.
  virtual void load(Unit& unit) = 0;
  virtual bool loads_instantly() const = 0;
  // Others write to the store as well: shared records are locked before they are changed.
  virtual bool has_other_writers() const { return false; }
  // What a member's flow, if it has one, was when an earlier batch saw the execution. A hint.
  virtual std::optional<FlowId> remembered_flow(const ExecutionId&) const { return std::nullopt; }
  // Routes of a lane that offered something when an earlier batch saw them, if one did. A hint.
  virtual const std::vector<Route>* remembered_routes(const std::string&) const { return nullptr; }
};

struct NotLoaded {};

// A record is missing that another one says must be there: the store is damaged. Only the engine catches it.
struct MissingRecord {
  const char* table;
};

template <class Key>
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    boost::mp11::mp_for_each<PublicMembers<Key>>([&](auto member) {
      using Field = std::remove_cvref_t<decltype(key.*member.pointer)>;
      hash = hash * 0x9E3779B97F4A7C15ULL + std::hash<Field>{}(key.*member.pointer);
    });
    return hash;
  }
};

// One record of the batch: as the store has it, and as the batch has changed it. Records are wide, so they
// are shared with the store's own copies and copied only when they are changed.
template <class Record>
struct Slot {
  typename Record::Key key;
  std::shared_ptr<const Record> stored;
  std::shared_ptr<Record> changed;  // meaningful when dirty; null then means: erased
  bool dirty{false};
  bool locked{false};           // a shared record that nobody else can change now
  std::uint64_t touched_by{0};  // the operation that changed it last

  const Record* current() const { return dirty ? changed.get() : stored.get(); }
};

// What a batch holds of one kind of record. Each kind has its drawer, reached by its place in `Records` and
// made when it is first opened: a unit that named all of their types would be compiled anew by everybody who
// uses one of them, and most batches use few.
struct AnyDrawer {
  virtual ~AnyDrawer() = default;
};
template <class Record>
struct Drawer final : AnyDrawer {
  using Key = typename Record::Key;
  // How a slot was before the operation changed it.
  struct Saved {
    Slot<Record>* slot;
    bool was_dirty;
    std::shared_ptr<Record> before;  // only when it was dirty; otherwise the slot's stored value stands
    std::uint64_t touched_by;
  };
  std::unordered_map<Key, Slot<Record>, KeyHash<Key>> shelf;
  std::vector<Key> wanted;
  std::vector<Key> locks;
  std::vector<Saved> journal;
  std::vector<Slot<Record>*> dirty;
};
// The same for the answers to one kind of question.
template <class Question>
struct AnswerDrawer final : AnyDrawer {
  std::map<Question, std::vector<typename Question::Found>> known;
  std::vector<Question> wanted;
};

// A place in the order in which work is taken.
struct Offer {
  std::int64_t order{};
  ExecutionId execution_id;
  auto operator<=>(const Offer&) const = default;
};

// Asks for the best offers of a route after `after`.
struct OfferScan {
  std::int64_t route_id{};
  std::optional<Offer> after;
  std::uint32_t limit{};
};

// ---- questions that an index answers ----
//
// The answers come from the store and do not know what this batch has changed: look at each record that was
// found before acting on it, and look again later for what was missed.

struct WorkersOf {
  using Found = WorkerKey;
  std::string namespace_;
  auto operator<=>(const WorkersOf&) const = default;
};
// What a worker instance runs, by execution id.
struct LeasesOf {
  using Found = ExecutionId;
  std::string worker_instance_id;
  std::optional<std::string> namespace_;  // of the executions; absent: any
  std::optional<ExecutionId> after;
  std::uint32_t limit{};
  auto operator<=>(const LeasesOf&) const = default;
};
struct BlockedOnRoute {
  using Found = ExecutionId;
  std::int64_t route_id{};
  std::uint32_t limit{};
  auto operator<=>(const BlockedOnRoute&) const = default;
};
// The edges out of, or into, an execution, by edge id.
struct EdgesFrom {
  using Found = EdgeKey;
  ExecutionId upstream;
  std::optional<EdgeId> after;
  std::uint32_t limit{};
  auto operator<=>(const EdgesFrom&) const = default;
};
struct EdgesInto {
  using Found = EdgeKey;
  ExecutionId downstream;
  std::optional<EdgeId> after;
  std::uint32_t limit{};
  auto operator<=>(const EdgesInto&) const = default;
};
// Everything that follows it, over any number of edges.
struct Descendants {
  using Found = ExecutionId;
  ExecutionId of;
  auto operator<=>(const Descendants&) const = default;
};
struct MemberPhase {
  ExecutionId execution_id;
  LifecyclePhase phase{};
  auto operator<=>(const MemberPhase&) const = default;
};
BOOST_DESCRIBE_STRUCT(MemberPhase, (), (execution_id, phase))
struct MembersOf {
  using Found = MemberPhase;
  FlowId flow_id;
  auto operator<=>(const MembersOf&) const = default;
};
// Members of a cancelled flow that are still owed a cancel, by id.
struct OwedCancels {
  using Found = ExecutionId;
  FlowKey flow;
  std::optional<Uuid> after;
  std::uint32_t limit{};
  auto operator<=>(const OwedCancels&) const = default;
};
// Waitpoints of an execution that are not closed, by id.
struct OpenWaitpoints {
  using Found = WaitpointRecordKey;
  ExecutionId of;
  auto operator<=>(const OpenWaitpoints&) const = default;
};
// Waitpoints with this id: one, unless two executions were given the same at the same moment.
struct WaitpointsNamed {
  using Found = WaitpointRecordKey;
  WaitpointId waitpoint_id;
  auto operator<=>(const WaitpointsNamed&) const = default;
};
// Secrets that no new token is signed with.
struct RetiredSecrets {
  using Found = HmacKeyKey;
  auto operator<=>(const RetiredSecrets&) const = default;
};
// What a budget or quota policy holds back, oldest first.
struct BlockedOn {
  using Found = ListPosition;
  Uuid limit_id;
  std::optional<ListPosition> after;
  std::uint32_t limit{};
  auto operator<=>(const BlockedOn&) const = default;
};
// Admissions that a policy's rate counts, oldest first; and those that hold a slot.
struct WindowEntry {
  QuotaAdmissionKey admission;
  std::int64_t window_at_ms{};
};
BOOST_DESCRIBE_STRUCT(WindowEntry, (), (admission, window_at_ms))
struct WindowOf {
  using Found = WindowEntry;
  QuotaPolicyKey policy;
  std::uint32_t limit{};
  auto operator<=>(const WindowOf&) const = default;
};
struct SlotsOf {
  using Found = QuotaAdmissionKey;
  QuotaPolicyKey policy;
  auto operator<=>(const SlotsOf&) const = default;
};
// Those that hold a slot although they are neither leased nor granted, or are not there at all; by key.
struct StraySlotsOf {
  using Found = QuotaAdmissionKey;
  QuotaPolicyKey policy;
  std::uint32_t limit{};
  auto operator<=>(const StraySlotsOf&) const = default;
};
// Policies of a lane's keys that hold something back, by key.
struct FullKeysOf {
  using Found = QuotaPolicyKey;
  std::string lane_id;
  std::uint32_t limit{};
  auto operator<=>(const FullKeysOf&) const = default;
};
// Flows, lanes and tenants that a budget or quota policy is attached to.
struct ScopesOf {
  using Found = ScopeLimitsKey;
  Uuid limit_id;
  auto operator<=>(const ScopesOf&) const = default;
};
// Who has spent of a budget, by execution id.
struct SpendingOf {
  using Found = SpendKey;
  BudgetId budget_id;
  std::optional<ExecutionId> after;
  std::uint32_t limit{};
  auto operator<=>(const SpendingOf&) const = default;
};
// The groups of a route, and those of its lane and namespace that an older version made for all routes.
struct GroupsOf {
  using Found = GroupKey;
  std::int64_t route_id{};
  std::string lane_id;
  std::string namespace_;
  std::uint32_t limit{};
  auto operator<=>(const GroupsOf&) const = default;
};
// One of the executions of a group, if there is any.
struct ExecutionsIn {
  using Found = ExecutionId;
  std::int64_t group_id{};
  auto operator<=>(const ExecutionsIn&) const = default;
};
using Questions =
    boost::mp11::mp_list<BlockedOn, WindowOf, SlotsOf, StraySlotsOf, FullKeysOf, ScopesOf, SpendingOf,
                         OpenWaitpoints, WaitpointsNamed, RetiredSecrets, WorkersOf, LeasesOf, BlockedOnRoute,
                         GroupsOf, ExecutionsIn, EdgesFrom, EdgesInto, Descendants, MembersOf, OwedCancels>;

class Unit {
 public:
  explicit Unit(Loader& loader, const PartitionCounts& partitions = {});
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // ---- for operations ----

  template <class Record>
  const Record* find(const typename Record::Key& key) {
    return slot_of<Record>(key).current();
  }

  // For a record that another one says must be there.
  template <class Record>
  const Record& require(const typename Record::Key& key) {
    const auto* record = find<Record>(key);
    if (!record) throw MissingRecord{Record::table};
    return *record;
  }

  // The record must have been found before.
  template <class Record>
  Record& edit(const typename Record::Key& key) {
    auto& slot = slot_of<Record>(key);
    touch(slot);
    return *slot.changed;
  }

  // The record is new: its caller has looked, or knows from another record that it cannot be there.
  template <class Record>
  Record& insert(Record record) {
    put<Record>(record.key(), nullptr);
    auto& slot = slot_of<Record>(record.key());
    touch(slot);
    slot.changed = std::make_shared<Record>(std::move(record));
    return *slot.changed;
  }

  // This batch has changed some.
  template <class Record>
  bool has_changed() const {
    const auto* drawer = opened<Record>();
    return drawer && !drawer->dirty.empty();
  }
  // This batch has changed it before.
  template <class Record>
  bool is_changed(const typename Record::Key& key) const {
    const auto* slot = held<Record>(key);
    return slot && slot->dirty;
  }

  template <class Record>
  void erase(const typename Record::Key& key) {
    auto& slot = slot_of<Record>(key);
    touch(slot);
    slot.changed.reset();
  }

  // Removes the execution with all records that are kept under its key, seen or unseen.
  void purge(const ExecutionId& id);
  // Removes the oldest frames of a stream, unseen; after those that this batch inserts are there.
  void drop_frames(const StreamKey& key, std::uint64_t count) { dropped_now_.push_back({key, count}); }
  // Removes events that happened before, in a bounded step; the newest of each log always stays.
  void trim_events(std::int64_t before_ms) { trim_before_ms_ = before_ms; }

  // Fetches these records together, where a store across a network would be asked one by one.
  template <class Record, class Keys>
  void fetch(const Keys& keys) {
    if (loader_.loads_instantly()) return;
    for (const auto& key : keys) want<Record>(key);
    if (!wanted<Record>().empty()) load_now();
  }

  template <class First, class Second, class FirstKeys, class SecondKeys>
  void fetch(const FirstKeys& first, const SecondKeys& second) {
    if (loader_.loads_instantly()) return;
    for (const auto& key : first) want<First>(key);
    for (const auto& key : second) want<Second>(key);
    if (!wanted<First>().empty() || !wanted<Second>().empty()) load_now();
  }
  template <class Question>
  void fetch_answers(const std::vector<Question>& questions) {
    if (loader_.loads_instantly()) return;
    for (const auto& question : questions) want_answer(question);
    if (!wanted_answers<Question>().empty()) load_now();
  }

  template <class Question>
  const std::vector<typename Question::Found>& ask(const Question& question) {
    auto& answers = answers_to<Question>();
    auto it = answers.known.find(question);
    if (it == answers.known.end()) {
      answers.wanted.push_back(question);
      load_now();
      it = answers.known.find(question);
    }
    return it->second;
  }

  // The records that a question finds, and those that this batch has changed, in the order of their keys: for
  // who must not miss the latter. They may be others than those asked for.
  template <class Record, class Question>
  std::set<typename Record::Key> ask_with_changes(const Question& question) {
    const auto& found = ask(question);
    std::set<typename Record::Key> keys(found.begin(), found.end());
    for_each_dirty<Record>([&](const Slot<Record>& slot) { keys.insert(slot.key); });
    fetch<Record>(keys);
    return keys;
  }

  // Says that it will be asked.
  template <class Question>
  void want_answer(const Question& question) {
    auto& answers = answers_to<Question>();
    if (!answers.known.contains(question)) answers.wanted.push_back(question);
  }

  template <class Event>
  void append(Event event) {
    std::get<std::vector<Event>>(events_).push_back(std::move(event));
  }

  void count(const std::string& lane, PublicState state, std::int64_t delta) {
    counts_now_.push_back({LaneCountKey{lane, state}, delta});
  }

  // For those who count what happens; it changes nothing.
  void note(Noted what, std::string label, std::int64_t amount = 0) {
    notes_.push_back({what, std::move(label), amount});
  }

  // The routes of a lane that something is offered or blocked on, in this batch, too; maybe others.
  std::vector<const Route*> routes_of(const std::string& lane);

  // The best execution offered on a route, as this operation sees it. `expected` says how many the caller
  // will ask for in a row.
  const Execution* best_offer(std::int64_t route_id, std::uint32_t expected);

  // Says that offers of these routes will be asked for, so that a store across a network scans them together.
  void expect_offers(const std::vector<std::int64_t>& routes, std::uint32_t expected);

  // The best of what is known to be offered on a route, without asking for more: for those who fetch what
  // candidates need, many at once. Nothing where records are loaded on the spot.
  std::vector<ExecutionId> known_offers(std::int64_t route_id, std::uint32_t count);

  // Everything that is offered on these routes counts as newly offered: claims that wait for it are woken.
  void offer_again(std::int64_t route_id) { reopened_now_.push_back(route_id); }

  // What was changed so far stays even if the operation is refused now. The specification has a few
  // such cases; each caller names its own.
  void keep_despite_refusal() { keep(); }

  // ---- for the batch ----

  void begin_operation();
  void keep();
  void undo();

  // Calls f(before, after) for every record the operation has changed so far; either may be null.
  template <class Record, class F>
  void for_each_touched(F&& f) const {
    const auto* drawer = opened<Record>();
    if (!drawer) return;
    for (const auto& saved : drawer->journal) {
      f(saved.was_dirty ? saved.before.get() : saved.slot->stored.get(),
        static_cast<const Record*>(saved.slot->changed.get()));
    }
  }

  template <class Record>
  void want(const typename Record::Key& key) {
    if (!drawer<Record>().shelf.contains(key)) wanted<Record>().push_back(key);
  }

  void want_routes(const std::string& lane) {
    if (!routes_.contains(lane)) wanted_routes_.push_back(lane);
  }
  const std::vector<Route>* remembered_routes(const std::string& lane) const {
    return loader_.remembered_routes(lane);
  }
  std::optional<FlowId> remembered_flow(const ExecutionId& id) const { return loader_.remembered_flow(id); }
  // A record that will be changed, and that many others read.
  template <class Record>
  void want_lock(const typename Record::Key& key) {
    if (loader_.has_other_writers())
      wanted_locks<Record>().push_back(key);
    else
      want<Record>(key);
  }
  // What several operations want of a route is one scan.
  void want_offers(std::int64_t route_id, std::uint32_t limit);

  // ---- for stores ----

  template <class Record>
  bool wants() const {
    const auto* drawer = opened<Record>();
    return drawer && !drawer->wanted.empty();
  }
  template <class Record>
  std::vector<typename Record::Key>& wanted() {
    return drawer<Record>().wanted;
  }
  // Shared records that are to be changed: to be locked, and put with `put_locked`.
  template <class Record>
  std::vector<typename Record::Key>& wanted_locks() {
    static_assert(is_shared<Record>);
    return drawer<Record>().locks;
  }
  template <class Record>
  bool wants_locks() const {
    const auto* drawer = opened<Record>();
    return drawer && !drawer->locks.empty();
  }
  std::vector<OfferScan>& wanted_offers() { return wanted_offers_; }
  std::vector<std::string>& wanted_routes() { return wanted_routes_; }

  template <class Question>
  bool wants_answers() const {
    const auto& answers = answers_[boost::mp11::mp_find<Questions, Question>::value];
    return answers && !static_cast<const AnswerDrawer<Question>&>(*answers).wanted.empty();
  }
  template <class Question>
  std::vector<Question>& wanted_answers() {
    return answers_to<Question>().wanted;
  }
  template <class Question>
  void put_answer(const Question& question, std::vector<typename Question::Found> found) {
    answers_to<Question>().known.insert_or_assign(question, std::move(found));
  }

  // Puts down what the store has under `key`: a record, or nothing. What the batch already holds stays.
  template <class Record>
  void put(const typename Record::Key& key, std::shared_ptr<const Record> record) {
    auto [it, fresh] = drawer<Record>().shelf.try_emplace(key);
    if (!fresh) return;
    it->second.key = key;
    // What was removed by this batch is not there, even if the store still has it.
    if constexpr (is_owned<Record>) {
      if (!purged_.empty() && purged_.contains(owner_of(key))) return;
    }
    it->second.stored = std::move(record);
  }
  // What it is now that nobody else can change it.
  template <class Record>
  void put_locked(const typename Record::Key& key, std::shared_ptr<const Record> record) {
    auto& slot = drawer<Record>().shelf[key];
    slot.key = key;
    slot.locked = true;
    if (!slot.dirty) slot.stored = std::move(record);
  }
  // The answer to a scan: rows in order, fewer than the limit when there are no more.
  void put_offers(const OfferScan& scan, std::vector<std::shared_ptr<const Execution>> rows);
  void put_routes(const std::string& lane, std::vector<Route> routes);

  // What the batch leaves under the key: a record, or nothing (null). Absent: it does not know.
  template <class Record>
  std::optional<std::shared_ptr<const Record>> left(const typename Record::Key& key) const {
    const auto* slot = held<Record>(key);
    if constexpr (is_owned<Record>) {
      const bool is_purged = !purged_.empty() && purged_.contains(owner_of(key));
      if (is_purged && !(slot && slot->dirty)) return nullptr;
    }
    if (!slot) return std::nullopt;
    return slot->dirty ? slot->changed : slot->stored;
  }

  // Calls f(slot) for every record the batch changed, in the order of first change.
  template <class Record, class F>
  void for_each_dirty(F&& f) const {
    const auto* drawer = opened<Record>();
    if (!drawer) return;
    for (const Slot<Record>* slot : drawer->dirty) {
      if (slot->dirty) f(*slot);
    }
  }
  template <class Event>
  const std::vector<Event>& appended() const {
    return std::get<std::vector<Event>>(events_);
  }
  const std::map<LaneCountKey, std::int64_t>& count_deltas() const { return counts_; }
  // Of all operations that were kept.
  std::vector<Note> take_notes() { return std::move(notes_); }
  // To be removed before anything is written: an id may be used again in the same batch.
  const std::unordered_set<ExecutionId>& purged() const { return purged_; }
  // The store has it, and will still have it when the batch is written.
  template <class Record>
  bool is_stored(const Slot<Record>& slot) const {
    if constexpr (is_owned<Record>) {
      return slot.stored && (purged_.empty() || !purged_.contains(owner_of(slot.key)));
    }
    return slot.stored != nullptr;
  }
  const std::map<StreamKey, std::uint64_t>& dropped_frames() const { return dropped_; }
  std::optional<std::int64_t> trim_before_ms() const { return trim_before_ms_; }

  // How often the operations of this batch offered an execution on each route, so that as many waiting claims
  // can be woken. What a later operation of the batch took again counts too: the claim that took it may have
  // been woken for something else that is still there.
  const std::map<std::int64_t, std::uint32_t>& new_offers() const { return new_offers_; }
  // Offers that were read, and may have been kept from others, but that nobody took: of routes on which
  // something was taken.
  std::map<std::int64_t, std::uint32_t> offers_left() const;
  bool has_changes() const;
  // How many records and events it will write, about.
  std::size_t change_count() const;

 private:
  template <class Event>
  using EventList = std::vector<Event>;

  static std::unique_ptr<AnyDrawer> make_drawer(std::size_t place);
  static std::unique_ptr<AnyDrawer> make_answers(std::size_t place);
  template <class Record>
  Drawer<Record>& drawer() {
    constexpr std::size_t place = boost::mp11::mp_find<Records, Record>::value;
    if (!drawers_[place]) drawers_[place] = make_drawer(place);
    return static_cast<Drawer<Record>&>(*drawers_[place]);
  }
  // Null: this batch has nothing of the kind.
  template <class Record>
  const Drawer<Record>* opened() const {
    return static_cast<const Drawer<Record>*>(drawers_[boost::mp11::mp_find<Records, Record>::value].get());
  }
  template <class Record>
  const Slot<Record>* held(const typename Record::Key& key) const {
    const auto* drawer = opened<Record>();
    if (!drawer) return nullptr;
    const auto it = drawer->shelf.find(key);
    return it == drawer->shelf.end() ? nullptr : &it->second;
  }
  template <class Question>
  AnswerDrawer<Question>& answers_to() {
    constexpr std::size_t place = boost::mp11::mp_find<Questions, Question>::value;
    if (!answers_[place]) answers_[place] = make_answers(place);
    return static_cast<AnswerDrawer<Question>&>(*answers_[place]);
  }

  // What is known of one route's offers: all of them up to `horizon`, and those this batch made.
  struct OfferBook {
    std::set<Offer> known;
    std::optional<Offer> horizon;
    bool exhausted{false};
    std::size_t seen{0};  // how much of touched_executions_ was looked at
  };

  template <class Record>
  Slot<Record>& slot_of(const typename Record::Key& key) {
    auto& shelf = drawer<Record>().shelf;
    auto it = shelf.find(key);
    if (it == shelf.end()) {
      wanted<Record>().push_back(key);
      load_now();
      it = shelf.find(key);
    }
    return it->second;
  }

  template <class Record>
  void touch(Slot<Record>& slot) {
    if (slot.touched_by == operation_) return;
    if constexpr (is_shared<Record>) {
      if (slot.stored && !slot.locked && loader_.has_other_writers()) {
        wanted_locks<Record>().push_back(slot.key);
        throw NotLoaded{};
      }
    }
    const auto copy = [](const Record* record) {
      return record ? std::make_shared<Record>(*record) : std::shared_ptr<Record>();
    };
    drawer<Record>().journal.push_back({&slot, slot.dirty, slot.changed, slot.touched_by});
    slot.touched_by = operation_;
    slot.changed = copy(slot.current());
    if (slot.dirty) return;
    slot.dirty = true;
    drawer<Record>().dirty.push_back(&slot);
  }

  void load_now();
  void want_more(std::int64_t route_id, const std::optional<Offer>& after, std::uint32_t expected);
  void absorb_touched(OfferBook& book, std::int64_t route_id);

  Loader& loader_;
  PartitionCounts partitions_;
  std::array<std::unique_ptr<AnyDrawer>, boost::mp11::mp_size<Records>::value> drawers_;
  std::array<std::unique_ptr<AnyDrawer>, boost::mp11::mp_size<Questions>::value> answers_;
  boost::mp11::mp_rename<boost::mp11::mp_transform<EventList, Events>, std::tuple> events_;
  // Sizes of the event lists when the operation began.
  std::array<std::size_t, boost::mp11::mp_size<Events>::value> marks_{};
  std::vector<Note> notes_;
  std::size_t notes_mark_{0};
  std::vector<ExecutionId> purged_now_;
  std::unordered_set<ExecutionId> purged_;
  std::vector<std::pair<StreamKey, std::uint64_t>> dropped_now_;
  std::map<StreamKey, std::uint64_t> dropped_;
  std::optional<std::int64_t> trim_before_ms_;
  std::vector<std::int64_t> reopened_now_;
  std::vector<std::pair<LaneCountKey, std::int64_t>> counts_now_;
  std::map<LaneCountKey, std::int64_t> counts_;
  std::map<std::int64_t, std::uint32_t> new_offers_;
  std::vector<OfferScan> wanted_offers_;
  std::vector<std::string> wanted_routes_;
  std::map<std::string, std::vector<RouteKey>> routes_;
  std::unordered_map<std::int64_t, OfferBook> books_;
  std::vector<Slot<Execution>*> touched_executions_;
  std::uint64_t operation_{0};
};

}  // namespace flowfabric::core
