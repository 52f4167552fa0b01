// A filter from the words of a query (09 §2).
#include <gtest/gtest.h>

#include "flowfabric/listing.h"

namespace flowfabric {

void PrintTo(const ExecutionFilter& filter, std::ostream* out) {
  *out << "lane " << filter.lane_id.value_or("-") << " states " << filter.states.size() << " namespace "
       << filter.namespace_.value_or("-") << " kind " << filter.execution_kind.value_or("-") << " tags "
       << filter.tags.size();
}

namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

TEST(Filter, IsReadFromItsWords) {
  const FlowId flow{*Uuid::parse("01890000-0000-7000-8000-000000000001")};
  const std::vector<std::pair<Words, ExecutionFilter>> cases{
      {{}, {}},
      {{{"lane", "slow lane"}}, {.lane_id = "slow lane"}},
      {{{"state", "waiting"}}, {.states = {PublicState::waiting}}},
      {{{"state", "failed"}, {"state", "waiting_children"}},
       {.states = {PublicState::failed, PublicState::waiting_children}}},
      {{{"state", "resumable"}}, {.states = {PublicState::resumable}}},
      {{{"namespace", "acme"}}, {.namespace_ = "acme"}},
      {{{"namespace", ""}}, {.namespace_ = ""}},
      {{{"kind", "resize"}}, {.execution_kind = "resize"}},
      {{{"flow", "01890000-0000-7000-8000-000000000001"}}, {.flow_id = flow}},
      {{{"tag", "a.b=c"}}, {.tags = {{"a.b", "c"}}}},
      {{{"tag", "a.b=c=d"}, {"tag", "e.f="}}, {.tags = {{"a.b", "c=d"}, {"e.f", ""}}}},
      {{{"created_after", "0"}}, {.created_after = 0}},
      {{{"created_before", "1750000000000"}}, {.created_before = 1'750'000'000'000}},
      {{{"created_before", "9"}, {"tag", "k=v"}, {"state", "active"}, {"lane", "l"}, {"created_after", "8"}},
       {.lane_id = "l",
        .states = {PublicState::active},
        .tags = {{"k", "v"}},
        .created_after = 8,
        .created_before = 9}},
  };
  for (const auto& [words, filter] : cases) {
    const auto read = parse_filter(words);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, filter);
  }
}

TEST(Filter, EveryStateHasItsWord) {
  for (const auto* word : {"waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended",
                           "resumable", "completed", "failed", "cancelled", "expired", "skipped"}) {
    const auto read = parse_filter({{"state", word}});
    EXPECT_TRUE(read && read->states.size() == 1) << word;
  }
}

TEST(Filter, WhatIsUnknownIsNamed) {
  const std::vector<std::pair<Words, std::string>> cases{
      {{{"colour", "red"}}, "colour"},
      {{{"Lane", "a"}}, "Lane"},
      {{{"", "a"}}, ""},
      {{{"lane", "a"}, {"colour", "red"}}, "colour"},
      {{{"state", "runing"}}, "runing"},
      {{{"state", "Waiting"}}, "Waiting"},
      {{{"state", "waiting"}, {"state", ""}}, "state"},
      {{{"flow", "not-a-uuid"}}, "flow"},
      {{{"tag", "no-value"}}, "tag"},
      {{{"created_after", ""}}, "created_after"},
      {{{"created_after", "yesterday"}}, "created_after"},
      {{{"created_after", "12x"}}, "created_after"},
      {{{"created_after", "1.5"}}, "created_after"},
      {{{"created_before", "99999999999999999999"}}, "created_before"},
      {{{"lane", "a"}, {"lane", "a"}}, "lane"},
      {{{"namespace", "a"}, {"namespace", "b"}}, "namespace"},
      {{{"kind", "a"}, {"kind", "b"}}, "kind"},
      {{{"flow", "01890000-0000-7000-8000-000000000001"}, {"flow", "01890000-0000-7000-8000-000000000002"}},
       "flow"},
      {{{"created_after", "1"}, {"created_after", "2"}}, "created_after"},
      {{{"created_before", "2"}, {"created_before", "1"}}, "created_before"},
      {{{"tag", "a.b=c"}, {"tag", "a.b=d"}}, "tag"},
  };
  for (const auto& [words, name] : cases) {
    const auto read = parse_filter(words);
    EXPECT_FALSE(read) << name;
    if (read) continue;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_input) << name;
    EXPECT_NE(read.error().to_string().find(name), std::string::npos) << read.error().to_string();
    EXPECT_FALSE(read.error().advice.empty());
  }
}

}  // namespace
}  // namespace flowfabric
