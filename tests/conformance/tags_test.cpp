// Tags after the create (02 §4.3).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class SettingTags : public SituationTest {
 protected:
  Tags tags(const ExecutionId& id) { return must(ReadTags{id}); }
  std::vector<ExecutionId> tagged(const std::string& key, const std::string& value) {
    ListExecutions request;
    request.filter.tags = {{key, value}};
    std::vector<ExecutionId> found;
    for (const auto& summary : must(request).executions) found.push_back(summary.execution_id);
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SettingTags, kStores, store_name);

TEST_P(SettingTags, TheGivenAreSetAndTheOthersStay) {
  const auto id = create({.tags = {{"a.keep", "1"}, {"a.change", "2"}, {"a.drop", "3"}}});
  const Tags all = {{"a.keep", "1"}, {"a.change", "new"}, {"b.add", ""}};

  EXPECT_EQ(must(SetTags{id, {{"a.change", "new"}, {"b.add", ""}, {"a.drop", std::nullopt}}}),
            (TagsSet{3, all}));
  EXPECT_EQ(tags(id), all);
  EXPECT_EQ(describe(id).tags, all);
  EXPECT_EQ(must(ReadContext{id}).tags, all);
  EXPECT_EQ(claim_one().tags, all);
}

TEST_P(SettingTags, RemovingWhatIsNotThereIsFine) {
  const auto id = create();

  EXPECT_EQ(must(SetTags{id, {{"a.b", std::nullopt}}}), (TagsSet{1, {}}));
}

TEST_P(SettingTags, OnlyTheTagsChangeWhateverTheState) {
  in_all_but({}, [&](const Placed& placed) {
    const auto before = story(placed.id).execution;
    tick(5);
    must(SetTags{placed.id, {{"a.b", "c"}}});
    auto expected = before;
    expected.tags = {{"a.b", "c"}};
    expected.last_mutation_at = now();
    EXPECT_EQ(must(DescribeExecution{placed.id}), expected);
  });
}

TEST_P(SettingTags, TheHolderOfTheLeaseDoesNotNotice) {
  const auto task = running();
  must(SetTags{task.execution_id, {{"a.b", "c"}}});
  renew(task);

  complete(task);
}

TEST_P(SettingTags, EventsCarryTheTagsOfTheirTime) {
  const auto task = running({.tags = {{"a.b", "before"}}});
  must(SetTags{task.execution_id, {{"a.b", "after"}}});
  complete(task);

  std::vector<Tags> seen;
  for (const auto& event : lease_events(task.execution_id)) seen.push_back(event.tags);
  EXPECT_EQ(seen, (std::vector<Tags>{{{"a.b", "before"}}, {{"a.b", "after"}}}));
  EXPECT_EQ(completions(task.execution_id).at(0).tags, (Tags{{"a.b", "after"}}));
}

TEST_P(SettingTags, AListingByTagFollows) {
  const auto id = create({.tags = {{"a.b", "old"}}});
  EXPECT_EQ(tagged("a.b", "old"), std::vector{id});
  must(SetTags{id, {{"a.b", "new"}, {"c.d", "e"}}});
  EXPECT_EQ(tagged("a.b", "old"), std::vector<ExecutionId>{});
  EXPECT_EQ(tagged("a.b", "new"), std::vector{id});
  EXPECT_EQ(tagged("c.d", "e"), std::vector{id});
  must(SetTags{id, {{"a.b", std::nullopt}}});

  EXPECT_EQ(tagged("a.b", "new"), std::vector<ExecutionId>{});
  EXPECT_EQ(tagged("c.d", "e"), std::vector{id});
}

TEST_P(SettingTags, KeysAreCallerDotField) {
  const auto id = create();
  for (const char* key : {"a.b", "cairn.instance_id", "a0_.0", "a._", "a.b.c", "a.b..", "z9.x_y.z"}) {
    EXPECT_EQ(must(SetTags{id, {{key, "v"}}}).count, 1u) << key;
    EXPECT_EQ(tags(id).at(key), "v") << key;
  }
}

TEST_P(SettingTags, AnyOtherKeyIsRefusedAndNothingIsWritten) {
  const auto id = create({.tags = {{"Any Key", "from the create"}}});
  for (const char* key : {"", "a", "a.", ".a", "A.b", "a.B", "_a.b", "0a.b", "a..b", "a-b.c", "a.b-c",
                          "a b.c", "a.b ", "a.ü", "ü.a", "Any Key", "a.b\n"}) {
    const auto error = expect_refused(SetTags{id, {{"a.good", "v"}, {key, "v"}, {"z.good", "v"}}},
                                      ErrorCode::invalid_tag_key);
    EXPECT_EQ(error.detail, key);
    expect_refused(SetTags{id, {{key, std::nullopt}}}, ErrorCode::invalid_tag_key);
  }

  EXPECT_EQ(tags(id), (Tags{{"Any Key", "from the create"}}));
}

TEST_P(SettingTags, ValuesAreAnyUtf8) {
  const auto id = create();
  const std::string long_value(1024, 'x');
  must(SetTags{id, {{"a.b", "größe\n\t"}, {"a.c", long_value}}});
  EXPECT_EQ(tags(id), (Tags{{"a.b", "größe\n\t"}, {"a.c", long_value}}));

  for (const auto& value : {"a\0b"s, "\xff"s}) {
    expect_refused(SetTags{id, {{"a.good", "v"}, {"b.bad", value}}}, ErrorCode::invalid_input);
  }
}

TEST_P(SettingTags, NothingToSetIsRefused) {
  expect_refused(SetTags{create(), {}}, ErrorCode::invalid_input);
}

TEST_P(SettingTags, TheUnknownIsNotFound) {
  expect_error(SetTags{{1, {}}, {{"a.b", "c"}}}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
