// The descriptions of records: what stores, the unit of work and the clock rely on.
#include "model/record_type.h"

#include <gtest/gtest.h>

#include "core/clock/clock_rules.h"

namespace flowfabric {
namespace {

TEST(RecordType, KeysAreTheFirstColumns) {
  for (const auto& type : record_types()) {
    ASSERT_EQ(type.keys, type.key->columns.size()) << type.table;
    for (std::size_t i = 0; i < type.keys; ++i) {
      EXPECT_EQ(type.columns[i].type, type.key->columns[i].type) << type.table << " " << type.names[i];
    }
  }
}

TEST(RecordType, AKeyIsThatOfItsRecord) {
  for (const auto& type : record_types()) {
    EXPECT_EQ(type.key_of(type.make().get()), AnyKey(*type.key)) << type.table;
  }
}

TEST(RecordType, ANewRecordHasNoChangedColumns) {
  for (const auto& type : record_types()) {
    const auto record = type.make();
    EXPECT_TRUE(changed_columns(type, record.get(), type.copy(record.get()).get()).none()) << type.table;
  }
}

TEST(RecordType, NamesTheColumnsThatChangedAndThoseWithAValue) {
  const auto& type = record_type<Lane>();
  Lane before;
  before.lane_id = "a";
  auto after = before;
  after.lane_id = "b";
  EXPECT_EQ(chosen_names(type, changed_columns(type, &before, &after)),
            std::vector<std::string_view>{"lane_id"});
  EXPECT_TRUE(columns_with_value(type, &before).test(0));
  // Keys always count.
  EXPECT_TRUE(columns_with_value(record_type<Worker>(), record_type<Worker>().make().get()).test(0));
}

TEST(RecordType, TablesAndPlacesAreDistinct) {
  std::set<std::string_view> tables;
  for (std::size_t i = 0; i < record_types().size(); ++i) {
    EXPECT_EQ(record_types()[i].place, i);
    tables.insert(record_types()[i].table);
  }
  for (std::size_t i = 0; i < event_types().size(); ++i) {
    EXPECT_EQ(event_types()[i].place, i);
    tables.insert(event_types()[i].table);
  }
  EXPECT_EQ(tables.size(), kRecordTypes + kEventTypes);
}

TEST(RecordType, OwnedRecordsBeginWithTheirExecution) {
  const ExecutionId id{7, {{1, 2, 3}}};
  for (const auto* type : owned_types()) {
    EXPECT_TRUE(type->is_owned);
    const AnyKey first(*type->key, [&](void* at) { type->key->make_first(at, id); });
    EXPECT_EQ(type->key->owner(first.get()), id) << type->table;
  }
}

TEST(AnyKey, CopiesAndMovesKeysWithTexts) {
  const std::string longer(100, 'x');
  auto key = any_key<Worker>({longer, "instance"});
  const auto copy = key;
  auto moved = std::move(key);
  EXPECT_EQ(moved, copy);
  moved = any_key<Worker>({"a", "b"});
  EXPECT_LT(moved, copy);
  EXPECT_EQ(copy.as<WorkerKey>().namespace_, longer);
  EXPECT_EQ(AnyKeyHash()(copy), KeyHash<WorkerKey>()({longer, "instance"}));
}

TEST(RecordKey, IsShownWithItsTable) {
  EXPECT_EQ(shown(record_key<Route>({17})), "ff_route 17");
  const ExecutionId id{7, {}};
  EXPECT_EQ(shown(record_key<Execution>(id)), "ff_exec_core " + id.to_string());
  EXPECT_NE(record_key<Execution>(id), record_key<ExecutionSpec>(id)) << "they share a type of key";
}

TEST(ClockRules, EveryRecordThatComesDueHasOne) {
  for (const auto& type : record_types()) {
    if (!type.clock && !type.removal) continue;
    const auto& rule = core::clock_rule(type);
    EXPECT_EQ(rule.type, &type);
    EXPECT_FALSE(rule.rules.is_empty()) << type.table;
    ASSERT_NE(rule.run, nullptr) << type.table;
  }
}

TEST(FieldType, IntegersKeepToTheirRange) {
  std::uint16_t small = 1;
  EXPECT_FALSE(set_integer(FieldKind::uint16, &small, -1));
  EXPECT_FALSE(set_integer(FieldKind::uint16, &small, 65'536));
  EXPECT_EQ(small, 1);
  EXPECT_TRUE(set_integer(FieldKind::uint16, &small, 65'535));
  EXPECT_EQ(integer_of(FieldKind::uint16, &small), 65'535);
}

}  // namespace
}  // namespace flowfabric
