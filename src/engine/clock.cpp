#include "engine/clock.h"

#include <algorithm>
#include <future>
#include <latch>

#include "core/block.h"
#include "core/budget.h"
#include "core/bulk.h"
#include "core/dead_worker.h"
#include "core/dependency.h"
#include "core/expiry.h"
#include "core/flow_cancel.h"
#include "core/quota.h"
#include "core/scanner_filter.h"
#include "core/stream.h"
#include "core/suspension.h"
#include "core/waitpoint.h"
#include "core/worker.h"
#include "engine/bulk.h"
#include "engine/dead_worker.h"
#include "engine/flow_cancel.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

constexpr std::size_t kPage = 256;
// What is removed per look, beside what is due: enough to keep up, too little to slow the rest.
constexpr std::size_t kPurgePage = 300;
constexpr std::chrono::minutes kForeignRest{1};
constexpr int kFailuresBeforeRest = 3;
constexpr std::uint64_t kCyclesOfRest = 10;
constexpr std::chrono::milliseconds kLongestSleep{750};
// Between two looks, so that a record that cannot be moved does not keep a core busy.
constexpr std::int64_t kShortestRestMs = 1;
constexpr std::uint64_t kSpreadMs = 20;
constexpr int kMaxPages = 1000;
// After that without one, something keeps it from looking.
constexpr std::chrono::milliseconds kLongestLook{10'000};
// Up to 50 000 events per second of each kind.
constexpr std::chrono::seconds kTrimInterval{1};
constexpr int kTrimSteps = 50;

}  // namespace

Clock::Clock(store::Store& store, Committers& committers, WaitingClaims& waiting,
             const EngineOptions& options)
    : session_(store.open_reader()),
      is_shared_(store.is_shared()),
      committers_(committers),
      waiting_(waiting),
      options_(options),
      random_(random_seed()),
      thread_([this] { loop(); }) {}

Clock::~Clock() {
  stop();
}

void Clock::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Clock::note_due(std::int64_t due_at_ms) {
  std::lock_guard lock(mutex_);
  // Deadlines may lie beyond all time; what is further away than the next look does not matter here.
  const auto ahead_ms = std::min(due_at_ms - anchor_ms_, options_.clock_interval.count());
  const auto due = anchor_ + std::chrono::milliseconds(ahead_ms);
  if (due >= next_rules_) return;
  next_rules_ = due;
  if (due < sleeping_until_) wake_.notify_all();
}

void Clock::note_waiting(SteadyTime until) {
  std::lock_guard lock(mutex_);
  if (until >= sleeping_until_) return;
  sleeping_until_ = until;
  wake_.notify_all();
}

void Clock::add_to(EngineStats& stats) const {
  stats.clock_operations = operations_;
  stats.clock_failures = failed_;
  stats.clock_filtered = filtered_;
  for (std::size_t i = 0; i < fired_.size(); ++i) {
    const auto rule = static_cast<core::Rule>(i);
    if (rule != core::Rule::none && fired_[i] > 0)
      stats.clock_rules[std::string(enum_names<core::Rule>[i])] = fired_[i];
    // What failed before it was clear which rule applies.
    const auto name = rule == core::Rule::none ? "unknown" : enum_names<core::Rule>[i];
    if (failed_by_rule_[i] > 0) stats.clock_errors[std::string(name)] = failed_by_rule_[i];
  }
  stats.clock_is_on = options_.clock_interval.count() > 0;
  std::lock_guard lock(figures_mutex_);
  stats.clock_looks = looks_;
  stats.clock_lag_ms = lag_ms_;
  stats.clock_resting = resting_;
  stats.since_clock_look_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - last_look_)
          .count();
  const auto longest = std::max(kLongestLook, 4 * options_.clock_interval);
  stats.clock_is_stalled = stats.clock_is_on && stats.since_clock_look_ms > longest.count();
  for (std::size_t i = 1; i < kRules; ++i) {
    stats.clock_seconds.emplace(enum_names<core::Rule>[i], seconds_[i]);
  }
}

void Clock::begin_look(SteadyTime began) {
  std::lock_guard lock(session_mutex_);
  look_began_ = began;
  look_found_ = std::chrono::steady_clock::now();
  through_at_.fill({});
}

void Clock::end_look() {
  std::lock_guard session_lock(session_mutex_);
  const auto resting = std::ranges::count_if(
      failures_, [&](const auto& failure) { return failure.second.skip_until > cycle_; });
  std::lock_guard lock(figures_mutex_);
  ++looks_;
  resting_ = static_cast<std::uint64_t>(resting);
  last_look_ = std::chrono::steady_clock::now();
  for (std::size_t i = 1; i < kRules; ++i) {
    const auto through = std::max(through_at_[i], look_found_);
    seconds_[i].observe(std::chrono::duration<double>(through - look_began_).count());
  }
}

void Clock::let_go() {
  const auto now = std::chrono::steady_clock::now();
  for (auto& operation : waiting_.take_expired(now)) operation.answer(nullptr);
  committers_.refuse_overdue(now);
}

void Clock::hurry() {
  std::lock_guard lock(mutex_);
  next_rules_ = std::chrono::steady_clock::now();
  wake_.notify_all();
}

// Trouble with the store shows in every answer; here it only means to look again later.
std::optional<store::Agenda> Clock::read_agenda() {
  const auto lanes = is_shared_ ? waiting_.lanes() : std::vector<std::string>();
  std::lock_guard session_lock(session_mutex_);
  try {
    auto agenda = session_->agenda(lanes);
    std::lock_guard lock(figures_mutex_);
    lag_ms_ = agenda.next_due ? std::max<std::int64_t>(agenda.now_ms - *agenda.next_due, 0) : 0;
    return agenda;
  } catch (const store::StoreFailure&) {
    session_->rollback();
    return std::nullopt;
  }
}

// True: something was done, and the agenda is out of date.
bool Clock::act_on(const store::Agenda& agenda) {
  if (!agenda.offered.empty()) {
    std::vector<std::pair<Route, std::uint32_t>> offers;
    for (const auto& route : agenda.offered) {
      offers.emplace_back(route, std::numeric_limits<std::uint32_t>::max());
    }
    committers_.requeue(waiting_.wake(offers).operations);
  }
  const bool due = agenda.next_due && *agenda.next_due <= agenda.now_ms;
  // A page at a time, so that waiting claims are let go in between.
  const auto looked_at = due ? run_due(1) : std::size_t{0};
  only_set_aside_is_due_ = due && looked_at && *looked_at == 0 && has_set_aside();
  const auto now = std::chrono::steady_clock::now();
  const bool trims = options_.event_retention.count() > 0 && agenda.oldest_event && now >= next_trim_ &&
                     *agenda.oldest_event < agenda.now_ms - options_.event_retention.count();
  if (trims) {
    static_cast<void>(trim_events(kTrimSteps));
    next_trim_ = std::chrono::steady_clock::now() + kTrimInterval;
  }
  return (due && !only_set_aside_is_due_) || trims;
}

void Clock::look() {
  {
    // From here on a commit may set an earlier time, which must outlive the one that is worked out below.
    std::lock_guard lock(mutex_);
    next_rules_ = std::chrono::steady_clock::now() + options_.clock_interval;
  }
  const auto began = std::chrono::steady_clock::now();
  auto agenda = read_agenda();
  if (agenda) {
    begin_look(began);
    if (act_on(*agenda)) agenda = read_agenda();
    end_look();
  }
  plan(agenda);
}

void Clock::plan(const std::optional<store::Agenda>& agenda) {
  if (!agenda) return;
  const auto now_ms = agenda->now_ms;
  const auto latest = now_ms + options_.clock_interval.count();
  auto next_ms = std::max(std::min(agenda->next_due.value_or(latest), latest), now_ms + kShortestRestMs);
  // Looking again at once would not help.
  if (only_set_aside_is_due_) next_ms = latest;
  // All servers know when something will be due; they need not all come at once.
  if (is_shared_) next_ms += static_cast<std::int64_t>(random_.between(0, kSpreadMs));
  std::lock_guard lock(mutex_);
  anchor_ = std::chrono::steady_clock::now();
  anchor_ms_ = now_ms;
  next_rules_ = std::min(next_rules_, anchor_ + std::chrono::milliseconds(next_ms - now_ms));
}

void Clock::loop() {
  const bool runs_rules = options_.clock_interval.count() > 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool rules_due = runs_rules && std::chrono::steady_clock::now() >= next_rules_;
    lock.unlock();
    let_go();
    if (rules_due) look();
    lock.lock();
    // Announced before the waiting claims are looked at, so that none can slip in between unseen.
    sleeping_until_ = std::chrono::steady_clock::now() + kLongestSleep;
    lock.unlock();
    const auto expiry = waiting_.next_expiry();
    lock.lock();
    if (runs_rules) sleeping_until_ = std::min(sleeping_until_, next_rules_);
    if (expiry) sleeping_until_ = std::min(sleeping_until_, *expiry);
    // Notified when either of the two times has moved closer.
    if (!stopping_) wake_.wait_until(lock, sleeping_until_);
  }
}

Operation Clock::due_operation(const store::DueKey& key, std::function<void(Outcome)> done) const {
  Operation operation;
  operation.want = [key](core::Unit& unit) {
    std::visit(
        [&]<class Record>(const store::Due<Record>& due) {
          // What another record guards is only read under that one's lock.
          if constexpr (is_guarded<Record>) unit.want<Execution>(owner_of(due.key));
          unit.want<Record>(due.key);
        },
        key);
  };
  auto outcome = std::make_shared<Outcome>();
  operation.run = [key, outcome, &filter = options_.scanner_filter](core::Unit& unit, core::Context& at) {
    std::visit(
        [&](const auto& due) {
          outcome->is_foreign = !core::passes(unit, filter, due.key);
          outcome->rule = outcome->is_foreign ? core::Rule::none : core::run_due(unit, due.key, at);
        },
        key);
    return engine::Outcome::keep;
  };
  operation.answer = [outcome, done = std::move(done)](const Error* refusal) {
    outcome->succeeded = refusal == nullptr;
    if (refusal) outcome->refusal = refusal->code;
    outcome->at = std::chrono::steady_clock::now();
    done(*outcome);
  };
  operation.seed = random_seed();
  if (const auto* execution = std::get_if<store::Due<Execution>>(&key)) {
    operation.affinity = affinity_of(execution->key);
  }
  operation.deadline = std::chrono::steady_clock::now() + options_.operation_deadline;
  return operation;
}

std::vector<store::DueKey> Clock::find_due() {
  core::Unit unit(*session_);
  const auto now = session_->begin(unit);
  // What is being left alone still stands at the head of the list: look past it.
  auto keys = session_->due(now, kPage + failures_.size() + foreign_.size());
  for (const auto& id : session_->purgeable(now, kPurgePage)) keys.emplace_back(store::Due<Execution>{id});
  session_->rollback();
  std::erase_if(keys, [&](const store::DueKey& key) { return is_set_aside(key); });
  return keys;
}

bool Clock::has_set_aside() {
  std::lock_guard lock(session_mutex_);
  return !failures_.empty() || !foreign_.empty();
}

bool Clock::is_set_aside(const store::DueKey& key) const {
  const auto failure = failures_.find(key);
  return (failure != failures_.end() && failure->second.skip_until > cycle_) || foreign_.contains(key);
}

// Something is due that was not found: another server, or another operation, holds it just now.
bool Clock::others_are_busy() {
  if (!is_shared_ || !failures_.empty() || !foreign_.empty()) return false;
  const auto agenda = session_->agenda({});
  return agenda.next_due && *agenda.next_due <= agenda.now_ms;
}

void Clock::note_outcome(const store::DueKey& key, const Outcome& outcome) {
  auto& through = through_at_[static_cast<std::size_t>(outcome.rule)];
  through = std::max(through, outcome.at);
  if (!outcome.succeeded) {
    ++failed_by_rule_[static_cast<std::size_t>(outcome.rule)];
    return note_success(key, go_round_damage(key, outcome));
  }
  if (outcome.is_foreign) {
    ++filtered_;
    foreign_.emplace(key, std::chrono::steady_clock::now() + kForeignRest);
    return;
  }
  ++fired_[static_cast<std::size_t>(outcome.rule)];
  if (!run_bulk(key)) note_success(key, true);
}

void Clock::note_success(const store::DueKey& key, bool succeeded) {
  if (succeeded) {
    failures_.erase(key);
    return;
  }
  ++failed_;
  auto& failures = failures_[key];
  if (++failures.in_a_row < kFailuresBeforeRest) return;
  failures = {.in_a_row = 0, .skip_until = cycle_ + kCyclesOfRest};
}

// Steps of bulk operations are several operations each; everything else is one.
bool Clock::run_bulk(const store::DueKey& key) {
  const auto* job = std::get_if<store::Due<BulkJob>>(&key);
  if (!job) return false;
  note_success(key, run_bulk_step(*session_, committers_, job->key, options_));
  return true;
}

// One member of a cancelled flow, one worker, or one lease of a dead one, that cannot be read holds up nobody
// but itself.
bool Clock::go_round_damage(const store::DueKey& key, const Outcome& outcome) {
  const bool hopeless = is_hopeless(*outcome.refusal);
  const auto* worker = std::get_if<store::Due<DeadWorker>>(&key);
  // Its leases may have met too many new records together.
  if (worker && (hopeless || outcome.refusal == ErrorCode::retry_exhausted)) {
    ++failed_;
    return offer_each(*session_, committers_, worker->key, options_);
  }
  if (!hopeless) return false;
  if (const auto* flow = std::get_if<store::Due<CancelBacklog>>(&key)) {
    ++failed_;
    return cancel_each(*session_, committers_, flow->key, options_);
  }
  if (const auto* route = std::get_if<store::Due<Route>>(&key)) {
    ++failed_;
    return run_now([key = route->key](core::Unit& unit, core::Context& at) {
      core::unblock_unseen(unit, key, at);
      return engine::Outcome::keep;
    });
  }
  return false;
}

// False: it was refused.
bool Clock::run_now(std::move_only_function<engine::Outcome(core::Unit&, core::Context&)> run) {
  Operation operation;
  operation.run = std::move(run);
  auto done = std::make_shared<std::promise<bool>>();
  auto answer = done->get_future();
  operation.answer = [done](const Error* refusal) { done->set_value(refusal == nullptr); };
  operation.seed = random_seed();
  operation.deadline = std::chrono::steady_clock::now() + options_.operation_deadline;
  committers_.submit(std::move(operation));
  return answer.get();
}

void Clock::run_page(const std::vector<store::DueKey>& keys) {
  auto outcomes = std::make_shared<std::vector<Outcome>>(keys.size());
  auto all = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(keys.size()));
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    operations.push_back(due_operation(keys[i], [outcomes, all, i](const Outcome& outcome) {
      (*outcomes)[i] = outcome;
      all->count_down();
    }));
  }
  committers_.submit(std::move(operations));
  all->wait();
  for (std::size_t i = 0; i < keys.size(); ++i) note_outcome(keys[i], (*outcomes)[i]);
}

Result<std::size_t> Clock::run_due(int pages) {
  std::lock_guard lock(session_mutex_);
  std::size_t looked_at = 0;
  try {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(foreign_, [&](const auto& foreign) { return foreign.second <= now; });
    for (int page = 0; page < pages; ++page) {
      ++cycle_;
      const auto keys = find_due();
      if (is_stopping()) break;
      if (keys.empty()) {
        if (pages == 1 || !others_are_busy()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(kShortestRestMs));
        continue;
      }
      run_page(keys);
      looked_at += keys.size();
      operations_ += keys.size();
    }
    return looked_at;
  } catch (const store::StoreFailure& failure) {
    session_->rollback();
    return std::unexpected(failure.error);
  }
}

Result<std::size_t> Clock::run_due() {
  begin_look(std::chrono::steady_clock::now());
  auto looked_at = run_due(kMaxPages);
  if (looked_at) {
    end_look();
    if (auto trimmed = trim_events(kMaxPages); !trimmed) return std::unexpected(trimmed.error());
  }
  return looked_at;
}

Result<void> Clock::trim_events(int steps) {
  std::lock_guard lock(session_mutex_);
  try {
    for (int step = 0; step < steps && !is_stopping(); ++step) {
      if (!trim_step()) break;
    }
    return {};
  } catch (const store::StoreFailure& failure) {
    session_->rollback();
    return std::unexpected(failure.error);
  }
}

// False: there is nothing to remove, or it could not be.
bool Clock::trim_step() {
  if (options_.event_retention.count() == 0) return false;
  core::Unit unit(*session_);
  const auto before_ms = session_->begin(unit) - options_.event_retention.count();
  const auto oldest = session_->oldest_event();
  session_->rollback();
  if (!oldest || *oldest >= before_ms) return false;
  return run_now([before_ms](core::Unit& changed, core::Context&) {
    changed.trim_events(before_ms);
    return engine::Outcome::keep;
  });
}

bool Clock::is_stopping() {
  std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace flowfabric::engine
