// What a batch has changed, as an entry of the redo log.
#pragma once

#include "store/sqlite/change_statements.h"
#include "store/sqlite/redo/redo_log.h"

namespace flowfabric::store::sqlite {

// Its events are numbered after `last`.
void write_down(const core::Unit& unit, const EventNumbers& last, RedoEntry& entry);

}  // namespace flowfabric::store::sqlite
