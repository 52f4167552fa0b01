// A reader that follows an event log by the id of the last event it has seen sees every event once.
#include <gtest/gtest.h>

#include "e2e/load.h"
#include "e2e/postgres_checks.h"
#include "e2e/waiting.h"
#include "model/event_word.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::PostgresConnection;
using tests::PostgresServer;

// Follows one log from its beginning.
template <class Request>
class Follower {
 public:
  using Event = typename Request::Answer::value_type;

  Follower(Engine& engine, std::uint32_t page)
      : engine_(engine), page_(page), thread_([this] { follow(); }) {}
  ~Follower() { stop(); }

  // Everything that it saw, until there was no more.
  const std::vector<Event>& finish() {
    stop();
    return seen_;
  }

 private:
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void follow() {
    for (;;) {
      const bool last = stopping_;
      const auto read =
          engine_.call(Request{.after = seen_.empty() ? 0 : seen_.back().event_id, .limit = page_});
      ASSERT_TRUE(read) << read.error().to_string();
      seen_.insert(seen_.end(), read->begin(), read->end());
      if (last && read->empty()) return;
    }
  }

  Engine& engine_;
  const std::uint32_t page_;
  std::vector<Event> seen_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// A session that writes as a server does, but as slowly as the test wants.
class ForeignWriter {
 public:
  explicit ForeignWriter(const std::string& url) : connection_(url) {}

  // An event, in a transaction that stays open. Its id.
  std::int64_t write() {
    connection_.query("begin");
    // As PostgresSession::commit does.
    connection_.query(
        "select pg_advisory_xact_lock_shared(('ff_event_id_seq'::regclass::oid::bigint<<32)|"
        "((last_value-(not is_called)::int)&4294967295)) from ff_event_id_seq");
    const auto written = connection_.query(
        "insert into ff_completion_event(partition_key, execution_id, outcome, occurred_at_ms) values "
        "(0, gen_random_uuid(), 'success', (extract(epoch from clock_timestamp())*1000)::bigint) "
        "returning event_id");
    return std::stoll(written.at(0).at(0));
  }
  void commit() { connection_.query("commit"); }
  void rollback() { connection_.query("rollback"); }

 private:
  PostgresConnection connection_;
};

class PostgresEvents : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }
  Engine open() const {
    auto engine = Engine::open(server_.url());
    if (!engine) throw std::runtime_error(engine.error().to_string());
    return *std::move(engine);
  }
  static void complete_one(Engine& engine) {
    ASSERT_TRUE(engine.call(CreateExecution{}));
    const auto task = engine.call(ClaimTasks{.worker_id = "w"}).value().at(0);
    ASSERT_TRUE(engine.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
  }
  static std::vector<std::int64_t> completions_after(Engine& engine, std::int64_t after) {
    const auto events = engine.call(ReadCompletions{.after = after});
    EXPECT_TRUE(events) << events.error().to_string();
    return ids_of(events.value());
  }
  std::vector<std::int64_t> stored_ids(const std::string& table) const {
    std::vector<std::int64_t> ids;
    for (const auto& row : server_.query("select event_id from " + table + " order by event_id")) {
      ids.push_back(std::stoll(row.at(0)));
    }
    return ids;
  }
  template <class Event>
  static std::vector<std::int64_t> ids_of(const std::vector<Event>& events) {
    std::vector<std::int64_t> ids;
    for (const auto& event : events) ids.push_back(event.event_id);
    return ids;
  }

  PostgresServer server_{PostgresServer::Disk::durable};
};

// The leases of an execution one after the other, each of them from its beginning on.
void check_order(const std::vector<LeaseEventView>& events) {
  std::map<ExecutionId, LeaseEventView> last;
  for (const auto& event : events) {
    const bool begins = event.type == LeaseEventType::acquired || event.type == LeaseEventType::reclaimed;
    const auto before = last.find(event.execution_id);
    const auto id = event.execution_id.to_string() + ", event " + std::to_string(event.event_id) + ", " +
                    std::string(word_text(event.type));
    if (before == last.end()) {
      EXPECT_TRUE(begins && event.lease_epoch == 1) << id;
    } else {
      EXPECT_EQ(event.lease_epoch, before->second.lease_epoch + (begins ? 1 : 0)) << id;
      EXPECT_GE(event.occurred_at, before->second.occurred_at)
          << id << " after " << word_text(before->second.type);
    }
    last.insert_or_assign(event.execution_id, event);
  }
}

TEST_F(PostgresEvents, NoneIsSkippedOrSeenTwiceWhileManyWrite) {
  auto engine = open();
  Follower<ReadCompletions> completions(engine, 50);
  Follower<ReadLeaseEvents> leases(engine, 50);
  std::atomic<bool> stopping{false};
  std::vector<std::thread> foreigners;
  for (int i = 0; i < 3; ++i) {
    foreigners.emplace_back([&, i] {
      ForeignWriter writer(server_.url());
      for (int turn = i; !stopping; ++turn) {
        writer.write();
        std::this_thread::sleep_for(milliseconds(turn % 7 * 5));
        turn % 4 == 0 ? writer.rollback() : writer.commit();
      }
    });
  }
  {
    Load one(server_.url() + "&committers=4", "one");
    Load other(server_.url() + "&committers=4", "other");
    EXPECT_TRUE(one.goes_on(800));
    EXPECT_TRUE(other.goes_on(100));
    one.stop_submitting();
    EXPECT_TRUE(other.finish());
    EXPECT_TRUE(one.finish());
    EXPECT_EQ(one.complaints(), std::vector<std::string>());
    EXPECT_EQ(other.complaints(), std::vector<std::string>());
  }
  stopping = true;
  for (auto& thread : foreigners) thread.join();

  const auto seen_completions = ids_of(completions.finish());
  const auto seen_leases = leases.finish();
  EXPECT_GT(seen_completions.size(), 900u);
  EXPECT_GT(seen_leases.size(), 1800u);
  EXPECT_EQ(seen_completions, stored_ids("ff_completion_event"));
  EXPECT_EQ(ids_of(seen_leases), stored_ids("ff_lease_event"));
  check_order(seen_leases);
  EXPECT_EQ(
      server_
          .query("select 1 from ff_completion_event c join ff_lease_event l using (partition_key, "
                 "execution_id) where l.event_type in ('acquired', 'reclaimed') and l.event_id>c.event_id")
          .size(),
      0u)
      << "an execution ended before its last lease was given";
}

TEST_F(PostgresEvents, AReaderDoesNotPassOneThatIsCommittedLate) {
  auto engine = open();
  complete_one(engine);
  const auto before = completions_after(engine, 0);
  ASSERT_EQ(before.size(), 1u);

  ForeignWriter writer(server_.url());
  const auto late = writer.write();
  auto server = open();
  complete_one(server);
  complete_one(engine);
  ASSERT_GT(stored_ids("ff_completion_event").back(), late);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(completions_after(engine, before.back()), std::vector<std::int64_t>());
    EXPECT_EQ(completions_after(server, 0), before);
  }
  const Stopwatch watch;
  EXPECT_TRUE(engine.call(ReadLeaseEvents{}).has_value());
  EXPECT_LT(watch.elapsed(), seconds(1)) << "a reader does not wait for long";

  writer.commit();
  const auto after = completions_after(engine, before.back());
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(after.front(), late);
}

TEST_F(PostgresEvents, AReaderPassesOneThatIsNeverCommitted) {
  auto engine = open();
  ForeignWriter writer(server_.url());
  writer.write();
  complete_one(engine);
  EXPECT_EQ(completions_after(engine, 0), std::vector<std::int64_t>());
  writer.rollback();
  EXPECT_EQ(completions_after(engine, 0).size(), 1u);
}

// Two servers whose transactions overlap: the one that drew its id first commits last.
TEST_F(PostgresEvents, AReaderWaitsForTheOldestOfSeveral) {
  auto engine = open();
  ForeignWriter first(server_.url());
  ForeignWriter second(server_.url());
  const auto first_id = first.write();
  const auto second_id = second.write();
  ASSERT_LT(first_id, second_id);
  second.commit();
  EXPECT_EQ(completions_after(engine, 0), std::vector<std::int64_t>());
  first.commit();
  EXPECT_EQ(completions_after(engine, 0), (std::vector<std::int64_t>{first_id, second_id}));
}

}  // namespace
}  // namespace flowfabric::e2e
