// Output streams: appending, keeping and reading frames (06 §1–§5; the numbers are those of §16).
#include "support/reopen_fixture.h"
#include "support/stream_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Streams : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Streams, kStores, store_name);

// ---- appending ----

TEST_P(Streams, ShowWhatWasAppended) {  // 1
  const auto task = running();
  auto request = frame(task, "hello");
  request.frame_type = "log";
  request.correlation_id = "c-1";
  request.ts = now() - 5;
  const auto appended = must(request);
  EXPECT_EQ(appended, (FrameAppended{std::to_string(now()) + "-0", 1, std::nullopt}));
  const auto page = read(task);
  ASSERT_EQ(page.frames.size(), 1u);
  EXPECT_EQ(page.frames[0].id, appended.stream_id);
  EXPECT_EQ(page.frames[0].fields, (Fields{{"frame_type", "log"},
                                           {"ts", std::to_string(now() - 5)},
                                           {"payload", "hello"},
                                           {"encoding", "utf8"},
                                           {"source", "worker"},
                                           {"mode", "durable"},
                                           {"correlation_id", "c-1"}}));
  EXPECT_EQ(page.closed_at, std::nullopt);
}

TEST_P(Streams, TakeFramesUpToALimit) {  // 2
  const auto task = running();
  append(task, std::string(1024, 'x'));
  append(task, std::string(65'536, 'x'));
  expect_error(frame(task, std::string(65'537, 'x')), ErrorCode::retention_limit_exceeded);
  EXPECT_EQ(info(task).frame_count, 2u);
  EXPECT_EQ(info(task).total_bytes, 1024u + 65'536);
}

// The first of several faults is reported, and no trace is left.
TEST_P(Streams, CheckInOrder) {  // §2
  const auto task = running();
  auto bad_patch = frame(task, "[]");
  bad_patch.mode = FrameMode::summary;
  expect_error(bad_patch, ErrorCode::invalid_input);
  bad_patch.fence.lease_epoch = 77;
  expect_error(bad_patch, ErrorCode::stale_owner_cannot_append);
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
  complete(task);
  expect_error(bad_patch, ErrorCode::stream_closed);
  bad_patch.payload = std::string(65'537, 'x');
  expect_error(bad_patch, ErrorCode::retention_limit_exceeded);
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
}

TEST_P(Streams, TakeNothingAfterTheEnd) {  // 3
  const auto task = running();
  complete(task);
  expect_error(frame(task, "late"), ErrorCode::stream_closed);
  auto nobody = frame(task, "x");
  nobody.execution_id.uuid.bytes[3] ^= 1;
  expect_error(nobody, ErrorCode::execution_not_found);
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
}

TEST_P(Streams, RestWhileTheAttemptIsPaused) {  // 4
  const auto task = running();
  append(task, "before");
  delay(task, now() + 10);
  expect_error(frame(task, "meanwhile"), ErrorCode::stream_closed);
  EXPECT_EQ(read(task).closed_at, std::nullopt);
  advance(10);
  const auto again = claim_one();
  append(again, "after");
  EXPECT_EQ(payloads(again), (Log{"before", "after"}));
}

TEST_P(Streams, KnowTheirOwner) {  // 5, 6
  const auto task = running();
  append(task, "mine");
  auto other = frame(task, "x");
  other.fence.lease_epoch = *other.fence.lease_epoch + 1;
  expect_error(other, ErrorCode::stale_owner_cannot_append);
  other = frame(task, "x");
  other.fence.lease_id->uuid.bytes[1] ^= 1;
  expect_error(other, ErrorCode::stale_owner_cannot_append);
  other = frame(task, "x");
  other.attempt_index = 1;
  expect_error(other, ErrorCode::stale_owner_cannot_append);
  other = frame(task, "x");
  other.fence = {};
  expect_error(other, ErrorCode::stale_owner_cannot_append);
  // Expired, noticed or not.
  tick(kLeaseTtl);
  expect_error(frame(task, "x"), ErrorCode::stale_owner_cannot_append);
  run_due();
  expect_error(frame(task, "x"), ErrorCode::stale_owner_cannot_append);
  // Superseded.
  const auto next = claim_one();
  expect_error(frame(task, "x"), ErrorCode::stale_owner_cannot_append);
  append(next, "theirs");
  EXPECT_EQ(payloads(task), Log{"mine"});
  EXPECT_EQ(payloads(next), Log{"theirs"}) << "10: another attempt has a stream of its own";
  // Revoked.
  must(RevokeLease{.execution_id = next.execution_id});
  expect_error(frame(next, "x"), ErrorCode::stale_owner_cannot_append);
}

TEST_P(Streams, KeepTheNewestFrames) {  // 7
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.durability_mode = "durable", .retention_maxlen = 5};
  const auto task = running(policy);
  for (int i = 0; i < 10; ++i) append(task, std::to_string(i));
  EXPECT_EQ(payloads(task), (Log{"5", "6", "7", "8", "9"}));
  EXPECT_EQ(info(task).frame_count, 10u);
  EXPECT_EQ(info(task).frames_kept, 5u);
}

TEST_P(Streams, NumberFramesByTime) {  // 8
  const auto task = running();
  const auto ms = std::to_string(now());
  EXPECT_EQ(append(task, "a"), ms + "-0");
  EXPECT_EQ(append(task, "b"), ms + "-1");
  tick(-50);
  EXPECT_EQ(append(task, "c"), ms + "-2") << "whatever the clock does";
  tick(51);
  EXPECT_EQ(append(task, "d"), std::to_string(now()) + "-0");
  EXPECT_EQ(payloads(task), (Log{"a", "b", "c", "d"}));
}

TEST_P(Streams, AreAppendedToOnce) {
  const auto task = running();
  auto request = frame(task, "one");
  request.seq = 7;
  const auto first = must(request);
  const auto again = must(request);
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.stream_id, first.stream_id);
  request.seq = 6;
  EXPECT_TRUE(must(request).duplicate);
  request.seq = 8;
  EXPECT_FALSE(must(request).duplicate);
  EXPECT_EQ(info(task).frame_count, 2u);
}

TEST_P(Streams, TakeFramesFromTheSystem) {
  const auto task = running();
  auto note = frame(task, "looking into it");
  note.fence = {};
  note.source = "operator";
  must(note);
  EXPECT_EQ(read(task).frames[0].fields.at("source"), "operator");
  note.source = "neighbour";
  expect_error(note, ErrorCode::invalid_input);
  note.source = "system";
  note.attempt_index = 1;
  expect_error(note, ErrorCode::stream_closed);
  complete(task);
  note.attempt_index = 0;
  expect_error(note, ErrorCode::stream_closed);
}

TEST_P(Streams, RefuseTextsThatAreNone) {
  const auto task = running();
  for (const auto& text : {std::string("\xff"), std::string("a\0b", 3), std::string(1025, 't')}) {
    auto request = frame(task, "x");
    request.frame_type = text;
    expect_error(request, ErrorCode::invalid_input);
    request = frame(task, "x");
    request.correlation_id = text;
    expect_error(request, ErrorCode::invalid_input);
  }
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
}

TEST_P(Streams, KeepAnyBytes) {  // 43
  const auto task = running();
  append(task, std::string("\0\xff", 2));
  append(task, "");
  const auto frames = read(task).frames;
  EXPECT_EQ(frames[0].fields.at("encoding"), "binary");
  EXPECT_EQ(frames[0].fields.at("payload"), "AP8=");
  EXPECT_EQ(frames[1].fields.at("encoding"), "utf8");
  EXPECT_EQ(frames[1].fields.at("frame_type"), "event");
}

// ---- reading ----

TEST_P(Streams, OfAttemptsThatWroteNothingAreEmpty) {  // 9
  const auto task = running();
  EXPECT_EQ(read(task), StreamPage{});
  EXPECT_EQ(tail(task), StreamPage{});
}

TEST_P(Streams, AreReadPageByPage) {  // 11
  const auto task = running();
  for (int i = 0; i < 50; ++i) {
    append(task, std::to_string(i));
    if (i % 3 == 0) tick(1);
  }
  Log all;
  std::string from = "start";
  for (;;) {
    const auto page = must(ReadStream{task.execution_id, 0, from, "end", 20});
    for (const auto& each : page.frames) all.push_back(each.fields.at("payload"));
    if (page.frames.size() < 20) break;
    auto last = *FrameId::parse(page.frames.back().id);
    ++last.seq;
    from = last.to_string();
  }
  ASSERT_EQ(all.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(all[i], std::to_string(i));
}

// The first needs more of a store across a network than the second, which must not overtake it.
TEST_P(Streams, AreWrittenBeforeTheEndThatIsReportedRightAfter) {
  const auto task = running();
  AppendFrame frame{.execution_id = task.execution_id, .fence = task.fence};
  frame.payload = "last words";
  auto appended = engine().submit(frame);
  auto completed = engine().submit(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence});
  const auto first = appended.get();
  EXPECT_TRUE(first) << first.error().to_string();
  EXPECT_TRUE(completed.get());
}

TEST_P(Streams, OfAllAttemptsAreReadAsOne) {
  const auto first = running(ExecutionPolicy{.retry_policy = RetryPolicy{.max_retries = 1}});
  for (const auto* text : {"a0", "a1", "a2"}) append(first, text);
  fail(first);
  advance(kHour);
  const auto second = claim_one();
  for (const auto* text : {"b0", "b1"}) append(second, text);
  ReadOutput request{.execution_id = first.execution_id, .count = 2};
  Log all;
  for (;;) {
    const auto page = must(request);
    EXPECT_LE(page.frames.size(), 2u);
    for (const auto& each : page.frames) {
      all.push_back(std::to_string(each.attempt_index) + " " + each.frame.fields.at("payload"));
    }
    if (!page.next_cursor) break;
    request.cursor = *page.next_cursor;
  }
  EXPECT_EQ(all, (Log{"0 a0", "0 a1", "0 a2", "1 b0", "1 b1"}));
  const auto latest = must(ReadOutput{.execution_id = first.execution_id, .latest_attempt_only = true});
  EXPECT_EQ(latest.frames.size(), 2u);
  for (const auto* bad : {":", "1:", ":1", "x:1", "1-1:1", "5000000000:1", "1"}) {
    expect_error(ReadOutput{.execution_id = first.execution_id, .cursor = bad}, ErrorCode::invalid_input);
  }
  expect_error(ReadOutput{.execution_id = first.execution_id, .count = 0}, ErrorCode::invalid_input);
}

// Pages are bounded in size; a reader that continues after one misses nothing.
TEST_P(Streams, ArePagedByTheirSize) {
  const auto task = running();
  constexpr std::uint32_t count = 200;
  for (std::uint32_t i = 0; i < count; ++i) append(task, std::string(65'536, 'x'));
  complete(task);
  std::vector<std::string> ids;
  std::size_t pages = 0;
  std::string after = "0-0";
  for (;; ++pages) {
    const auto page = must(TailStream{.execution_id = task.execution_id, .after = after, .count = 10'000});
    if (page.frames.empty()) break;
    EXPECT_LT(page.frames.size(), count);
    const bool is_last = ids.size() + page.frames.size() == count;
    EXPECT_EQ(page.closed_at.has_value(), is_last) << "closed, when all has been read";
    for (const auto& frame : page.frames) ids.push_back(frame.id);
    after = ids.back();
  }
  EXPECT_GT(pages, 1u);
  EXPECT_EQ(ids.size(), count);
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), count);

  ReadOutput request{.execution_id = task.execution_id, .count = 10'000};
  std::vector<std::string> all;
  do {
    const auto page = must(request);
    EXPECT_LT(page.frames.size(), count);
    for (const auto& each : page.frames) all.push_back(each.frame.id);
    request.cursor = page.next_cursor.value_or("");
  } while (!request.cursor.empty());
  EXPECT_EQ(all, ids);
}

TEST_P(Streams, RefuseBadLimitsAndCursors) {  // 12, 13, 17
  const auto task = running();
  const auto& id = task.execution_id;
  for (const auto count : {0u, 10'001u}) {
    expect_error(ReadStream{id, 0, "start", "end", count}, ErrorCode::invalid_input);
    expect_error(TailStream{.execution_id = id, .count = count}, ErrorCode::invalid_input);
  }
  for (const auto* cursor : {"", "-", "+", "abc", "1-", "-1", "1-2-3", " 1", "1.5", "99999999999999999999"}) {
    expect_error(ReadStream{.execution_id = id, .from = cursor}, ErrorCode::invalid_input);
    expect_error(ReadStream{.execution_id = id, .to = cursor}, ErrorCode::invalid_input);
    expect_error(TailStream{.execution_id = id, .after = cursor}, ErrorCode::invalid_input);
  }
  expect_error(TailStream{.execution_id = id, .after = "start"}, ErrorCode::invalid_input);
  expect_error(TailStream{.execution_id = id, .after = "end"}, ErrorCode::invalid_input);
  expect_error(TailStream{.execution_id = id, .block_ms = 30'001}, ErrorCode::invalid_input);
  expect_error(TailStream{.execution_id = id, .block_ms = -1}, ErrorCode::invalid_input);
  must(ReadStream{.execution_id = id, .from = "18446744073709551615", .to = "0"});
}

TEST_P(Streams, HaveInclusiveBounds) {  // 14
  const auto task = running();
  append(task, "a");
  append(task, "b");
  tick(1);
  append(task, "c");
  const auto between = [&](const std::string& from, const std::string& to) {
    Log found;
    const auto page = must(ReadStream{task.execution_id, 0, from, to, 100});
    for (const auto& each : page.frames) found.push_back(each.fields.at("payload"));
    return found;
  };
  const auto ms = std::to_string(now() - 1);
  EXPECT_EQ(between("start", ms), (Log{"a", "b"})) << "the whole millisecond";
  EXPECT_EQ(between(ms, "end"), (Log{"a", "b", "c"}));
  EXPECT_EQ(between(ms + "-1", ms + "-1"), Log{"b"});
  EXPECT_EQ(between(ms + "-2", "end"), Log{"c"});
  EXPECT_EQ(between("end", "start"), Log{});
  EXPECT_EQ(payloads_of(tail(task, ms)), (Log{"b", "c"})) << "after <ms>-0";
}

// ---- closing ----

TEST_P(Streams, SayHowTheyWereClosed) {  // 22, 24
  const auto closed = [&](const ClaimedTask& task) { return read(task).closed_reason.value_or("open"); };
  const auto done = running();
  append(done, "x");
  tick(3);
  complete(done);
  EXPECT_EQ(closed(done), "attempt_success");
  EXPECT_EQ(read(done).closed_at, now());
  EXPECT_EQ(payloads(done), Log{"x"});
  EXPECT_TRUE(tail(done, read(done).frames[0].id).frames.empty());
  EXPECT_EQ(tail(done, read(done).frames[0].id).closed_at, now());
  EXPECT_EQ(info(done).closed_reason, "attempt_success");

  const auto silent = running();
  complete(silent);
  EXPECT_EQ(closed(silent), "attempt_success") << "although it has never written";
  EXPECT_EQ(tail(silent).closed_reason, "attempt_success");

  const auto failed = running(ExecutionPolicy{.retry_policy = RetryPolicy{.max_retries = 1}});
  fail(failed);
  EXPECT_EQ(closed(failed), "attempt_failure");
  cancel(failed.execution_id);

  const auto cancelled = running();
  cancel(cancelled.execution_id);
  EXPECT_EQ(closed(cancelled), "attempt_cancelled");

  ExecutionPolicy hurried;
  hurried.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 1000};
  const auto slow = running(hurried);
  advance(1000);
  EXPECT_EQ(closed(slow), "expired");

  const auto lost_one = running();  // 23
  advance(kLeaseTtl);
  EXPECT_EQ(closed(lost_one), "lease_expired");
  const auto reclaimed = claim_one();
  EXPECT_EQ(closed(lost_one), "reclaimed");
  EXPECT_EQ(closed(reclaimed), "open");
  renew(reclaimed);
  EXPECT_EQ(closed(reclaimed), "open");
  delay(reclaimed, now() + 1);
  EXPECT_EQ(closed(reclaimed), "open");
}

// ---- summaries ----

TEST_P(Streams, PatchTheirSummary) {  // 25, 34
  const auto task = running();
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0}), std::nullopt);  // 33
  EXPECT_EQ(patch(task, R"({"a":1,"b":{"c":2}})"), 1u);
  append(task, "a durable one");
  tick(5);
  EXPECT_EQ(patch(task, R"({"a":null,"b":{"d":3}})"), 2u);
  const auto summary = *must(ReadSummary{task.execution_id, 0});
  EXPECT_EQ(summary.document_json, R"({"b":{"c":2,"d":3}})");
  EXPECT_EQ(summary.version, 2u);
  EXPECT_EQ(summary.patch_kind, "json-merge-patch");
  EXPECT_EQ(summary.first_applied_ms, now() - 5);
  EXPECT_EQ(summary.last_updated_ms, now());
  const auto frames = read(task).frames;
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[2].fields.at("mode"), "summary");
  EXPECT_EQ(frames[2].fields.at("summary_version"), "2");
  EXPECT_TRUE(info(task).has_summary);
}

TEST_P(Streams, MergeAsTheStandardSays) {  // 26, 29, 30
  const auto task = running();
  const auto document = [&] { return must(ReadSummary{task.execution_id, 0})->document_json; };
  patch(task, R"({"x":"__ff_null__","l":["__ff_null__",1],"__ff_null__":"k"})");
  EXPECT_EQ(document(), R"({"x":null,"l":[null,1],"__ff_null__":"k"})");
  patch(task, R"({"x":null,"l":null,"__ff_null__":null,"k":{"a":1},"n":9007199254740993})");
  patch(task, R"({"k":{}})");
  EXPECT_EQ(document(), R"({"k":{"a":1},"n":9007199254740993})");
  patch(task, R"({"n":{}})");
  EXPECT_EQ(document(), R"({"k":{"a":1},"n":{}})");
}

TEST_P(Streams, RefusePatchesThatAreNone) {  // 27, 28
  const auto task = running();
  patch(task, R"({"a":1})");
  const auto before = must(ReadSummary{task.execution_id, 0});
  std::string deep = "1";
  for (int i = 0; i < 18; ++i) deep = R"({"d":)" + deep + "}";
  for (const std::string& bad : {std::string("[1]"), std::string("[]"), std::string("3"), std::string("null"),
                                 std::string("{"), std::string(""), deep, std::string(60'000, '[')}) {
    auto request = frame(task, bad);
    request.mode = FrameMode::summary;
    expect_error(request, ErrorCode::invalid_input);
  }
  auto other_kind = frame(task, "{}");
  other_kind.mode = FrameMode::summary;
  other_kind.patch_kind = "json-patch";
  expect_error(other_kind, ErrorCode::invalid_input);
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0}), before);
  EXPECT_EQ(info(task).frame_count, 1u);
  // As deep as allowed.
  std::string allowed = "1";
  for (int i = 0; i < 17; ++i) allowed = R"({"d":)" + allowed + "}";
  patch(task, allowed);
}

TEST_P(Streams, KeepFewFramesOfASummary) {  // 31, 32
  const auto task = running();
  append(task, "old");
  for (int i = 0; i < 100; ++i) patch(task, "{\"n\":" + std::to_string(i) + "}");
  EXPECT_EQ(read(task, 1000).frames.size(), 64u);
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0})->version, 100u);
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0})->document_json, R"({"n":99})");
}

TEST_P(Streams, BoundTheirSummary) {
  const auto task = running();
  for (int i = 0; i < 17; ++i) {
    patch(task, "{\"k" + std::to_string(i) + "\":\"" + std::string(60'000, 'x') + "\"}");
  }
  auto request = frame(task, "{\"last\":\"" + std::string(60'000, 'x') + "\"}");
  request.mode = FrameMode::summary;
  expect_error(request, ErrorCode::payload_too_large);
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0})->version, 17u);
}

class StreamsAgain : public StreamWords<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, StreamsAgain, kDurableStores, store_name);

TEST_P(StreamsAgain, RefuseToPatchWhatCannotBeRead) {  // §3.2
  const auto task = running();
  patch(task, R"({"a":1})");
  close();
  store().change("update ff_stream_summary set document_json='{'");
  reopen();
  auto request = frame(task, R"({"b":2})");
  request.mode = FrameMode::summary;
  expect_error(request, ErrorCode::corruption);
  EXPECT_EQ(info(task).frame_count, 1u);
}

// ---- best effort ----

TEST_P(Streams, OfBestEffortFramesExpire) {  // 35
  const auto task = running();
  show(task, "a", {.ttl_ms = 5000});
  tick(4000);
  show(task, "b", {.ttl_ms = 5000});
  EXPECT_EQ(read(task).frames[0].fields.at("ttl_ms"), "5000");
  tick(9999);
  EXPECT_EQ(payloads(task), (Log{"a", "b"}));
  tick(1);
  EXPECT_EQ(payloads(task), Log{}) << "read, before anybody has removed them";
  run_due();
  EXPECT_EQ(info(task).frames_kept, 0u);
  EXPECT_EQ(info(task).frame_count, 2u);
  must(RenewLease{.execution_id = task.execution_id, .fence = task.fence, .lease_ttl_ms = kLeaseTtl});
  show(task, "c", {.ttl_ms = 5000});
  EXPECT_EQ(payloads(task), Log{"c"});
}

TEST_P(Streams, DoNotExpireOnceTheyAreDurable) {  // 36
  const auto task = running();
  show(task, "a", {.ttl_ms = 1000});
  append(task, "b");
  show(task, "c", {.ttl_ms = 1000});
  advance(10'000);
  EXPECT_EQ(payloads(task), (Log{"a", "b", "c"}));
}

TEST_P(Streams, AreSizedByTheirRate) {  // 37, 38
  const auto task = running();
  const BestEffort config{.ttl_ms = 10'000, .maxlen_ceiling = 256};
  show(task, "first", config);
  EXPECT_EQ(info(task).maxlen_applied_last, 64u);
  for (int i = 0; i < 300; ++i) {
    if (i % 10 == 0) tick(1);
    show(task, std::to_string(i), config);
  }
  EXPECT_EQ(info(task).maxlen_applied_last, 256u);
  EXPECT_EQ(read(task, 1000).frames.size(), 256u);
  for (int i = 0; i < 40; ++i) {
    tick(600);
    show(task, "slow", config);
  }
  EXPECT_EQ(info(task).maxlen_applied_last, 64u);
  EXPECT_EQ(read(task, 1000).frames.size(), 64u);
}

TEST_P(Streams, MayHideBestEffortFrames) {  // 39
  const auto task = running();
  append(task, "d0");
  for (int i = 0; i < 50; ++i) show(task, "b");
  append(task, "d1");
  const auto hidden = FrameVisibility::exclude_best_effort;
  EXPECT_EQ(payloads_of(must(TailStream{.execution_id = task.execution_id, .visibility = hidden})),
            (Log{"d0", "d1"}));
  EXPECT_EQ(
      payloads_of(must(ReadStream{.execution_id = task.execution_id, .count = 2, .visibility = hidden})),
      (Log{"d0", "d1"}))
      << "filtered before they are counted";
}

// ---- the end ----

TEST_P(Streams, GoWithTheirExecution) {  // 44
  const auto task = running();
  append(task, "x");
  patch(task, "{}");
  show(task, "y");
  complete(task);
  advance(24 * kHour);
  forget(task.execution_id);
  EXPECT_EQ(read(task), StreamPage{});
  EXPECT_EQ(must(ReadSummary{task.execution_id, 0}), std::nullopt);
  EXPECT_TRUE(must(ListStreams{task.execution_id}).empty());
}

}  // namespace
}  // namespace flowfabric
