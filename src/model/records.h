// The stored records. Each is described once; its SQL columns, its key and its place in the unit of work
// follow from the description. Table and column names are the ones a person reads with `sqlite3` or `psql`.
//
// A record declares: `table`, its `Key` (a described struct whose members are the record's first columns),
// and `key()`.
#pragma once

#include <boost/mp11.hpp>

#include "model/event_records.h"
#include "model/execution_records.h"
#include "model/flow_records.h"
#include "model/limit_records.h"
#include "model/registry_records.h"
#include "model/stream_records.h"
#include "model/suspension_records.h"

namespace flowfabric {

// Everything below a store is written over these lists: a new record is added here, and nowhere else.
using Records =
    boost::mp11::mp_list<Execution, ExecutionSpec, Attempt, ExecutionTag, Grant, Lane, Route, Group,
                         CreateDedup, Worker, DeadWorker, BulkJob, Flow, Edge, EdgeGroup, PendingCancelGroup,
                         CancelBacklog, CancelBacklogMember, DependencyDispatch, Suspension, PastSuspension,
                         Waitpoint, Signal, SignalDedup, SuspendDedup, HmacKey, Keystore, Budget, Breach,
                         UsageDedup, Spend, QuotaPolicy, QuotaAdmission, ScopeLimits, LaneClock, Stream,
                         Frame, StreamSummary>;
using Events =
    boost::mp11::mp_list<LeaseEvent, CompletionEvent, OperatorEvent, WorkerEvent, SignalEvent, TagEvent>;

// Records with a clock of their own.
template <class Record>
inline constexpr bool has_clock = requires(Record r) {
  r.next_due_at_ms;
};
template <class Record>
using HasClock = std::bool_constant<has_clock<Record>>;
using ClockedRecords = boost::mp11::mp_copy_if<Records, HasClock>;
// Records that are removed when their time has come, if nothing needs them any more. Apart from the clocks,
// so that a backlog of removals holds up nothing else.
template <class Record>
inline constexpr bool is_removable = requires(Record r) {
  r.purge_at_ms;
};
template <class Record>
using IsRemovable = std::bool_constant<is_removable<Record>>;
using RemovableRecords = boost::mp11::mp_copy_if<Records, IsRemovable>;
template <class Record>
using ComesDue = std::bool_constant<has_clock<Record> || is_removable<Record>>;

// Records whose key begins with that of an execution: removed with it, seen or unseen. (A grant is not among
// them: what has ended has none.)
using OwnedRecords =
    boost::mp11::mp_list<Execution, ExecutionSpec, Attempt, Suspension, PastSuspension, Waitpoint, Signal,
                         SignalDedup, SuspendDedup, Spend, Stream, Frame, StreamSummary>;
template <class Record>
inline constexpr bool is_owned = boost::mp11::mp_contains<OwnedRecords, Record>::value;
inline const ExecutionId& owner_of(const ExecutionId& key) {
  return key;
}
template <class Key>
requires requires(Key key) {
  key.partition_key;
  key.execution_id;
}
ExecutionId owner_of(const Key& key) {
  return {key.partition_key, key.execution_id};
}

// How writers that share a store keep out of each other's way. Most records are locked when they are read.
// Many operations read a shared record and few change it: it is locked, and read again, by who changes it.
using SharedRecords =
    boost::mp11::mp_list<Lane, Route, Group, Worker, Flow, HmacKey, Keystore, Budget, ScopeLimits, LaneClock>;
template <class Record>
inline constexpr bool is_shared = boost::mp11::mp_contains<SharedRecords, Record>::value;
// Nobody else may change one of these until its reader has committed: a claim relies on what its flow is.
template <class Record>
inline constexpr bool is_held = std::is_same_v<Record, Flow>;
// Whoever reads or changes one of these holds the lock of its execution; of an edge, of its upstream; of a
// join, of its downstream (or, while it has no edges, of its flow); of a spend or a breach, of its budget.
using GuardedRecords =
    boost::mp11::mp_list<ExecutionSpec, Attempt, ExecutionTag, Grant, Edge, EdgeGroup, CancelBacklogMember,
                         Suspension, PastSuspension, Waitpoint, Signal, SignalDedup, SuspendDedup, Spend,
                         Breach, Stream, Frame, StreamSummary>;
template <class Record>
inline constexpr bool is_guarded = boost::mp11::mp_contains<GuardedRecords, Record>::value;

}  // namespace flowfabric
