// One record of a batch: as the store has it, and as the batch has changed it. Records are wide, so they are
// shared with the store's own copies and copied only when they are changed.
#pragma once

#include <cstdint>
#include <memory>

#include "model/any_key.h"

namespace flowfabric::core {

struct AnySlot {
  std::size_t place;  // of its type, in `Records`
  std::size_t hash;   // of its key
  AnyKey key;
  std::shared_ptr<const void> stored{};
  std::shared_ptr<void> changed{};  // meaningful when dirty; null then means: erased
  bool dirty{false};
  bool locked{false};           // a shared record that nobody else can change now
  std::uint64_t touched_by{0};  // the operation that changed it last

  const void* current() const { return dirty ? changed.get() : stored.get(); }
};

// A slot of a record whose type is known.
template <class Record>
struct Slot {
  const typename Record::Key& key;
  const Record* stored;
  const Record* changed;
  bool dirty;

  explicit Slot(const AnySlot& slot)
      : key(slot.key.as<typename Record::Key>()),
        stored(static_cast<const Record*>(slot.stored.get())),
        changed(static_cast<const Record*>(slot.changed.get())),
        dirty(slot.dirty) {}
  const Record* current() const { return dirty ? changed : stored; }
};

}  // namespace flowfabric::core
