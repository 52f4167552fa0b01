// Whatever happens to a suspension at the same moment, one wins: it is resumed once, its worker is given the
// signals that did it, and the records tell so. On PostgreSQL the second caller may be at another server.
#include "support/races.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using enum SignalEffect;

struct Place {
  const char* name;
  const char* store;
  bool two_servers{false};
};
void PrintTo(const Place& place, std::ostream* out) {
  *out << place.name;
}

class SuspensionRace : public Races<SuspensionFixture>, public testing::WithParamInterface<Place> {
 protected:
  SuspensionRace() : Races(GetParam().store) {
    if (GetParam().two_servers) second_server_.emplace(open(store().url()));
  }
  void TearDown() override {
    const auto report = must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << report.violations.front().where << ": " << report.violations.front().what;
    SuspensionFixture::TearDown();
  }

  // A round on PostgreSQL takes many round trips.
  template <class Make, class Judge>
  void race(Make make, Judge judge) {
    const bool across_a_network = std::string(GetParam().store) == "postgres";
    Races::race(make, judge, across_a_network ? 16 : 50);
  }

  // The second caller's.
  Engine& other() { return second_server_ ? *second_server_ : engine(); }
  template <class Request>
  auto calling_other(Request request) {
    return [this, request = std::move(request)] { return other().call(request); };
  }
  auto other_clock() {
    return [this] { return other().run_due(); };
  }

  void suspend_until(std::int64_t timeout_at, TimeoutBehavior behavior,
                     ResumeCondition condition = single("k")) {
    auto request = suspension(running(), std::move(condition));
    request.timeout_at = timeout_at;
    request.timeout_behavior = behavior;
    suspend(request);
  }

  // ---- what the records say ----

  // The effects of the signals that were accepted since the last look.
  Log new_effects() {
    Log effects;
    for (const auto& event : must(ReadSignalEvents{.after = last_event_, .limit = 1000})) {
      EXPECT_EQ(event.execution_id, id());
      effects.push_back(event.effect);
      last_event_ = event.event_id;
    }
    return effects;
  }
  void expect_closed(ResumeTrigger trigger, const std::string& reason) {
    const auto view = seen();
    EXPECT_TRUE(view.closed_at);
    EXPECT_EQ(view.resume_trigger, trigger);
    EXPECT_EQ(view.close_reason, reason);
    for (const auto& each : view.waitpoints) EXPECT_EQ(each.state, WaitpointState::closed);
    EXPECT_TRUE(must(ListPendingWaitpoints{id()}).waitpoints.empty());
  }
  // One worker resumes the attempt, once, and gets these signals.
  void expect_resumed(ResumeTrigger trigger, const Log& signals, const std::string& reason = "resumed") {
    expect_closed(trigger, reason);
    const auto task = claim_one();
    EXPECT_EQ(task.claim, ClaimKind::resumed);
    EXPECT_EQ(task.execution_id, id());
    EXPECT_EQ(shown(task.resume_signals), signals);
    EXPECT_EQ(lease_log(id()), (Log{"1 acquired", "1 released suspend", "2 acquired claim_resumed"}));
    EXPECT_EQ(attempt_log(id()), Log{"0 initial started"});
    EXPECT_TRUE(claim().empty());
    complete(task);
  }
  void expect_ended(TerminalOutcome outcome, const std::string& reason) {
    expect_closed(ResumeTrigger::none, reason);
    EXPECT_EQ(outcomes(id()), std::vector{outcome});
    EXPECT_EQ(lease_log(id()), (Log{"1 acquired", "1 released suspend"}));
    EXPECT_TRUE(claim().empty());
  }

  // Only the signal was there, or it came too late.
  bool resumed_by_signal_or_refused(const Result<SignalDelivered>& delivered,
                                    const Log& effects = {"satisfied"}) {
    if (!delivered) {
      expect_code(delivered, ErrorCode::target_not_signalable);
      EXPECT_EQ(new_effects(), Log{});
      return false;
    }
    EXPECT_EQ(delivered->effect, resume_condition_satisfied);
    EXPECT_EQ(new_effects(), effects);
    expect_resumed(ResumeTrigger::signal, Log{"go:none"});
    return true;
  }

 private:
  std::optional<Engine> second_server_;
  std::int64_t last_event_{0};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SuspensionRace,
                         testing::Values(Place{"memory", "memory"},
                                         Place{"memory_deferred", "memory_deferred"},
                                         Place{"sqlite", "sqlite"}, Place{"postgres", "postgres"},
                                         Place{"postgres_two_servers", "postgres", true}),
                         [](const auto& each) { return each.param.name; });

// ---- two signals ----

TEST_P(SuspensionRace, OneOfTwoSignalsResumes) {
  race(
      [&] {
        suspend_new();
        return std::tuple{id(), calling(signal(waitpoint())), calling_other(signal(waitpoint()))};
      },
      [&](const ExecutionId&, const auto& first, const auto& second) {
        const bool won = one_of_two(first, second, ErrorCode::target_not_signalable);
        EXPECT_EQ(seen().closer_signal_id, (won ? first : second)->signal_id);
        resumed_by_signal_or_refused(won ? first : second);
        return won;
      });
}

TEST_P(SuspensionRace, TheLaterOfTwoNeededSignalsResumes) {
  race(
      [&] {
        suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}));
        return std::tuple{id(), calling(signal(waitpoint(), "a")), calling_other(signal(waitpoint(), "b"))};
      },
      [&](const ExecutionId&, const auto& a, const auto& b) {
        const bool won = a.value().effect == appended_to_waitpoint;
        EXPECT_EQ((won ? b : a).value().effect, resume_condition_satisfied);
        EXPECT_EQ(new_effects(), (Log{"buffered", "satisfied"}));
        expect_resumed(ResumeTrigger::signal, won ? Log{"a:none", "b:none"} : Log{"b:none", "a:none"});
        return won;
      });
}

TEST_P(SuspensionRace, ARepeatedSignalIsOne) {
  race(
      [&] {
        suspend_new();
        auto request = signal(waitpoint());
        request.idempotency_key = "K";
        return std::tuple{id(), calling(request), calling_other(request)};
      },
      [&](const ExecutionId&, const auto& first, const auto& second) {
        const bool won = !first.value().duplicate;
        EXPECT_NE(won, !second.value().duplicate);
        EXPECT_EQ(first->signal_id, second->signal_id);
        resumed_by_signal_or_refused(won ? first : second, {"satisfied", "deduped"});
        return won;
      });
}

// It comes before the worker is suspended, or after: it is not lost, and not given twice.
TEST_P(SuspensionRace, ASignalAndTheSuspendThatItIsFor) {
  race(
      [&] {
        const auto task = running();
        const auto pending = make_waitpoint(task);
        auto request = suspension(task);
        request.waitpoints = {{.waitpoint_id = pending.waitpoint_id, .use_pending = true}};
        return std::tuple{id(), calling(request), calling_other(signal(pending))};
      },
      [&](const ExecutionId&, const auto& suspended, const auto& delivered) {
        if (!suspended.value().already_satisfied) return resumed_by_signal_or_refused(delivered);
        EXPECT_EQ(delivered.value().effect, buffered_for_pending_waitpoint);
        EXPECT_EQ(new_effects(), Log{"buffered"});
        EXPECT_EQ(shown(suspended->signals), Log{"go:none"});
        expect_closed(ResumeTrigger::signal, "resumed");
        EXPECT_EQ(lease_log(id()), Log{"1 acquired"});
        complete(task());
        return false;
      });
}

// ---- a signal, and something else ----

TEST_P(SuspensionRace, ASignalOrTheTimeout) {
  race(
      [&] {
        suspend_until(now() + 1000, TimeoutBehavior::fail);
        tick(1000);
        return std::tuple{id(), calling(signal(waitpoint())), other_clock()};
      },
      [&](const ExecutionId&, const auto& delivered, const auto& ran) {
        EXPECT_TRUE(ran);
        const bool won = resumed_by_signal_or_refused(delivered);
        if (!won) expect_ended(TerminalOutcome::failed, "timed_out_fail");
        return won;
      });
}

TEST_P(SuspensionRace, ASignalOrTheTimeoutThatResumes) {
  race(
      [&] {
        suspend_until(now() + 1000, TimeoutBehavior::auto_resume_with_timeout_signal);
        tick(1000);
        return std::tuple{id(), calling(signal(waitpoint())), other_clock()};
      },
      [&](const ExecutionId&, const auto& delivered, const auto& ran) {
        EXPECT_TRUE(ran);
        if (delivered) return resumed_by_signal_or_refused(delivered);
        expect_code(delivered, ErrorCode::target_not_signalable);
        EXPECT_EQ(new_effects(), Log{"satisfied"});
        expect_resumed(ResumeTrigger::timeout, Log{"timeout:none"}, "timed_out_auto_resume");
        return false;
      });
}

// After a resume there is something left to cancel.
TEST_P(SuspensionRace, ASignalAndACancel) {
  race(
      [&] {
        suspend_new();
        return std::tuple{id(), calling(signal(waitpoint())),
                          calling_other(CancelExecution{.execution_id = id(), .reason = "enough"})};
      },
      [&](const ExecutionId&, const auto& delivered, const auto& cancelled) {
        EXPECT_TRUE(cancelled);
        EXPECT_EQ(now_in().public_state, PublicState::cancelled);
        EXPECT_EQ(attempt_log(id()), Log{"0 initial ended_cancelled cancelled: enough"});
        EXPECT_EQ(new_effects(), delivered ? Log{"satisfied"} : Log{});
        if (delivered) {
          expect_closed(ResumeTrigger::signal, "resumed");
        } else {
          expect_code(delivered, ErrorCode::target_not_signalable);
          expect_ended(TerminalOutcome::cancelled, "cancelled");
        }
        return delivered.has_value();
      });
}

TEST_P(SuspensionRace, ASignalOrAnOperator) {
  race(
      [&] {
        suspend_new();
        return std::tuple{id(), calling(signal(waitpoint())), calling_other(ResumeExecution{id()})};
      },
      [&](const ExecutionId&, const auto& delivered, const auto& resumed) {
        EXPECT_NE(delivered.has_value(), resumed.has_value());
        if (!resumed) expect_code(resumed, ErrorCode::execution_not_suspended);
        const bool won = resumed_by_signal_or_refused(delivered);
        if (!won) expect_resumed(ResumeTrigger::operator_, Log{});
        return won;
      });
}

TEST_P(SuspensionRace, ASignalOrTheEndOfItsWaitpoint) {
  race(
      [&] {
        suspend_new();
        return std::tuple{id(), calling(signal(waitpoint())),
                          calling_other(CloseWaitpoint{id(), waitpoint().waitpoint_id})};
      },
      [&](const ExecutionId&, const auto& delivered, const auto& closed) {
        EXPECT_EQ(closed.value().already_closed, delivered.has_value());
        if (delivered) return resumed_by_signal_or_refused(delivered);
        expect_code(delivered, ErrorCode::waitpoint_closed);
        EXPECT_EQ(new_effects(), Log{});
        EXPECT_EQ(now_in(), expected::suspended());
        must(ResumeExecution{id()});
        expect_resumed(ResumeTrigger::operator_, Log{});
        return false;
      });
}

// ---- timeouts ----

TEST_P(SuspensionRace, AnOperatorOrTheTimeout) {
  race(
      [&] {
        suspend_until(now() + 1000, TimeoutBehavior::expire);
        tick(1000);
        return std::tuple{id(), calling(ResumeExecution{id()}), other_clock()};
      },
      [&](const ExecutionId&, const auto& resumed, const auto& ran) {
        EXPECT_TRUE(ran);
        if (resumed) {
          expect_resumed(ResumeTrigger::operator_, Log{});
        } else {
          expect_code(resumed, ErrorCode::execution_not_suspended);
          expect_ended(TerminalOutcome::expired, "timed_out_expire");
        }
        return resumed.has_value();
      });
}

TEST_P(SuspensionRace, TwoClocksFireATimeoutOnce) {
  race(
      [&] {
        suspend_until(now() + 1000, TimeoutBehavior::auto_resume_with_timeout_signal, {TimeoutOnly{}});
        tick(1000);
        return std::tuple{id(), [this] { return engine().run_due(); }, other_clock()};
      },
      [&](const ExecutionId&, const auto& first, const auto& second) {
        EXPECT_TRUE(first && second);
        EXPECT_EQ(new_effects(), Log{"satisfied"});
        expect_resumed(ResumeTrigger::timeout, Log{"timeout:none"}, "timed_out_auto_resume");
        return *first > 0;
      });
}

// The suspension would time out at the very moment at which the lease runs out.
TEST_P(SuspensionRace, ASuspendOrTheExpiryOfItsLease) {
  race(
      [&] {
        auto request = suspension(running());
        request.timeout_at = now() + kLeaseTtl;
        request.timeout_behavior = TimeoutBehavior::fail;
        tick(kLeaseTtl - 1);
        return std::tuple{request.execution_id, calling(request), [this] {
                            tick(1);
                            return other().run_due();
                          }};
      },
      [&](const ExecutionId& id, const auto& suspended, const auto& ran) {
        EXPECT_TRUE(ran);
        run_due();
        if (suspended) {
          EXPECT_EQ(describe(id).failure_reason, "suspension_timeout:fail");
          EXPECT_EQ(outcomes(id), std::vector{TerminalOutcome::failed});
          EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released suspend"}));
        } else {
          expect_code(suspended, ErrorCode::lease_expired);
          expect_error(DescribeSuspension{id}, ErrorCode::suspension_not_found);
          EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 expired"}));
          complete(claim_one());
        }
        return suspended.has_value();
      });
}

// The waitpoint would be given up at the very moment at which somebody is suspended on it.
TEST_P(SuspensionRace, ASuspendOrTheExpiryOfItsWaitpoint) {
  race(
      [&] {
        const auto task = running();
        const auto pending = make_waitpoint(task, "k", 1000);
        auto request = suspension(task);
        request.waitpoints = {{.waitpoint_id = pending.waitpoint_id, .use_pending = true}};
        tick(999);
        return std::tuple{id(), calling(request), [this] {
                            tick(1);
                            return other().run_due();
                          }};
      },
      [&](const ExecutionId& id, const auto& suspended, const auto& ran) {
        EXPECT_TRUE(ran);
        run_due();
        const auto open = must(ListPendingWaitpoints{id}).waitpoints;
        if (suspended) {
          EXPECT_EQ(state(id), expected::suspended());
          EXPECT_EQ(open.at(0).state, WaitpointState::active) << "nobody takes it away any more";
          must(ResumeExecution{id});
          complete(claim_one());
        } else {
          is_either(suspended, ErrorCode::waitpoint_not_pending, ErrorCode::pending_waitpoint_expired);
          EXPECT_EQ(state(id), expected::running());
          EXPECT_TRUE(open.empty());
          complete(task());
        }
        return suspended.has_value();
      });
}

TEST_P(SuspensionRace, ASuspendOrTheTimeoutOfItsAttempt) {
  const ExecutionPolicy policy{.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 1000}};
  race(
      [&] {
        const auto request = suspension(running(policy), {OperatorOnly{}});
        tick(1000);
        return std::tuple{request.execution_id, calling(request), other_clock()};
      },
      [&](const ExecutionId& id, const auto& suspended, const auto& ran) {
        EXPECT_TRUE(ran);
        if (suspended) {
          EXPECT_EQ(state(id), expected::suspended());
          EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released suspend"}));
          must(ResumeExecution{id});
          const auto task = claim_one();
          EXPECT_EQ(task.attempt_timeout_at, now() + 1) << "its time is up";
          advance(1);
        } else {
          expect_code(suspended, ErrorCode::execution_not_active);
        }
        EXPECT_EQ(outcomes(id), std::vector{TerminalOutcome::expired});
        return suspended.has_value();
      });
}

// ---- secrets ----

TEST_P(SuspensionRace, SecretsAreRotatedOneAfterTheOther) {
  int number = 0;
  std::string before = "k1";
  race(
      [&] {
        const auto rotation = [&](const char* name) {
          return RotateWaitpointSecret{name + std::to_string(number), std::string(64, 'a'), kHour};
        };
        ++number;
        return std::tuple{id(), calling(rotation("a")), calling_other(rotation("b"))};
      },
      [&](const ExecutionId&, const auto& first, const auto& second) {
        const bool won = first.value().previous_kid == before;
        const auto& earlier = (won ? first : second).value();
        const auto& later = (won ? second : first).value();
        EXPECT_EQ(earlier.previous_kid, before);
        EXPECT_EQ(later.previous_kid, earlier.new_kid);
        const auto kids = must(ListWaitpointKids{});
        EXPECT_EQ(kids.current_kid, later.new_kid);
        EXPECT_EQ(kids.verifying.size(), 2u * static_cast<std::size_t>(number));
        before = later.new_kid;
        return won;
      });
}

}  // namespace
}  // namespace flowfabric
