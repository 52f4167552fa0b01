#include "engine/cancel_members.h"

#include <algorithm>
#include <latch>

#include "core/flow/cancel_flow.h"
#include "core/keys.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

constexpr std::chrono::milliseconds kLookAgain{50};
constexpr std::int64_t kMaxWaitMs = 300'000;
constexpr std::uint32_t kOwedPerPage = 1000;

using CancelRun = std::function<void(core::Unit&, core::Context&)>;

Operation operation_on(const FlowKey& key, const EngineOptions& options, CancelRun run,
                       std::function<void(const Error*)> answer) {
  Operation operation;
  operation.want = [key](core::Unit& unit) { unit.want<CancelBacklog>(key); };
  operation.run = [run = std::move(run)](core::Unit& unit, core::Context& at) {
    run(unit, at);
    return Outcome::keep;
  };
  operation.answer = std::move(answer);
  operation.seed = random_seed();
  operation.affinity = core::affinity_of(key.flow_id);
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  return operation;
}

// One cancel on its way; it lives until it is answered.
class Cancelling : public std::enable_shared_from_this<Cancelling> {
 public:
  Cancelling(const FlowCancel& cancel, FlowCancellation header, CancelAnswer answer)
      : cancel_(cancel),
        key_{partition_of(cancel.request.flow_id.uuid, cancel.options.flow_partitions),
             cancel.request.flow_id},
        until_(std::chrono::steady_clock::now() +
               std::chrono::milliseconds(std::min(cancel.request.wait_ms, kMaxWaitMs))),
        result_(std::move(header)),
        answer_(std::move(answer)) {}

  // A page of members in one transaction.
  void step() {
    auto self = shared_from_this();
    submit([self](core::Unit& unit,
                  core::Context& at) { self->last_ = core::cancel_members(unit, self->key_, at); },
           [self](const Error* refusal) { self->after_step(refusal); });
  }

 private:
  void after_step(const Error* refusal) {
    if (refusal && !is_hopeless(refusal->code)) return answer_(std::unexpected(*refusal));
    // One of them cannot be cancelled; the others can.
    if (refusal) return one_by_one();
    if (last_.finished) return answer_done();
    if (last_.waits_for_active) return look_again();
    if (std::chrono::steady_clock::now() >= until_) return answer_late();
    step();
  }

  // The clock goes on with it, here or in another server.
  void look_again() {
    const auto next = std::min(until_, std::chrono::steady_clock::now() + kLookAgain);
    const bool waits = cancel_.watchers.watch("", next, [self = shared_from_this()](bool last) {
      if (last) self->look();
      return last;
    });
    if (!waits) answer_late();
  }

  void look() {
    const auto finished = cancel_.readers.read(
        [&](Reading& reading) -> Result<bool> { return reading.find<CancelBacklog>(key_) == nullptr; });
    if (!finished) return answer_(std::unexpected(finished.error()));
    if (*finished) return answer_done();
    if (std::chrono::steady_clock::now() >= until_) return answer_late();
    look_again();
  }

  void answer_done() {
    result_.outcome = CancelOutcome::cancelled;
    answer_(std::move(result_));
  }

  void answer_late() {
    if (!cancel_.request.partial_when_late) {
      return answer_(
          fail_with(ErrorCode::timeout, "cancel_flow: " + std::to_string(cancel_.request.wait_ms) + " ms",
                    "The flow is cancelled; its members follow in the background. Look at it later."));
    }
    auto owed = cancel_.readers.read([&](Reading& reading) { return still_owed(reading); });
    if (!owed) return answer_(std::unexpected(owed.error()));
    result_.failed_member_execution_ids = *std::move(owed);
    answer_partly();
  }

  Result<std::vector<ExecutionId>> still_owed(Reading& reading) const {
    std::vector<ExecutionId> owed;
    std::optional<Uuid> after;
    for (;;) {
      const auto page = reading.ask(core::OwedCancels{key_, after, kOwedPerPage});
      owed.insert(owed.end(), page.begin(), page.end());
      if (page.size() < kOwedPerPage) return owed;
      after = page.back().uuid;
    }
  }

  void one_by_one() {
    auto self = shared_from_this();
    const auto members = result_.member_execution_ids;
    auto missing = std::make_shared<std::atomic<std::size_t>>(members.size());
    for (const auto& id : members) {
      submit(
          [self, id](core::Unit& unit, core::Context& at) { core::cancel_member(unit, self->key_, id, at); },
          [self, id, missing](const Error* refusal) {
            {
              std::lock_guard lock(self->mutex_);
              if (refusal) self->result_.failed_member_execution_ids.push_back(id);
            }
            if (--*missing == 0) self->answer_partly();
          });
    }
  }

  void answer_partly() {
    auto& failed = result_.failed_member_execution_ids;
    std::ranges::sort(failed);
    result_.outcome = failed.empty() ? CancelOutcome::cancelled : CancelOutcome::partially_cancelled;
    answer_(std::move(result_));
  }

  void submit(CancelRun run, std::function<void(const Error*)> answer) {
    cancel_.committers.submit(operation_on(key_, cancel_.options, std::move(run), std::move(answer)));
  }

  const FlowCancel cancel_;
  const FlowKey key_;
  const SteadyTime until_;
  std::mutex mutex_;
  FlowCancellation result_;
  core::CancelStep last_;
  CancelAnswer answer_;
};

std::vector<ExecutionId> owed_members(store::Session& session, const FlowKey& key) {
  core::Unit unit(session);
  unit.want_answer(core::next_page(key));
  session.begin(unit);
  auto members = unit.ask(core::next_page(key));
  session.rollback();
  return members;
}

using MemberRun = void (*)(core::Unit&, const FlowKey&, const ExecutionId&, core::Context&);

// One operation for each, all at once: what was refused, and why.
std::map<ExecutionId, ErrorCode> run_each(Committers& committers, const FlowKey& key,
                                          const EngineOptions& options,
                                          const std::vector<ExecutionId>& members, MemberRun run) {
  struct Refused {
    explicit Refused(std::size_t missing) : all(static_cast<std::ptrdiff_t>(missing)) {}
    std::mutex mutex;
    std::map<ExecutionId, ErrorCode> members;
    std::latch all;
  };
  auto refused = std::make_shared<Refused>(members.size());
  std::vector<Operation> operations;
  for (const auto& id : members) {
    operations.push_back(operation_on(
        key, options, [run, key, id](core::Unit& unit, core::Context& at) { run(unit, key, id, at); },
        [refused, id](const Error* refusal) {
          {
            std::lock_guard lock(refused->mutex);
            if (refusal) refused->members.emplace(id, refusal->code);
          }
          refused->all.count_down();
        }));
  }
  committers.submit(std::move(operations));
  refused->all.wait();
  return refused->members;
}

// Those that each fail by themselves, in a way that will not change.
std::vector<ExecutionId> hopeless_of(const std::map<ExecutionId, ErrorCode>& refused) {
  std::vector<ExecutionId> members;
  for (const auto& [id, code] : refused) {
    if (is_hopeless(code)) members.push_back(id);
  }
  return members;
}

}  // namespace

bool is_hopeless(ErrorCode code) {
  return code == ErrorCode::invariant_violation || code == ErrorCode::corruption;
}

bool cancel_each(store::Session& session, Committers& committers, const FlowKey& key,
                 const EngineOptions& options) {
  const auto each = [&](const std::vector<ExecutionId>& members, MemberRun run) {
    return run_each(committers, key, options, members, run);
  };
  const auto failed = each(owed_members(session, key), core::cancel_member);
  // What can be read may only have a neighbour that cannot: it stays owed, so that nobody claims it.
  const auto unreadable = hopeless_of(
      each(hopeless_of(failed), [](core::Unit& unit, const FlowKey&, const ExecutionId& id, core::Context&) {
        static_cast<void>(unit.find<Execution>(id));
      }));
  const auto kept = each(unreadable, [](core::Unit& unit, const FlowKey& flow, const ExecutionId& id,
                                        core::Context&) { core::give_up_member(unit, flow, id); });
  return kept.empty() && failed.size() == unreadable.size();
}

CancelAnswer finish_cancel(const FlowCancel& cancel, CancelAnswer answer) {
  return [cancel, answer = std::move(answer)](Result<FlowCancellation> header) mutable {
    if (!header || header->outcome != CancelOutcome::scheduled) return answer(std::move(header));
    std::make_shared<Cancelling>(cancel, *std::move(header), std::move(answer))->step();
  };
}

}  // namespace flowfabric::engine
