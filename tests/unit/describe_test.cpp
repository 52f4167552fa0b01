#include "model/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/records.h"

namespace flowfabric {
namespace {

using Names = std::vector<std::string>;

template <class Record>
Names column_names() {
  Names names;
  for_each_column<Record>([&]<class Field>(std::string_view name) { names.emplace_back(name); });
  return names;
}

struct Inner {
  int depth{};
  std::string text_;
};
BOOST_DESCRIBE_STRUCT(Inner, (), (depth, text_))
struct Middle {
  Inner inner;
  int after{};
};
BOOST_DESCRIBE_STRUCT(Middle, (), (inner, after))
struct Outer {
  int first{};
  Middle middle;
  Uuid last;
};
BOOST_DESCRIBE_STRUCT(Outer, (), (first, middle, last))

TEST(Describe, NestedStructsBecomeColumnsInTheirPlace) {
  EXPECT_EQ(column_names<Outer>(), (Names{"first", "depth", "text", "after", "last"}));
  static_assert(column_count<Outer>() == 5);
}

Names slice(const Names& names, std::string_view first, std::size_t count) {
  const auto found = std::ranges::find(names, first);
  const auto left = static_cast<std::size_t>(names.end() - found);
  return {found, found + static_cast<std::ptrdiff_t>(std::min(count, left))};
}

TEST(Describe, ColumnsOfAnExecution) {
  const Names names = column_names<Execution>();
  EXPECT_EQ(slice(names, names.front(), 4), (Names{"partition_key", "execution_id", "lane_id", "namespace"}));
  EXPECT_EQ(slice(names, "lifecycle_phase", 8),
            (Names{"lifecycle_phase", "ownership_state", "eligibility_state", "blocking_reason",
                   "terminal_outcome", "attempt_state", "public_state", "blocking_detail"}));
  EXPECT_EQ(
      slice(names, "previous_attempt_index", 4),
      (Names{"previous_attempt_index", "lineage_reason", "lineage_requested_by", "total_attempt_count"}));
  EXPECT_EQ(std::ranges::count(names, "state") + std::ranges::count(names, "lease"), 0);
}

TEST(Describe, FieldsAndColumnsAgree) {
  Names names;
  const Execution execution;
  for_each_field(execution, [&](std::string_view name, const auto&) { names.emplace_back(name); });
  EXPECT_EQ(names, column_names<Execution>());
  EXPECT_EQ(names.size(), column_count<Execution>());
}

TEST(Describe, FieldsCanBeWritten) {
  Execution execution;
  for_each_field(execution, [](std::string_view name, auto& field) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, std::string>) field = name;
  });
  EXPECT_EQ(execution.namespace_, "namespace");
  EXPECT_EQ(execution.attempt.lineage.lineage_reason, "lineage_reason");
  EXPECT_EQ(execution.lease.worker_id, "worker_id");
}

TEST(Describe, ColumnTypes) {
  bool state_is_enum = false;
  bool policy_is_one_column = false;
  for_each_column<Execution>([&]<class Field>(std::string_view name) {
    if (name == "lifecycle_phase") state_is_enum = std::is_same_v<Field, LifecyclePhase>;
  });
  for_each_column<ExecutionSpec>([&]<class Field>(std::string_view name) {
    if (name == "policy") policy_is_one_column = std::is_same_v<Field, ExecutionPolicy>;
  });
  EXPECT_TRUE(state_is_enum);
  EXPECT_TRUE(policy_is_one_column);
}

TEST(Describe, OnlyATrailingUnderscoreIsDropped) {
  EXPECT_EQ(column_name("namespace_"), "namespace");
  EXPECT_EQ(column_name("lane_id"), "lane_id");
}

template <class Record>
void expect_sound() {
  const Names names = column_names<Record>();
  if constexpr (requires { typename Record::Key; }) {
    EXPECT_LE(column_count<typename Record::Key>(), names.size()) << Record::table;
  }
  Names sorted = names;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << Record::table << " repeats a column";
}

TEST(Describe, EveryRecordHasDistinctColumns) {
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Records>>(
      []<class Record>(std::type_identity<Record>) { expect_sound<Record>(); });
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Events>>(
      []<class Event>(std::type_identity<Event>) { expect_sound<Event>(); });
}

template <class Enum>
void expect_names_round_trip() {
  for (std::size_t i = 0; i < enum_size<Enum>(); ++i) {
    const auto value = static_cast<Enum>(i);
    ASSERT_FALSE(enum_name(value).empty());
    EXPECT_EQ(enum_from_name<Enum>(enum_name(value)), value) << enum_name(value);
  }
  EXPECT_EQ(enum_from_name<Enum>(""), std::nullopt);
  EXPECT_EQ(enum_from_name<Enum>("no_such_name"), std::nullopt);
}

TEST(Describe, EnumNamesRoundTrip) {
  expect_names_round_trip<LifecyclePhase>();
  expect_names_round_trip<OwnershipState>();
  expect_names_round_trip<EligibilityState>();
  expect_names_round_trip<BlockingReason>();
  expect_names_round_trip<TerminalOutcome>();
  expect_names_round_trip<AttemptState>();
  expect_names_round_trip<PublicState>();
  expect_names_round_trip<AttemptType>();
  expect_names_round_trip<AttemptLifecycle>();
  expect_names_round_trip<LeaseEventType>();
  expect_names_round_trip<LeaseEnd>();
  expect_names_round_trip<ErrorKind>();
  expect_names_round_trip<ErrorClass>();
}

TEST(Describe, EnumNamesAreTheStoredSpellings) {
  EXPECT_EQ(enum_name(OwnershipState::lease_expired_reclaimable), "lease_expired_reclaimable");
  EXPECT_EQ(enum_name(EligibilityState::not_eligible_until_time), "not_eligible_until_time");
  EXPECT_EQ(enum_name(PublicState::waiting_children), "waiting_children");
  EXPECT_EQ(enum_name(LeaseEventType::released), "released");
  EXPECT_EQ(enum_size<BlockingReason>(), 17U);
  EXPECT_EQ(enum_size<PublicState>(), 12U);
}

}  // namespace
}  // namespace flowfabric
