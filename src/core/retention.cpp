#include "core/retention.h"

#include "core/tags.h"

namespace flowfabric::core {

void purge(Unit& unit, const Execution& execution) {
  unit.count(execution.lane_id, execution.state.public_state, -1);
  erase_tag_rows(unit, execution);
  unit.purge(execution.key());
}

}  // namespace flowfabric::core
