// The unit of work: the records that a batch of operations reads and writes.
//
// It is an identity map shared by a whole batch: two operations on one record see each other, in order, and
// the record is written once. Each operation runs between `begin_operation` and either `keep` or `undo`, so
// that a refused operation leaves no trace.
//
// Operations are written as straight code: `find` gives a record or nothing. When a record was not loaded
// yet, a store that loads instantly is asked on the spot; otherwise the operation is abandoned with
// NotLoaded, which only the batch catches, and is run again when the missing records are there.
//
// Records are kept by the place of their type in `Records`; the functions that name a type are thin wrappers
// over those that take its place.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/loader.h"
#include "core/note.h"
#include "core/offer_book.h"
#include "core/questions.h"
#include "core/slot.h"
#include "model/record_type.h"

namespace flowfabric::core {

// Events of one kind that a batch appends.
class AppendedEvents {
 public:
  AppendedEvents(const void* first, std::size_t size, std::size_t count)
      : first_(static_cast<const char*>(first)), size_(size), count_(count) {}
  std::size_t size() const { return count_; }
  const void* operator[](std::size_t index) const { return first_ + index * size_; }

 private:
  const char* first_;
  std::size_t size_;
  std::size_t count_;
};

// Says what whoever takes this offer will need.
using WantForTaking = std::function<void(Unit&, const Execution&)>;

class Unit {
 public:
  // `want_for_taking` is called with every offer that is loaded.
  explicit Unit(Loader& loader, WantForTaking want_for_taking = {});
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // ---- for operations ----

  template <class Record>
  const Record* find(const typename Record::Key& key) {
    return static_cast<const Record*>(find(place_of<Record>, &key));
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
    return *static_cast<Record*>(edit(place_of<Record>, &key));
  }

  // The record is new: its caller has looked, or knows from another record that it cannot be there.
  template <class Record>
  Record& insert(Record record) {
    const auto key = record.key();
    const auto made = std::make_shared<Record>(std::move(record));
    insert(place_of<Record>, &key, made);
    return *made;
  }

  // This batch has changed some.
  template <class Record>
  bool has_changed() const {
    return !dirty(place_of<Record>).empty();
  }
  // This batch has changed it before.
  template <class Record>
  bool is_changed(const typename Record::Key& key) const {
    const auto* slot = held(place_of<Record>, &key);
    return slot && slot->dirty;
  }

  template <class Record>
  void erase(const typename Record::Key& key) {
    erase(place_of<Record>, &key);
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
    if (wants(place_of<Record>)) load_now();
  }

  template <class First, class Second, class FirstKeys, class SecondKeys>
  void fetch(const FirstKeys& first, const SecondKeys& second) {
    if (loader_.loads_instantly()) return;
    for (const auto& key : first) want<First>(key);
    for (const auto& key : second) want<Second>(key);
    if (wants(place_of<First>) || wants(place_of<Second>)) load_now();
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
    for (const auto& saved : journal_) {
      if (saved.slot->place != place_of<Record>) continue;
      f(static_cast<const Record*>(saved.was_dirty ? saved.before.get() : saved.slot->stored.get()),
        static_cast<const Record*>(saved.slot->changed.get()));
    }
  }

  template <class Record>
  void want(const typename Record::Key& key) {
    want(place_of<Record>, &key);
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
    static_assert(is_shared<Record>);
    want_lock(place_of<Record>, &key);
  }
  // What several operations want of a route is one scan.
  void want_offers(std::int64_t route_id, std::uint32_t limit);

  // ---- for stores, and for those who know a record by its description ----

  // Records by the place of their type: what is behind `find`, `erase` and `want`.
  const void* find(std::size_t place, const void* key) { return slot_of(place, key).current(); }
  void erase(std::size_t place, const void* key);
  void want(std::size_t place, const void* key);
  bool wants(std::size_t place) const;
  std::vector<AnyKey> take_wanted(std::size_t place);
  // Shared records that are to be changed: to be locked, and put with `put_locked`.
  std::vector<AnyKey> take_wanted_locks(std::size_t place);
  std::vector<OfferScan>& wanted_offers() { return wanted_offers_; }
  std::vector<std::string>& wanted_routes() { return wanted_routes_; }

  template <class Question>
  bool wants_answers() const {
    const auto& answers = answers_[boost::mp11::mp_find<Questions, Question>::value];
    return answers && !static_cast<const Answers<Question>&>(*answers).wanted.empty();
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
  void put(std::size_t place, const void* key, std::shared_ptr<const void> record);
  template <class Record>
  void put(const typename Record::Key& key, std::shared_ptr<const Record> record) {
    put(place_of<Record>, &key, std::move(record));
  }
  // What it is now that nobody else can change it.
  void put_locked(std::size_t place, const void* key, std::shared_ptr<const void> record);
  // The answer to a scan: rows in order, fewer than the limit when there are no more.
  void put_offers(const OfferScan& scan, std::vector<std::shared_ptr<const Execution>> rows);
  void put_routes(const std::string& lane, std::vector<Route> routes);

  // What the batch leaves under the key: a record, or nothing (null). Absent: it does not know.
  std::optional<std::shared_ptr<const void>> left(std::size_t place, const void* key) const;

  // The slots of all records of a type that the batch changed, in the order of first change.
  std::span<AnySlot* const> dirty(std::size_t place) const;
  template <class Record, class F>
  void for_each_dirty(F&& f) const {
    for (const auto* slot : dirty(place_of<Record>)) f(Slot<Record>(*slot));
  }
  AppendedEvents appended(std::size_t event_place) const;
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
  bool is_stored(const AnySlot& slot) const;
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

  // The records of one type; made when the first of them is needed.
  struct Drawer;
  // How a slot was before the operation changed it.
  struct Saved {
    AnySlot* slot;
    bool was_dirty;
    std::shared_ptr<void> before;  // only when it was dirty; otherwise the slot's stored value stands
    std::uint64_t touched_by;
  };

  static std::unique_ptr<AnyAnswers> make_answers(std::size_t place);
  Drawer& drawer(std::size_t place);
  // Null: this batch knows nothing of it.
  AnySlot* held(std::size_t place, const void* key) const;
  AnySlot& slot_of(std::size_t place, const void* key);
  void* edit(std::size_t place, const void* key);
  void insert(std::size_t place, const void* key, std::shared_ptr<void> record);
  void want_lock(std::size_t place, const void* key);
  bool touch(AnySlot& slot);
  bool is_purged(const RecordType& type, const void* key) const;

  template <class Question>
  Answers<Question>& answers_to() {
    constexpr std::size_t place = boost::mp11::mp_find<Questions, Question>::value;
    if (!answers_[place]) answers_[place] = make_answers(place);
    return static_cast<Answers<Question>&>(*answers_[place]);
  }

  void load_now();
  void want_more(std::int64_t route_id, const std::optional<Offer>& after, std::uint32_t expected);
  void absorb_touched(OfferBook& book, std::int64_t route_id);

  Loader& loader_;
  WantForTaking want_for_taking_;
  std::array<std::unique_ptr<Drawer>, kRecordTypes> drawers_;
  std::vector<Saved> journal_;
  std::array<std::unique_ptr<AnyAnswers>, boost::mp11::mp_size<Questions>::value> answers_;
  boost::mp11::mp_rename<boost::mp11::mp_transform<EventList, Events>, std::tuple> events_;
  // Sizes of the event lists when the operation began.
  std::array<std::size_t, kEventTypes> marks_{};
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
  std::vector<const AnySlot*> touched_executions_;
  std::uint64_t operation_{0};
};

}  // namespace flowfabric::core
