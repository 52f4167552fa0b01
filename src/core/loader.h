// How a unit of work asks for records, and what is thrown when they are not there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/registry_records.h"

namespace flowfabric::core {

class Unit;

// Implemented by every store's session.
class Loader {
 public:
  virtual ~Loader() = default;
  // Fetches everything the unit wants (`take_wanted`, `wanted_offers`, …), and clears those lists.
  virtual void load(Unit& unit) = 0;
  virtual bool loads_instantly() const = 0;
  // Others write to the store as well: shared records are locked before they are changed.
  virtual bool has_other_writers() const { return false; }
  // The flow of a member, if it has one, as an earlier batch saw it. A hint.
  virtual std::optional<FlowId> remembered_flow(const ExecutionId&) const { return std::nullopt; }
  // Routes of a lane that offered something when an earlier batch saw them, if one did. A hint.
  virtual const std::vector<Route>* remembered_routes(const std::string&) const { return nullptr; }
};

// Only the batch catches it, and runs the operation again when its records are there.
struct NotLoaded {};

// A record is missing that another one says must be there: the store is damaged. Only the engine catches it.
struct MissingRecord {
  const char* table;
};

}  // namespace flowfabric::core
