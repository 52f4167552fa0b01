// The statements of the raw lifecycles.
#pragma once

#include "store/postgres/row_types.h"
#include "store/postgres/statements.h"
#include "support/raw_lifecycle.h"

namespace flowfabric::bench {

// Of a record, or of an event.
template <class Record>
const auto& type_of() {
  if constexpr (place_of<Record> < kRecordTypes)
    return record_type<Record>();
  else
    return event_type<Record>();
}

// Rows are given whole, in one array: an array per column would cost the database more.
template <class Record>
class RowStatement {
 public:
  explicit RowStatement(std::string sql) : sql_(std::move(sql)) {}
  void post(store::postgres::Connection& connection, const store::postgres::RowTypes& types,
            const std::vector<Record>& rows) const {
    if (rows.empty()) return;
    std::vector<const void*> pointers;
    for (const auto& row : rows) pointers.push_back(&row);
    connection.post(sql_, types.of(type_of<Record>()).parameters(pointers));
  }

 private:
  const std::string sql_;
};

template <class Record>
RowStatement<Record> insert() {
  return RowStatement<Record>(store::postgres::insert_statement(type_of<Record>()));
}

// Only the columns that differ between two states.
template <class Record>
RowStatement<Record> update(const Record& from, const Record& to) {
  const auto& type = record_type<Record>();
  return RowStatement<Record>(store::postgres::update_statement(type, changed_columns(type, &from, &to)));
}

// How many of the lane's executions are in which state. Every connection has rows of its own.
class Counts {
 public:
  explicit Counts(std::int32_t writer) : writer_(writer) {}
  void post(store::postgres::Connection& connection, std::size_t created, std::size_t claimed,
            std::size_t completed) const {
    const auto change = [](std::size_t more, std::size_t less) {
      return static_cast<std::int64_t>(more) - static_cast<std::int64_t>(less);
    };
    std::vector<std::pair<PublicState, std::int64_t>> changes{
        {PublicState::waiting, change(created, claimed)},
        {PublicState::active, change(claimed, completed)},
        {PublicState::completed, change(completed, 0)}};
    std::erase_if(changes, [](const auto& each) { return each.second == 0; });
    if (changes.empty()) return;
    store::postgres::Parameters parameters;
    parameters.add_array<PublicState>(changes, [](std::string& bytes, const auto& each) {
      store::postgres::append_value(bytes, each.first);
    });
    parameters.add_array<std::int64_t>(changes, [](std::string& bytes, const auto& each) {
      store::postgres::append_value(bytes, each.second);
    });
    connection.post(
        "insert into ff_lane_count(lane_id,public_state,writer,executions) "
        "select 'bench',state,$3::int4,change from unnest($1::text[],$2::int8[]) as c(state,change) "
        "on conflict (lane_id,public_state,writer) "
        "do update set executions=ff_lane_count.executions+excluded.executions",
        parameters.add(writer_));
  }

 private:
  const std::int32_t writer_;
};

// The keys and leases of tasks, an array each.
inline store::postgres::Parameters fence_parameters(const std::vector<Claimed>& tasks) {
  using store::postgres::append_value;
  store::postgres::Parameters parameters;
  parameters.add_array<std::uint16_t>(
      tasks, [](std::string& bytes, const Claimed& task) { append_value(bytes, task.id.partition); });
  parameters.add_array<Uuid>(
      tasks, [](std::string& bytes, const Claimed& task) { append_value(bytes, task.id.uuid); });
  parameters.add_array<LeaseId>(
      tasks, [](std::string& bytes, const Claimed& task) { append_value(bytes, task.lease_id); });
  return parameters;
}

// $1 route, $2 how many. With the payload, which the worker needs.
inline const std::string kSelectOffers = R"sql(
select t.partition_key,t.execution_id,s.payload
from ff_exec_core t join ff_exec_spec s on s.partition_key=t.partition_key and s.execution_id=t.execution_id
where t.route_id=$1::int8 and t.offer_order is not null
order by t.route_id,t.offer_order,t.partition_key,t.execution_id limit $2::int8
for update of t skip locked)sql";

// $1, $2 keys, $3 leases.
inline const std::string kSelectHeld = R"sql(
select t.partition_key,t.execution_id
from unnest($1::int4[],$2::uuid[],$3::uuid[]) as k(partition_key,execution_id,lease_id)
join ff_exec_core t on t.partition_key=k.partition_key and t.execution_id=k.execution_id
where t.lease_id=k.lease_id order by t.partition_key,t.execution_id
for update of t)sql";

// $1 route, $2 how many, $3 now, $4 the worker, $5 the writer of the counts.
inline const std::string kClaim = R"sql(
with offered as (
  select partition_key,execution_id from ff_exec_core
  where route_id=$1::int8 and offer_order is not null
  order by route_id,offer_order,partition_key,execution_id limit $2::int8
  for update skip locked
), taken as (
  update ff_exec_core t set lifecycle_phase='active',ownership_state='leased',
    eligibility_state='not_applicable',blocking_reason='none',attempt_state='running_attempt',
    public_state='active',offer_order=null,next_due_at_ms=$3::int8+30000,attempt_id=gen_random_uuid(),
    attempt_started_at_ms=$3::int8,total_attempt_count=t.total_attempt_count+1,lease_epoch=t.lease_epoch+1,
    lease_id=gen_random_uuid(),worker_id=$4::text,worker_instance_id=$4::text,lease_acquired_at_ms=$3::int8,
    lease_expires_at_ms=$3::int8+30000,lease_renewal_deadline_ms=$3::int8+20000,started_at_ms=$3::int8,
    last_transition_at_ms=$3::int8,last_mutation_at_ms=$3::int8
  from offered o where t.partition_key=o.partition_key and t.execution_id=o.execution_id
  returning t.partition_key,t.execution_id,t.lease_id,t.attempt_id,t.lease_epoch,t.attempt_index
), logged as (
  insert into ff_lease_event(partition_key,execution_id,event_type,lease_id,lease_epoch,attempt_id,
    attempt_index,worker_id,worker_instance_id,occurred_at_ms)
  select partition_key,execution_id,'acquired',lease_id,lease_epoch,attempt_id,attempt_index,$4::text,
    $4::text,$3::int8 from taken
), counted as (
  insert into ff_lane_count(lane_id,public_state,writer,executions)
  select 'bench',c.state,$5::int4,c.sign*t.tasks
  from (select count(*) as tasks from taken) as t,(values ('active',1),('waiting',-1)) as c(state,sign)
  on conflict (lane_id,public_state,writer)
  do update set executions=ff_lane_count.executions+excluded.executions
)
select t.partition_key,t.execution_id,t.lease_id,t.attempt_id,s.payload
from taken t join ff_exec_spec s on s.partition_key=t.partition_key and s.execution_id=t.execution_id)sql";

// $1, $2 keys, $3 leases, $4 the result, $5 now, $6 the writer of the counts.
inline const std::string kComplete = R"sql(
with done as (
  update ff_exec_core t set lifecycle_phase='terminal',ownership_state='unowned',
    eligibility_state='not_applicable',blocking_reason='none',terminal_outcome='success',
    attempt_state='attempt_terminal',public_state='completed',next_due_at_ms=null,
    purge_at_ms=$5::int8+86400000,lease_id=null,lease_acquired_at_ms=null,lease_expires_at_ms=null,
    lease_renewal_deadline_ms=null,ended_by='complete',ended_lease_id=t.lease_id,
    ended_lease_epoch=t.lease_epoch,ended_attempt_id=t.attempt_id,terminal_at_ms=$5::int8,
    last_transition_at_ms=$5::int8,last_mutation_at_ms=$5::int8
  from unnest($1::int4[],$2::uuid[],$3::uuid[]) as k(partition_key,execution_id,lease_id)
  where t.partition_key=k.partition_key and t.execution_id=k.execution_id and t.lease_id=k.lease_id
  returning t.partition_key,t.execution_id,k.lease_id,t.attempt_id,t.lease_epoch,t.attempt_index,
    t.attempt_type,t.worker_id,t.worker_instance_id,t.attempt_started_at_ms
), ended as (
  insert into ff_attempt(partition_key,execution_id,attempt_index,attempt_id,attempt_type,attempt_state,
    lease_id,lease_epoch,worker_id,worker_instance_id,started_at_ms,terminal_at_ms,result)
  select partition_key,execution_id,attempt_index,attempt_id,attempt_type,'ended_success',lease_id,
    lease_epoch,worker_id,worker_instance_id,attempt_started_at_ms,$5::int8,$4::bytea from done
), logged as (
  insert into ff_lease_event(partition_key,execution_id,event_type,lease_id,lease_epoch,attempt_id,
    attempt_index,worker_id,worker_instance_id,reason,occurred_at_ms)
  select partition_key,execution_id,'released',lease_id,lease_epoch,attempt_id,attempt_index,worker_id,
    worker_instance_id,'completed',$5::int8 from done
), counted as (
  insert into ff_lane_count(lane_id,public_state,writer,executions)
  select 'bench',c.state,$6::int4,c.sign*t.tasks
  from (select count(*) as tasks from done) as t,(values ('active',-1),('completed',1)) as c(state,sign)
  on conflict (lane_id,public_state,writer)
  do update set executions=ff_lane_count.executions+excluded.executions
)
insert into ff_completion_event(partition_key,execution_id,outcome,occurred_at_ms)
select partition_key,execution_id,'success',$5::int8 from done)sql";

}  // namespace flowfabric::bench
