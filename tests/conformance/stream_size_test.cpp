// The number of frames that are kept, and their time to live (06 §3; the numbers are those of §16).
#include "support/stream_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class StreamSizes : public StreamTest {
 protected:
  std::uint64_t applied(const ClaimedTask& task) { return info(task).maxlen_applied_last; }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, StreamSizes, kStores, store_name);

// rate = 0.2 · 1000/dt + 0.8 · rate; kept = ⌈rate · ttl · 2⌉, both by hand.
TEST_P(StreamSizes, FollowTheFormula) {  // 37
  const auto task = running();
  const BestEffort config{.ttl_ms = 10'000};
  show(task, "a", config);
  EXPECT_EQ(applied(task), 64u) << "64 / 20 s = 3.2 per second to begin with";
  tick(10);
  show(task, "b", config);
  EXPECT_EQ(applied(task), 452u) << "0.2 · 100 + 0.8 · 3.2 = 22.56 per second";
  show(task, "c", config);
  EXPECT_EQ(applied(task), 4361u) << "in one millisecond: 0.2 · 1000 + 0.8 · 22.56 = 218.048";
  tick(1000);
  show(task, "d", config);
  EXPECT_EQ(applied(task), 3493u) << "0.2 · 1 + 0.8 · 218.048 = 174.6384";
  tick(-5000);
  show(task, "e", config);
  EXPECT_EQ(applied(task), 6795u) << "the clock has gone back: 0.2 · 1000 + 0.8 · 174.6384 = 339.71072";
  for (int i = 0; i < 50; ++i) show(task, "burst", config);
  EXPECT_EQ(applied(task), 16'384u) << "the ceiling";
}

TEST_P(StreamSizes, TakeTheDefaultForWhatMakesNoSense) {
  const auto first = [&](BestEffort config) {
    const auto task = running();
    show(task, "a", config);
    const auto floor = applied(task);
    for (int i = 0; i < 300; ++i) show(task, "b", config);
    const auto ceiling = applied(task);
    complete(task);
    return std::pair(floor, ceiling);
  };
  using Sizes = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(first({.ttl_ms = 30'000, .maxlen_floor = 0, .maxlen_ceiling = 0}), (Sizes{64, 16'384}));
  EXPECT_EQ(first({.ttl_ms = 30'000, .maxlen_floor = -1, .maxlen_ceiling = -1}), (Sizes{64, 16'384}));
  EXPECT_EQ(first({.ttl_ms = 30'000, .maxlen_floor = 10, .maxlen_ceiling = 5}), (Sizes{10, 10}));
  for (const double alpha : {0.0, -1.0, 1.5}) {
    const auto task = running();
    show(task, "a", {.ttl_ms = 10'000, .ema_alpha = alpha});
    tick(10);
    show(task, "b", {.ttl_ms = 10'000, .ema_alpha = alpha});
    EXPECT_EQ(applied(task), 452u) << alpha;
    complete(task);
  }
}

TEST_P(StreamSizes, OfDurableFramesHaveADefault) {
  for (const auto& [wanted, kept] :
       {std::pair{0u, 10'000u}, std::pair{10'000u, 10'000u}, std::pair{7u, 7u}}) {
    ExecutionPolicy policy;
    policy.stream_policy = StreamPolicy{.durability_mode = "durable", .retention_maxlen = wanted};
    const auto task = running(policy);
    append(task, "x");
    EXPECT_EQ(info(task).retention_maxlen, kept) << wanted;
    complete(task);
  }
}

// Frames without a time to live do not expire with those that have one.
TEST_P(StreamSizes, AFrameWithoutATimeStays) {
  const auto task = running();
  show(task, "short", {.ttl_ms = 1000});
  tick(2000);
  show(task, "long", {.ttl_ms = 0});
  EXPECT_EQ(payloads(task), Log{"long"}) << "before anybody has removed the other";
  EXPECT_FALSE(read(task).frames[0].fields.contains("ttl_ms"));
  run_due();
  EXPECT_EQ(payloads(task), Log{"long"});
  EXPECT_EQ(info(task).frames_kept, 1u);
}

TEST_P(StreamSizes, TheTimeIsThatOfTheLatestFrame) {  // 35
  const auto task = running();
  show(task, "a", {.ttl_ms = 10'000});
  tick(1);
  show(task, "b", {.ttl_ms = 1000});
  advance(1999);
  EXPECT_EQ(payloads(task), (Log{"a", "b"}));
  advance(1);
  EXPECT_EQ(payloads(task), Log{});
  EXPECT_EQ(info(task).frames_kept, 0u) << "removed when it was time, not when the first was due";
}

// The document outlives the frames that made it (32), whoever removes them.
TEST_P(StreamSizes, ASummaryOutlivesItsFrames) {
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.durability_mode = "durable", .retention_maxlen = 1};
  const auto task = running(policy);
  patch(task, R"({"a":1})");
  append(task, "the only one");
  EXPECT_EQ(payloads(task), Log{"the only one"});
  const auto summary = must(ReadSummary{task.execution_id, 0});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->document_json, R"({"a":1})");
  EXPECT_EQ(info(task).frame_count, 2u);
}

TEST_P(StreamSizes, AFrameWithoutATypeHasThatOfItsKind) {
  const auto task = running();
  using enum FrameKind;
  for (const auto kind : {stdout_, stderr_, event, blob}) {
    auto request = frame(task, "x");
    request.kind = kind;
    must(request);
  }
  auto typed = frame(task, "x");
  typed.frame_type = "a word of mine";
  typed.kind = blob;
  must(typed);
  Log types;
  for (const auto& each : read(task).frames) types.push_back(each.fields.at("frame_type"));
  EXPECT_EQ(types, (Log{"stdout", "stderr", "event", "blob", "a word of mine"}));
}

TEST_P(StreamSizes, AGoneExecutionsPolicySaysWhen) {  // §5.4
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.retention_ttl_ms = 1000};
  const auto task = running(policy);
  append(task, "x");
  patch(task, R"({"a":1})");
  complete(task);
  advance(999);
  EXPECT_EQ(info(task).frame_count, 2u);
  advance(1);
  forget(task.execution_id);
  EXPECT_EQ(read(task), StreamPage{});
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0}), std::nullopt);
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
}

}  // namespace
}  // namespace flowfabric
