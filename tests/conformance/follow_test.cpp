// Following events (06 §8–§12; the numbers are those of §16).
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "model/base64.h"
#include "support/reopen_fixture.h"
#include "support/stream_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::chrono_literals;
using EventFamily::instance_tags;
using EventFamily::lease_history;
using EventFamily::operator_;
using EventFamily::worker_registry;
constexpr auto kCompletions = EventFamily::completion;

class Following : public StreamTest {
 protected:
  // `type execution` of each, from the beginning.
  std::vector<EventView> all(EventFamily family, EventFilter filter = {}) {
    FollowEvents request{.family = family, .cursor = first_cursor(), .filter = std::move(filter)};
    std::vector<EventView> found;
    for (;;) {
      auto batch = must(request);
      if (batch.events.empty()) return found;
      std::ranges::move(batch.events, std::back_inserter(found));
      request.cursor = batch.cursor;
    }
  }
  Log types(EventFamily family, EventFilter filter = {}) {
    Log found;
    for (const auto& event : all(family, std::move(filter))) found.push_back(event.type);
    return found;
  }
  std::string now_cursor(EventFamily family) { return must(FollowEvents{.family = family}).cursor; }
  std::future<Result<EventBatch>> wait_for(EventFamily family, std::string cursor, EventFilter filter = {}) {
    return engine().submit(FollowEvents{.family = family,
                                        .cursor = std::move(cursor),
                                        .filter = std::move(filter),
                                        .limit = 256,
                                        .wait_ms = 20'000});
  }
  static EventBatch batch(std::future<Result<EventBatch>>& waiting) {
    if (waiting.wait_for(10s) != std::future_status::ready) throw std::runtime_error("nobody has woken it");
    auto answer = waiting.get();
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Following, kStores, store_name);

TEST_P(Following, BeginsNowOrWhereItWas) {  // 45, 46
  const auto before = running();
  complete(before);
  const auto cursor = now_cursor(kCompletions);
  EXPECT_TRUE(must(FollowEvents{.family = kCompletions, .cursor = cursor}).events.empty());
  const auto first = running();
  complete(first);
  const auto second = running();
  complete(second);
  const auto seen = must(FollowEvents{.family = kCompletions, .cursor = cursor});
  ASSERT_EQ(seen.events.size(), 2u);
  EXPECT_EQ(seen.events[0].execution_id, first.execution_id);
  EXPECT_LT(seen.events[0].cursor, seen.events[1].cursor);
  const auto next = must(FollowEvents{.family = kCompletions, .cursor = seen.events[0].cursor});
  ASSERT_EQ(next.events.size(), 1u);
  EXPECT_EQ(next.events[0], seen.events[1]);
  EXPECT_EQ(next.cursor, seen.cursor);
}

TEST_P(Following, HasCursorsThatStayAsTheyAre) {  // §10.1
  EXPECT_EQ(to_base64(cursor_of(42)), "AgAAAAAAAAAq");
  EXPECT_LT(cursor_of(255), cursor_of(256)) << "byte by byte";
  EXPECT_EQ(first_cursor(), cursor_of(0));
}

TEST_P(Following, RefusesCursorsThatAreNone) {  // 47
  const auto good = first_cursor();
  for (const auto& bad : {std::string("\x01") + std::string(16, '\0'), good.substr(0, 8), good + "x",
                          std::string("abc"), std::string("\x02\xff") + std::string(7, '\0')}) {
    expect_error(FollowEvents{.family = kCompletions, .cursor = bad}, ErrorCode::invalid_input);
  }
  expect_error(FollowEvents{.family = kCompletions, .limit = 0}, ErrorCode::invalid_input);
  expect_error(FollowEvents{.family = kCompletions, .limit = 1001}, ErrorCode::invalid_input);
  expect_error(FollowEvents{.family = kCompletions, .wait_ms = 30'001}, ErrorCode::invalid_input);
}

// It would wait for events that come after what this store has never seen.
TEST_P(Following, RefusesCursorsOfAnotherStore) {
  complete(running());
  must(FollowEvents{.family = kCompletions, .cursor = now_cursor(kCompletions)});
  for (const std::int64_t id : {std::int64_t{1'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    for (const auto family : {kCompletions, lease_history, EventFamily::signal_delivery, operator_,
                              instance_tags, worker_registry}) {
      for (const std::int64_t wait_ms : {0, 20'000}) {
        const auto error = expect_error(
            FollowEvents{
                .family = family, .cursor = cursor_of(id), .filter = {}, .limit = 10, .wait_ms = wait_ms},
            ErrorCode::invalid_input);
        EXPECT_EQ(error.detail, "cursor");
      }
    }
  }
}

TEST_P(Following, SeesEveryPartition) {  // 48, 58
  std::set<ExecutionId> ended;
  for (const auto* lane : {"a", "b", "c", "d", "e"}) {
    const auto id = create({.lane_id = lane});
    complete(claim_one({.lanes = {lane}}));
    ended.insert(id);
  }
  std::set<ExecutionId> seen;
  for (const auto& event : all(kCompletions)) seen.insert(*event.execution_id);
  EXPECT_EQ(seen, ended);
}

TEST_P(Following, GivesAllToWhoIsSlow) {  // 50
  const auto cursor = now_cursor(kCompletions);
  for (int i = 0; i < 300; ++i) complete(running());
  FollowEvents request{.family = kCompletions, .cursor = cursor, .filter = {}, .limit = 70};
  std::size_t seen = 0;
  std::string last = cursor;
  for (;;) {
    const auto page = must(request);
    if (page.events.empty()) break;
    for (const auto& event : page.events) {
      EXPECT_LT(last, event.cursor);
      last = event.cursor;
    }
    seen += page.events.size();
    request.cursor = page.cursor;
  }
  EXPECT_EQ(seen, 300u);
}

TEST_P(Following, SeesNothingOfWhatWasRefused) {  // 51
  const auto task = running();
  const auto cursor = now_cursor(lease_history);
  auto forged = completion(task);
  forged.fence.lease_epoch = 77;
  expect_error(forged, ErrorCode::stale_lease);
  EXPECT_TRUE(must(FollowEvents{.family = lease_history, .cursor = cursor}).events.empty());
}

TEST_P(Following, SeesWhatItAsksFor) {  // 52, 53, 54
  const auto end = [&](CreateExecution request) {
    const auto id = create(request);
    complete(claim_one({.lanes = {request.lane_id}}));
    return id;
  };
  const auto tagged = end({.namespace_ = "team", .tags = {{"k", "v"}}});
  const auto other = end({.namespace_ = "team", .tags = {{"other", "v"}}});
  const auto plain = end({.lane_id = "slow"});
  const auto seen = [&](EventFilter filter) {
    std::vector<ExecutionId> ids;
    for (const auto& event : all(kCompletions, std::move(filter))) ids.push_back(*event.execution_id);
    return ids;
  };
  using Ids = std::vector<ExecutionId>;
  EXPECT_EQ(seen({}), (Ids{tagged, other, plain}));
  EXPECT_EQ(seen({.tag = {{"k", "v"}}}), Ids{tagged});
  EXPECT_EQ(seen({.tag = {{"k", "w"}}}), Ids{});
  EXPECT_EQ(seen({.namespace_ = "team"}), (Ids{tagged, other}));
  EXPECT_EQ(seen({.namespace_ = "team", .tag = {{"other", "v"}}}), Ids{other});
  EXPECT_EQ(seen({.lane_id = "slow"}), Ids{plain});
  EXPECT_EQ(seen({.execution_id = other}), Ids{other});
  EXPECT_EQ(seen({.types = {"failed", "cancelled"}}), Ids{});
  EXPECT_EQ(seen({.types = {"failed", "success"}}).size(), 3u);
}

TEST_P(Following, KnowsTheFlow) {
  SubmitFlow flow{.flow_kind = "pair"};
  flow.nodes = {{.name = "a"}, {.name = "b"}};
  const auto submitted = must(flow);
  for (const auto& member : submitted.executions) {
    remember(member.second);
    complete(claim_one());
  }
  complete(running());
  EXPECT_EQ(all(kCompletions, {.flow_id = submitted.flow_id}).size(), 2u);
  EXPECT_EQ(all(lease_history, {.flow_id = submitted.flow_id}).size(), 4u);
  const auto stopped = must(SubmitFlow{.flow_kind = "x", .nodes = {{.name = "a"}}});
  remember(stopped.executions.at("a"));
  must(CancelFlow{.flow_id = stopped.flow_id});
  const auto events = all(operator_);
  ASSERT_EQ(events.size(), 1u);  // 61
  EXPECT_EQ(events[0].type, "flow_cancel_requested");
  EXPECT_EQ(events[0].fields.at("cancellation_policy"), "cancel_all");
}

TEST_P(Following, TellsTheLifeOfALease) {  // 60
  const auto task = running();
  renew(task);
  complete(task);
  const auto lost_one = running();
  advance(kLeaseTtl);
  const auto again = claim_one();
  must(RevokeLease{.execution_id = again.execution_id});
  EXPECT_EQ(types(lease_history, {.execution_id = task.execution_id}),
            (Log{"acquired", "renewed", "released"}));
  EXPECT_EQ(types(lease_history, {.execution_id = lost_one.execution_id}),
            (Log{"acquired", "expired", "reclaimed", "revoked"}));
  const auto events = all(lease_history, {.execution_id = task.execution_id});
  EXPECT_EQ(events[2].fields.at("reason"), "completed");
  EXPECT_EQ(events[2].fields.at("worker_instance_id"), kWorker);
  EXPECT_EQ(events[2].fields.at("lease_epoch"), "1");
  EXPECT_EQ(events[2].fields.at("lane_id"), "default");
  EXPECT_FALSE(events[2].fields.contains("revoked_by")) << "nobody has";
  EXPECT_EQ(all(lease_history, {.types = {"revoked"}}).at(0).fields.at("revoked_by"), "operator");
  EXPECT_EQ(all(lease_history, {.types = {"expired"}}).at(0).fields.at("worker_instance_id"), kWorker);
}

TEST_P(Following, TellsWhoTookALeaseAway) {  // §9.1
  const auto task = running(reclaim_cap(0));
  advance(kLeaseTtl);
  run_due();
  const auto events = all(lease_history, {.execution_id = task.execution_id});
  EXPECT_EQ(events.back().type, "revoked");
  EXPECT_EQ(events.back().fields.at("revoked_by"), "reconciler");
}

TEST_P(Following, TellsOfACancelWithoutAnOperator) {  // §9.4
  const auto task = running();
  cancel(task.execution_id);
  EXPECT_EQ(types(lease_history), (Log{"acquired", "released"}));
  EXPECT_EQ(all(lease_history).back().fields.at("reason"), "cancelled");
  EXPECT_EQ(types(kCompletions), Log{"cancelled"});
  EXPECT_EQ(types(operator_), Log{});
}

TEST_P(Following, TellsOfTags) {
  const auto id = create({.tags = {{"t.k", "v"}}});
  must(SetTags{id, {{"t.k", "w"}, {"t.n", "1"}}});
  must(SetTags{id, {{"t.k", std::nullopt}}});
  Log seen;
  for (const auto& event : all(instance_tags)) {
    seen.push_back(event.type + " " + event.fields.at("tag") + "=" + event.fields.at("value"));
  }
  EXPECT_EQ(seen,
            (Log{"attached t.k=v", "cleared t.k=v", "attached t.k=w", "attached t.n=1", "cleared t.k=w"}));
}

TEST_P(Following, TellsOfWorkersAndOperators) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "w-1", .lanes = {"default"}});
  EXPECT_EQ(types(worker_registry), Log{"registered"});
  EXPECT_EQ(types(worker_registry, {.namespace_ = "team"}), Log{});
  EXPECT_EQ(types(worker_registry, {.lane_id = "default"}), Log{});
  const auto id = create();
  must(ChangePriority{.execution_id = id, .new_priority = 7});
  const auto events = all(operator_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].fields.at("new_priority"), "7");
  EXPECT_EQ(events[0].fields.at("old_priority"), "0");
}

TEST_P(Following, WaitsForWhatItAsksFor) {
  auto waiting = wait_for(kCompletions, "", {.tag = {{"k", "v"}}});
  std::this_thread::sleep_for(30ms);
  complete(running());
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout) << "this is not for it";
  const auto task = running(CreateExecution{.tags = {{"k", "v"}}});
  complete(task);
  const auto seen = batch(waiting);
  ASSERT_EQ(seen.events.size(), 1u);
  EXPECT_EQ(seen.events[0].execution_id, task.execution_id);
  EXPECT_EQ(seen.events[0].cursor, seen.cursor);
}

TEST_P(Following, EndsWhenItsTimeIsUp) {
  const auto cursor = now_cursor(kCompletions);
  const auto empty = must(FollowEvents{.family = kCompletions, .cursor = cursor, .wait_ms = 100});
  EXPECT_TRUE(empty.events.empty());
  EXPECT_EQ(empty.cursor, cursor);
}

TEST_P(Following, IsToldWhatIsGone) {  // §11
  const auto run_one = [&] {
    const auto task = running();
    complete(task);
    forget(task.execution_id);
  };
  run_one();
  const auto old = must(FollowEvents{.family = kCompletions, .cursor = first_cursor()}).cursor;
  run_one();
  run_one();
  const auto latest = now_cursor(kCompletions);
  advance(8 * 24 * kHour);
  run_one();
  advance(1);
  const auto error =
      expect_error(FollowEvents{.family = kCompletions, .cursor = old}, ErrorCode::stream_disconnected);
  const auto oldest = from_base64(error.detail);
  ASSERT_TRUE(oldest) << error.detail;
  EXPECT_EQ(must(FollowEvents{.family = kCompletions, .cursor = *oldest}).events.size(), 1u);
  EXPECT_EQ(must(FollowEvents{.family = kCompletions, .cursor = first_cursor()}).events.size(), 1u);
  EXPECT_EQ(must(FollowEvents{.family = kCompletions, .cursor = latest}).events.size(), 1u);
}

// Times may go back where ids do not. The lost events are those before the first that is kept, and nothing
// else.
TEST_P(Following, SeesNoHoles) {  // §11
  const auto run_one = [&] {
    const auto task = running();
    complete(task);
    forget(task.execution_id);
    return task.execution_id;
  };
  const auto first = run_one();
  tick(1000);
  const auto late = run_one();
  tick(-900);
  const auto early = run_one();
  const auto newest = run_one();
  const auto events = all(kCompletions);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].execution_id, first);
  advance(7 * 24 * kHour + 400);
  const auto rest = must(FollowEvents{.family = kCompletions, .cursor = events[0].cursor}).events;
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(rest[0].execution_id, late);
  EXPECT_EQ(rest[1].execution_id, early);
  EXPECT_EQ(rest[2].execution_id, newest);
  // Until the one that is in their way may go, too.
  advance(500);
  EXPECT_EQ(all(kCompletions).size(), 3u) << "kept for a week";
  advance(1);
  EXPECT_EQ(all(kCompletions).size(), 1u);
  const auto error = expect_error(FollowEvents{.family = kCompletions, .cursor = events[0].cursor},
                                  ErrorCode::stream_disconnected);
  EXPECT_EQ(error.detail, to_base64(events[2].cursor)) << "exactly what is gone";
}

// However much there is that it has not asked for.
TEST_P(Following, PassesWhatItDoesNotAskFor) {
  const auto task = running();
  constexpr int kPassed = 22'000;
  for (int posted = 0; posted < kPassed;) {
    for (int i = 0; i < 2000; ++i, ++posted) {
      engine().post(RenewLease{task.execution_id, task.fence, 0}, [](auto) {});
    }
    renew(task);
  }
  complete(task);
  for (const std::int64_t wait_ms : {0, 20'000}) {
    const auto start = std::chrono::steady_clock::now();
    FollowEvents request{
        .family = lease_history, .cursor = first_cursor(), .filter = {.types = {"released"}}};
    request.wait_ms = wait_ms;
    auto page = must(request);
    EXPECT_TRUE(page.events.empty()) << "one question reads only so far";
    EXPECT_LT(request.cursor, page.cursor);
    for (int asked = 0; page.events.empty() && asked < 3; ++asked) {
      request.cursor = page.cursor;
      page = must(request);
    }
    ASSERT_EQ(page.events.size(), 1u);
    EXPECT_EQ(page.events[0].type, "released");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s) << "it has waited for what was there";
  }
}

// The history of the execution tells of it, and so do the operators' events.
TEST_P(Following, LeavesReplaysToTheOperatorsEvents) {  // §9.1
  const auto task = running();
  complete(task);
  must(ReplayExecution{.execution_id = task.execution_id});
  EXPECT_EQ(types(lease_history), (Log{"acquired", "released"}));
  EXPECT_EQ(types(operator_), Log{"replayed"});
}

// ---- restarts ----

class FollowingAgain : public StreamWords<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, FollowingAgain, kDurableStores, store_name);

TEST_P(FollowingAgain, GoesOnWhereItWas) {
  const auto follow = [&](std::string cursor) {
    return must(FollowEvents{.family = kCompletions, .cursor = std::move(cursor)});
  };
  complete(running());
  const auto first = follow(first_cursor());
  ASSERT_EQ(first.events.size(), 1u);
  const auto second = running();
  complete(second);
  reopen();
  const auto third = running();
  complete(third);
  const auto rest = follow(first.cursor);
  ASSERT_EQ(rest.events.size(), 2u);
  EXPECT_EQ(rest.events[0].execution_id, second.execution_id);
  EXPECT_EQ(rest.events[1].execution_id, third.execution_id);
  reopen();
  EXPECT_EQ(follow(first.cursor), rest);
  EXPECT_TRUE(follow(rest.cursor).events.empty());
}

// Events behind the engine's back.
class FollowingTheUnknown : public SuspensionTest {
 protected:
  std::vector<EventView> seen(EventFamily family, std::vector<std::string> with_types = {}) {
    return must(FollowEvents{
                    .family = family, .cursor = first_cursor(), .filter = {.types = std::move(with_types)}})
        .events;
  }
  void change(const std::string& sql) {
    close();
    store().change(sql);
    reopen();
  }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, FollowingTheUnknown, kDurableStores, store_name);

TEST_P(FollowingTheUnknown, GoesOnAfterWhatCannotBeRead) {  // §10.2
  std::vector<ExecutionId> ended;
  for (int i = 0; i < 3; ++i) {
    const auto task = running();
    complete(task);
    ended.push_back(task.execution_id);
  }
  const auto events = seen(kCompletions);
  ASSERT_EQ(events.size(), 3u);
  const auto second = std::to_string(*parse_cursor(events[1].cursor));
  change("update ff_completion_event set tags='[1]' where event_id=" + second);
  const auto first = must(FollowEvents{.family = kCompletions, .cursor = first_cursor()});
  EXPECT_EQ(first.events, std::vector{events[0]}) << "what comes before it is not lost";
  for (const std::int64_t wait_ms : {0, 20'000}) {
    const auto error = expect_error(
        FollowEvents{
            .family = kCompletions, .cursor = first.cursor, .filter = {}, .limit = 10, .wait_ms = wait_ms},
        ErrorCode::corruption);
    EXPECT_EQ(error.detail, to_base64(events[1].cursor));
  }
  EXPECT_EQ(must(FollowEvents{.family = kCompletions, .cursor = events[1].cursor}).events,
            std::vector{events[2]});
  EXPECT_EQ(must(ReadCompletions{}).size(), 1u);
  const auto error =
      expect_error(ReadCompletions{.after = *parse_cursor(first.cursor)}, ErrorCode::corruption);
  EXPECT_NE(error.detail.find(second), std::string::npos) << error.detail;
  EXPECT_EQ(must(ReadCompletions{.after = *parse_cursor(events[1].cursor)}).size(), 1u);
  change("update ff_completion_event set tags=null");
}

// Words that a newer version has written.
TEST_P(FollowingTheUnknown, PassesItOn) {  // 62
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "w-1", .lanes = {"default"}});
  must(ChangePriority{.execution_id = create({.tags = {{"t.k", "v"}}}), .new_priority = 7});
  const auto first = claim_one();
  suspend(suspension(first));
  deliver(signal(waitpoint()));
  complete(claim_one());
  const std::pair<EventFamily, std::pair<const char*, const char*>> logs[] = {
      {lease_history, {"ff_lease_event", "event_type"}},
      {kCompletions, {"ff_completion_event", "outcome"}},
      {EventFamily::signal_delivery, {"ff_signal_event", "effect"}},
      {operator_, {"ff_operator_event", "event_type"}},
      {instance_tags, {"ff_instance_tag_event", "event_type"}},
      {worker_registry, {"ff_worker_registry_event", "event_kind"}}};
  std::map<EventFamily, std::vector<EventView>> before;
  for (const auto& [family, place] : logs) before[family] = seen(family);
  for (const auto& [family, place] : logs) {
    const std::string table(place.first);
    change("update " + table + " set " + place.second +
           "='tele\"ported' where event_id=(select min(event_id) from " + table + ")");
  }
  for (const auto& [family, place] : logs) {
    SCOPED_TRACE(place.first);
    auto expected = before.at(family);
    ASSERT_FALSE(expected.empty());
    const auto known = std::exchange(expected[0].type, "tele\"ported");
    if (expected[0].fields.contains(place.second)) expected[0].fields[place.second] = expected[0].type;
    EXPECT_EQ(seen(family), expected);
    EXPECT_EQ(seen(family, {"tele\"ported"}), std::vector{expected[0]}) << "it can be asked for";
    for (const auto& event : seen(family, {known})) EXPECT_NE(event.cursor, expected[0].cursor);
  }
  // A reader of the logs by number sees it, too, and the other events.
  const EventWord<LeaseEventType> lease = must(ReadLeaseEvents{}).at(0).type;
  EXPECT_EQ(lease.unknown, "tele\"ported");
  EXPECT_NE(lease, LeaseEventType::acquired);
  EXPECT_EQ(must(ReadLeaseEvents{}).at(1).type, LeaseEventType::released);
  EXPECT_EQ(must(ReadCompletions{}).at(0).outcome.unknown, "tele\"ported");
  EXPECT_EQ(must(ReadOperatorEvents{}).at(0).type.unknown, "tele\"ported");
  EXPECT_EQ(must(ReadWorkerEvents{}).at(0).kind.unknown, "tele\"ported");
  EXPECT_EQ(must(ReadSignalEvents{}).at(0).effect, "tele\"ported");
  const auto history = must(ReadHistory{first.execution_id});
  EXPECT_TRUE(std::ranges::any_of(history, [](const auto& entry) {
    return entry.what == "tele\"ported" && entry.fields.at("new_priority") == "7";
  }));
}

// ---- two servers ----

class FollowingTwoServers : public Following {};
INSTANTIATE_TEST_SUITE_P(TwoServers, FollowingTwoServers, ::testing::Values("postgres"), store_name);

TEST_P(FollowingTwoServers, IsWokenAcrossServers) {
  auto other = open(store().url());
  auto waiting = wait_for(kCompletions, now_cursor(kCompletions));
  const auto task = running();
  std::this_thread::sleep_for(30ms);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(other.call(completion(task)));
  EXPECT_EQ(batch(waiting).events.at(0).execution_id, task.execution_id);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s) << "by the bell, not by a look now and then";
}

// Nothing is skipped and nothing comes twice, while several write through both and readers come and go.
TEST_P(FollowingTwoServers, SeesEachEventOnce) {  // 49
  auto other = open(store().url());
  constexpr int kWriters = 8;
  constexpr int kEach = 40;
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      auto& server = i % 2 ? other : engine();
      const auto lane = "lane-" + std::to_string(i);
      for (int n = 0; n < kEach; ++n) {
        EXPECT_TRUE(server.call(CreateExecution{.lane_id = lane, .execution_kind = "k"}));
        auto tasks = server.call(ClaimTasks{.worker_id = kWorker, .lanes = {lane}});
        ASSERT_TRUE(tasks && tasks->size() == 1);
        EXPECT_TRUE(server.call(completion(tasks->front())));
      }
      --writing;
    });
  }
  const auto follow = [&](Engine& server, std::vector<EventView>& seen) {
    std::string cursor = first_cursor();
    for (bool last = false; !last;) {
      last = writing == 0;
      for (;;) {
        const auto page = server.call(FollowEvents{
            .family = lease_history, .cursor = cursor, .filter = {}, .limit = 37, .wait_ms = 20});
        ASSERT_TRUE(page) << page.error().to_string();
        if (page->events.empty()) break;
        cursor = page->cursor;
        std::ranges::copy(page->events, std::back_inserter(seen));
      }
    }
  };
  std::vector<EventView> here;
  std::vector<EventView> there;
  threads.emplace_back([&] { follow(engine(), here); });
  threads.emplace_back([&] { follow(other, there); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(here, there);
  EXPECT_EQ(here.size(), 2u * kWriters * kEach);
  std::map<ExecutionId, Log> lives;
  std::set<std::string> cursors;
  for (const auto& event : here) {
    EXPECT_TRUE(cursors.insert(event.cursor).second) << "twice";
    lives[*event.execution_id].push_back(event.type);
  }
  for (const auto& [id, life] : lives) EXPECT_EQ(life, (Log{"acquired", "released"})) << id.to_string();
}

}  // namespace
}  // namespace flowfabric
