// Two callers at the same moment: one wins, and the other gets the answer that the specification has for it.
#include "support/races.h"
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class Race : public Races<SituationTest> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Race, kStores, store_name);

// ---- grants ----

TEST_P(Race, OneGrantServesOneConsumer) {
  race(
      [&] {
        const auto id = place(Situation::waiting).id;
        const auto given = grant(id, "pool");
        const auto use = [&](const std::string& instance) {
          return calling(ClaimExecution{
              id, {.worker_id = "pool", .worker_instance_id = instance, .grant_key = given.grant_key}});
        };
        return std::tuple{id, use("pool-1"), use("pool-2")};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        const bool won = one_of_two(first, second, ErrorCode::execution_not_leaseable);
        EXPECT_EQ(describe(id).lease->worker_instance_id, won ? "pool-1" : "pool-2");
        EXPECT_EQ(attempt_log(id), Log{"0 initial started"});
        return won;
      });
}

TEST_P(Race, OneResumeGrantServesOneConsumer) {
  race(
      [&] {
        const auto id = place(Situation::resumable).id;
        grant(id);
        const ClaimResumedExecution resume{id, use_by()};
        return std::tuple{id, calling(resume), calling(resume)};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        EXPECT_EQ(describe(id).lease_epoch, 2);
        return one_of_two(first, second, ErrorCode::execution_not_leaseable);
      });
}

TEST_P(Race, OneReclaimGrantServesOneConsumer) {
  race(
      [&] {
        const auto id = place(Situation::lost).id;
        grant_reclaim(id);
        const ReclaimExecution reclaim{id, use_by()};
        return std::tuple{id, calling(reclaim), calling(reclaim)};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        const bool won = first.value().status == ReclaimStatus::claimed;
        const auto& winner = (won ? first : second).value();
        const auto& loser = (won ? second : first).value();
        EXPECT_EQ(winner.status, ReclaimStatus::claimed);
        EXPECT_EQ(loser.status, ReclaimStatus::not_reclaimable);
        EXPECT_EQ(describe(id).lease_reclaim_count, 1u);
        return won;
      });
}

TEST_P(Race, OneExecutionHasOneGrant) {
  race(
      [&] {
        const auto placed = place(Situation::waiting);
        const auto issue = [&](const std::string& worker) {
          return calling(IssueClaimGrant{placed.id, placed.lane, terms(worker)});
        };
        return std::tuple{placed.id, issue("a"), issue("b")};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        const bool won = one_of_two(first, second, ErrorCode::grant_already_exists);
        EXPECT_TRUE(call(ClaimExecution{id, use_by(won ? "a" : "b")}));
        return won;
      });
}

TEST_P(Race, OneExecutionIsGivenToOneScheduler) {
  race(
      [&] {
        const auto placed = place(Situation::waiting);
        const ClaimForWorker ask{.lane_id = placed.lane, .terms = terms()};
        return std::tuple{placed.id, calling(ask), calling(ask)};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        const bool won = first.value().has_value();
        EXPECT_NE(won, second.value().has_value());
        EXPECT_EQ((won ? *first : *second).value().execution_id, id);
        return won;
      });
}

TEST_P(Race, AGrantOrAClaimButNotBoth) {
  race(
      [&] {
        const auto placed = place(Situation::waiting);
        return std::tuple{placed.id, calling(IssueClaimGrant{placed.id, placed.lane, terms()}),
                          calling(ClaimTasks{.worker_id = kWorker, .lanes = {placed.lane}})};
      },
      [&](const ExecutionId& id, const auto& granted, const auto& claimed) {
        EXPECT_NE(granted.has_value(), claimed.value().size() == 1);
        if (!granted) expect_code(granted, ErrorCode::execution_not_eligible);
        EXPECT_EQ(describe(id).lease_epoch, granted ? 0 : 1);
        return granted.has_value();
      });
}

TEST_P(Race, AHoldOrAClaimButNotBoth) {
  race(
      [&] {
        const auto placed = place(Situation::waiting);
        return std::tuple{placed.id, calling(HoldExecution{placed.id}),
                          calling(ClaimTasks{.worker_id = kWorker, .lanes = {placed.lane}})};
      },
      [&](const ExecutionId& id, const auto& held, const auto& claimed) {
        EXPECT_NE(held.has_value(), claimed.value().size() == 1);
        if (!held) expect_code(held, ErrorCode::execution_not_eligible);
        EXPECT_EQ(state(id), held ? expected::held() : expected::running());
        return held.has_value();
      });
}

// ---- leases ----

TEST_P(Race, ALateCompletionNeverWinsOverAReclaim) {
  race(
      [&] {
        const auto placed = place(Situation::lost);
        grant_reclaim(placed.id);
        return std::tuple{placed.id, calling(ReclaimExecution{placed.id, use_by()}),
                          calling(completion(placed.task, "late"))};
      },
      [&](const ExecutionId& id, const auto& reclaimed, const auto& completed) {
        EXPECT_EQ(reclaimed.value().status, ReclaimStatus::claimed);
        EXPECT_EQ(state(id), expected::running());
        EXPECT_EQ(result(id), std::nullopt);
        return is_either(completed, ErrorCode::stale_lease, ErrorCode::lease_expired);
      });
}

TEST_P(Race, ARenewalDoesNotSurviveARevocation) {
  race(
      [&] {
        const auto placed = place(Situation::running);
        return std::tuple{placed.id, calling(RevokeLease{.execution_id = placed.id}),
                          calling(RenewLease{placed.id, placed.task.fence, 0})};
      },
      [&](const ExecutionId& id, const auto& revoked, const auto& renewed) {
        EXPECT_EQ(revoked.value().already_satisfied, std::nullopt);
        EXPECT_EQ(state(id), expected::revoked());
        if (!renewed) expect_code(renewed, ErrorCode::lease_revoked);
        const Log before = renewed ? Log{"1 acquired", "1 renewed"} : Log{"1 acquired"};
        auto log = lease_log(id);
        EXPECT_EQ(log.back(), "1 revoked operator_revoke");
        log.pop_back();
        EXPECT_EQ(log, before);
        return !renewed;
      });
}

TEST_P(Race, ARevocationOrACompletion) {
  race(
      [&] {
        const auto placed = place(Situation::running);
        return std::tuple{placed.id, calling(RevokeLease{.execution_id = placed.id}),
                          calling(completion(placed.task, "done"))};
      },
      [&](const ExecutionId& id, const auto& revoked, const auto& completed) {
        EXPECT_EQ(revoked.value().already_satisfied,
                  completed ? std::optional(NotRevoked::no_active_lease) : std::nullopt);
        if (!completed) expect_code(completed, ErrorCode::lease_revoked);
        EXPECT_EQ(state(id), completed ? expected::completed() : expected::revoked());
        return !completed;
      });
}

TEST_P(Race, TwoRevocationsAreOne) {
  race(
      [&] {
        const auto placed = place(Situation::running);
        const RevokeLease revocation{.execution_id = placed.id};
        return std::tuple{placed.id, calling(revocation), calling(revocation)};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        const bool won = !first.value().already_satisfied;
        EXPECT_EQ((won ? second : first).value().already_satisfied, NotRevoked::already_revoked);
        EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 revoked operator_revoke"}));
        return won;
      });
}

// ---- ends and new beginnings ----

TEST_P(Race, ACancelOrACompletion) {
  race(
      [&] {
        const auto placed = place(Situation::running);
        return std::tuple{placed.id, calling(CancelExecution{.execution_id = placed.id}),
                          calling(completion(placed.task, "done"))};
      },
      [&](const ExecutionId& id, const auto& cancelled, const auto& completed) {
        EXPECT_NE(cancelled.has_value(), completed.has_value());
        if (completed) {
          expect_code(cancelled, ErrorCode::terminal);
          EXPECT_EQ(result(id), "done");
        } else {
          expect_code(completed, ErrorCode::execution_not_active);
          EXPECT_EQ(completed.error().not_active->terminal_outcome, TerminalOutcome::cancelled);
          EXPECT_EQ(result(id), std::nullopt);
        }
        EXPECT_EQ(outcomes(id), Outcomes{completed ? TerminalOutcome::success : TerminalOutcome::cancelled});
        return cancelled.has_value();
      });
}

TEST_P(Race, TwoReplaysAreOne) {
  race(
      [&] {
        const auto id = place(Situation::completed).id;
        const ReplayExecution again{.execution_id = id};
        return std::tuple{id, calling(again), calling(again)};
      },
      [&](const ExecutionId& id, const auto& first, const auto& second) {
        EXPECT_EQ(describe(id).replay_count, 1u);
        return one_of_two(first, second, ErrorCode::execution_not_terminal);
      });
}

TEST_P(Race, AReplayOrTheEndOfTheRetention) {
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.retention_ttl_ms = 1000};
  race(
      [&] {
        const auto id = place(Situation::completed, policy).id;
        tick(1000);
        return std::tuple{id, calling(ReplayExecution{.execution_id = id}),
                          [this] { return engine().run_due(); }};
      },
      [&](const ExecutionId& id, const auto& replayed, const auto& ran) {
        EXPECT_TRUE(ran);
        if (replayed) {
          EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_replay_attempt));
          EXPECT_EQ(attempts(id).at(0).result, "result");
        } else {
          expect_code(replayed, ErrorCode::execution_not_found);
          expect_error(DescribeExecution{id}, ErrorCode::execution_not_found);
          forget(id);
        }
        return replayed.has_value();
      });
}

TEST_P(Race, AClaimOrTheExpiryOfItsGrant) {
  race(
      [&] {
        const auto placed = place(Situation::waiting);
        grant(placed.id, "slow");
        tick(kGrantTtl + 1);
        return std::tuple{placed.id, [this] { return engine().run_due(); },
                          calling(ClaimExecution{placed.id, use_by("slow")})};
      },
      [&](const ExecutionId& id, const auto& ran, const auto& claimed) {
        EXPECT_TRUE(ran);
        EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
        EXPECT_TRUE(is_offered(describe(id).lane_id));
        return is_either(claimed, ErrorCode::invalid_claim_grant, ErrorCode::claim_grant_expired);
      });
}

}  // namespace
}  // namespace flowfabric
