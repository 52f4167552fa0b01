#include "core/unit.h"

#include <boost/unordered/unordered_flat_set.hpp>
#include <deque>
#include <limits>

namespace flowfabric::core {

namespace {

template <class F>
void for_each_event(F&& f) {
  std::size_t index = 0;
  for_each_type<Events>([&]<class Event>() { f.template operator()<Event>(index++); });
}

// A key that is looked for, with its hash.
struct KeyRef {
  const void* key;
  std::size_t hash;
};
struct SlotHash {
  using is_transparent = void;
  std::size_t operator()(const AnySlot* slot) const { return slot->hash; }
  std::size_t operator()(const KeyRef& wanted) const { return wanted.hash; }
};
struct SlotSame {
  using is_transparent = void;
  bool operator()(const AnySlot* left, const AnySlot* right) const { return left->key == right->key; }
  bool operator()(const KeyRef& wanted, const AnySlot* slot) const {
    return slot->hash == wanted.hash && slot->key.type().same(wanted.key, slot->key.get());
  }
  bool operator()(const AnySlot* slot, const KeyRef& wanted) const { return (*this)(wanted, slot); }
};

}  // namespace

struct Unit::Drawer {
  explicit Drawer(const RecordType& of) : type(of) {}

  AnySlot* find(const void* key) const { return find(KeyRef{key, type.key->hash(key)}); }
  AnySlot* find(const KeyRef& sought) const {
    const auto it = shelf.find(sought);
    return it == shelf.end() ? nullptr : *it;
  }
  // The slot of a key, and whether it is new.
  std::pair<AnySlot*, bool> open(const void* key) {
    const KeyRef sought{key, type.key->hash(key)};
    if (auto* known = find(sought)) return {known, false};
    auto& made = slots.emplace_back(AnySlot{type.place, sought.hash, AnyKey(*type.key, key)});
    shelf.insert(&made);
    return {&made, true};
  }

  const RecordType& type;
  std::deque<AnySlot> slots;  // which stay where they are
  boost::unordered_flat_set<AnySlot*, SlotHash, SlotSame> shelf;
  std::vector<AnyKey> wanted;
  std::vector<AnyKey> locks;
  std::vector<AnySlot*> dirty;
};

Unit::Unit(Loader& loader, WantForTaking want_for_taking)
    : loader_(loader), want_for_taking_(std::move(want_for_taking)) {}

Unit::~Unit() = default;

// ---- records ----

Unit::Drawer& Unit::drawer(std::size_t place) {
  auto& drawer = drawers_[place];
  if (!drawer) drawer = std::make_unique<Drawer>(record_types()[place]);
  return *drawer;
}

AnySlot* Unit::held(std::size_t place, const void* key) const {
  return drawers_[place] ? drawers_[place]->find(key) : nullptr;
}

AnySlot& Unit::slot_of(std::size_t place, const void* key) {
  auto& drawer = this->drawer(place);
  auto* slot = drawer.find(key);
  if (!slot) {
    drawer.wanted.emplace_back(*drawer.type.key, key);
    load_now();
    slot = drawer.find(key);
  }
  return *slot;
}

// True: this operation changes it for the first time.
bool Unit::touch(AnySlot& slot) {
  if (slot.touched_by == operation_) return false;
  auto& drawer = *drawers_[slot.place];
  if (drawer.type.is_shared && slot.stored && !slot.locked && loader_.has_other_writers()) {
    drawer.locks.push_back(slot.key);
    throw NotLoaded{};
  }
  journal_.push_back({&slot, slot.dirty, slot.changed, slot.touched_by});
  slot.touched_by = operation_;
  if (slot.dirty) return true;
  slot.dirty = true;
  drawer.dirty.push_back(&slot);
  return true;
}

void* Unit::edit(std::size_t place, const void* key) {
  auto& slot = slot_of(place, key);
  const void* before = slot.current();  // the slot or the journal holds it
  if (touch(slot)) slot.changed = before ? drawers_[place]->type.copy(before) : nullptr;
  return slot.changed.get();
}

void Unit::insert(std::size_t place, const void* key, std::shared_ptr<void> record) {
  auto& slot = *drawer(place).open(key).first;
  touch(slot);
  slot.changed = std::move(record);
}

void Unit::erase(std::size_t place, const void* key) {
  auto& slot = slot_of(place, key);
  touch(slot);
  slot.changed.reset();
}

void Unit::purge(const ExecutionId& id) {
  for (const auto* type : owned_types()) {
    if (!drawers_[type->place]) continue;
    // Also what was only read: whoever uses the id again in this batch finds nothing of it.
    if (type->key == record_type<Execution>().key) {
      if (held(type->place, &id)) erase(type->place, &id);
      continue;
    }
    for (auto& slot : drawers_[type->place]->slots) {
      if (type->key->owner(slot.key.get()) != id) continue;
      touch(slot);
      slot.changed.reset();
    }
  }
  purged_now_.push_back(id);
}

bool Unit::is_purged(const RecordType& type, const void* key) const {
  return type.is_owned && !purged_.empty() && purged_.contains(type.key->owner(key));
}

void Unit::want(std::size_t place, const void* key) {
  auto& drawer = this->drawer(place);
  if (!drawer.find(key)) drawer.wanted.emplace_back(*drawer.type.key, key);
}

void Unit::want_lock(std::size_t place, const void* key) {
  if (!loader_.has_other_writers()) return want(place, key);
  auto& drawer = this->drawer(place);
  drawer.locks.emplace_back(*drawer.type.key, key);
}

bool Unit::wants(std::size_t place) const {
  return drawers_[place] && !drawers_[place]->wanted.empty();
}

std::vector<AnyKey> Unit::take_wanted(std::size_t place) {
  if (!drawers_[place]) return {};
  return std::exchange(drawers_[place]->wanted, {});
}

std::vector<AnyKey> Unit::take_wanted_locks(std::size_t place) {
  if (!drawers_[place]) return {};
  return std::exchange(drawers_[place]->locks, {});
}

void Unit::put(std::size_t place, const void* key, std::shared_ptr<const void> record) {
  auto& drawer = this->drawer(place);
  const auto [slot, is_new] = drawer.open(key);
  // A record that this batch has removed is absent, even if the store still has it.
  if (is_new && !is_purged(drawer.type, key)) slot->stored = std::move(record);
}

void Unit::put_locked(std::size_t place, const void* key, std::shared_ptr<const void> record) {
  auto& slot = *drawer(place).open(key).first;
  slot.locked = true;
  if (!slot.dirty) slot.stored = std::move(record);
}

std::optional<std::shared_ptr<const void>> Unit::left(std::size_t place, const void* key) const {
  const auto* slot = held(place, key);
  if (!(slot && slot->dirty) && is_purged(record_types()[place], key)) return nullptr;
  if (!slot) return std::nullopt;
  return slot->dirty ? slot->changed : slot->stored;
}

std::span<AnySlot* const> Unit::dirty(std::size_t place) const {
  if (!drawers_[place]) return {};
  return drawers_[place]->dirty;
}

bool Unit::is_stored(const AnySlot& slot) const {
  return slot.stored && !is_purged(record_types()[slot.place], slot.key.get());
}

AppendedEvents Unit::appended(std::size_t event_place) const {
  AppendedEvents events(nullptr, 0, 0);
  for_each_event([&]<class Event>(std::size_t i) {
    const auto& all = appended<Event>();
    if (i == event_place) events = {all.data(), sizeof(Event), all.size()};
  });
  return events;
}

std::unique_ptr<AnyAnswers> Unit::make_answers(std::size_t place) {
  return boost::mp11::mp_with_index<boost::mp11::mp_size<Questions>>(
      place, [](auto index) -> std::unique_ptr<AnyAnswers> {
        return std::make_unique<Answers<boost::mp11::mp_at<Questions, decltype(index)>>>();
      });
}

void Unit::load_now() {
  if (!loader_.loads_instantly()) throw NotLoaded{};
  loader_.load(*this);
}

// ---- operations ----

void Unit::begin_operation() {
  ++operation_;
  for_each_event([&]<class Event>(std::size_t i) { marks_[i] = appended<Event>().size(); });
  notes_mark_ = notes_.size();
}

void Unit::keep() {
  for_each_touched<Execution>([&](const Execution* before, const Execution* after) {
    const bool was_offered = before && before->offer_order;
    if (!after || !after->offer_order || was_offered) return;
    auto& count = new_offers_[after->route_id];
    if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  });
  // As many claims as there are may find something.
  for (const auto route : reopened_now_) new_offers_[route] = std::numeric_limits<std::uint32_t>::max();
  reopened_now_.clear();
  for (const auto& saved : journal_) {
    if (saved.slot->place == place_of<Execution>) touched_executions_.push_back(saved.slot);
  }
  journal_.clear();
  for (auto& [key, delta] : counts_now_) counts_[key] += delta;
  counts_now_.clear();
  purged_.insert(purged_now_.begin(), purged_now_.end());
  purged_now_.clear();
  for (const auto& [key, count] : dropped_now_) dropped_[key] += count;
  dropped_now_.clear();
  begin_operation();
}

void Unit::undo() {
  for (auto saved = journal_.rbegin(); saved != journal_.rend(); ++saved) {
    auto& slot = *saved->slot;
    slot.dirty = saved->was_dirty;
    slot.changed = std::move(saved->before);
    slot.touched_by = saved->touched_by;
    // What this operation made dirty stands at the end of the list, in the order of the journal.
    if (!saved->was_dirty) drawers_[slot.place]->dirty.pop_back();
  }
  journal_.clear();
  for_each_event(
      [&]<class Event>(std::size_t i) { std::get<std::vector<Event>>(events_).resize(marks_[i]); });
  notes_.resize(notes_mark_);
  counts_now_.clear();
  purged_now_.clear();
  dropped_now_.clear();
  reopened_now_.clear();
}

bool Unit::has_changes() const {
  return !counts_.empty() || !purged_.empty() || trim_before_ms_ || change_count() > 0;
}

std::size_t Unit::change_count() const {
  std::size_t count = 0;
  for (const auto& drawer : drawers_) count += drawer ? drawer->dirty.size() : 0;
  for_each_event([&]<class Event>(std::size_t) { count += appended<Event>().size(); });
  return count;
}

}  // namespace flowfabric::core
