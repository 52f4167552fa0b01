#include "store/sqlite/change_statements.h"

namespace flowfabric::store::sqlite {

namespace {

std::string put_statement(const TableType& type) {
  return "insert or replace" + insert_statement(type, all_columns(type.columns)).substr(6);
}

RecordStatements make_statements(const RecordType& type) {
  const auto from = std::string("delete from ") + type.table + " where ";
  return {put_statement(type), from + key_condition(type), from + "partition_key=?1 and execution_id=?2"};
}

EventStatements make_statements(const EventType& type) {
  const std::string table = type.table;
  return {put_statement(type),
          "delete from " + table + " where event_id in (select event_id from " + table +
              " where event_id<?2 order by event_id limit ?3) and event_id<coalesce((select min(event_id) "
              "from (select event_id,occurred_at_ms from " +
              table + " order by event_id limit ?3) where occurred_at_ms>=?1),?2)"};
}

}  // namespace

const RecordStatements& statements_of(const RecordType& type) {
  static const auto all = [] {
    std::array<RecordStatements, kRecordTypes> made;
    for (const auto& each : record_types()) made[each.place] = make_statements(each);
    return made;
  }();
  return all[type.place];
}

const EventStatements& statements_of(const EventType& type) {
  static const auto all = [] {
    std::array<EventStatements, kEventTypes> made;
    for (const auto& each : event_types()) made[each.place] = make_statements(each);
    return made;
  }();
  return all[type.place];
}

}  // namespace flowfabric::store::sqlite
