#include "engine/clock.h"

#include <algorithm>
#include <future>
#include <latch>

#include "core/registry/unblock.h"
#include "engine/bulk.h"
#include "engine/cancel_members.h"
#include "engine/dead_worker.h"
#include "engine/due_operation.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

constexpr std::size_t kPage = 256;
// What is removed per look, beside what is due: enough to keep up, too little to slow the rest.
constexpr std::size_t kPurgePage = 300;
// After a look that ended by an exception (08 §3.2).
constexpr std::chrono::seconds kRestAfterException{5};
constexpr int kFailuresBeforeRest = 3;
constexpr std::uint64_t kCyclesOfRest = 10;
constexpr std::chrono::milliseconds kLongestSleep{750};
// Between two looks, so that a record that cannot be moved does not keep a core busy.
constexpr std::int64_t kShortestRestMs = 1;
// The store's clock may run faster than ours.
constexpr std::int64_t kClockMayDifferMs = 1000;
constexpr std::uint64_t kSpreadMs = 20;
constexpr int kMaxPages = 1000;
// After that without one, something keeps it from looking.
constexpr std::chrono::milliseconds kLongestLook{10'000};
// Up to 50 000 events per second of each kind.
constexpr std::chrono::seconds kTrimInterval{1};
constexpr int kTrimSteps = 50;

core::ClockScope scope_of(const EngineOptions& options) {
  core::ClockScope scope{.filter = options.scanner_filter, .off = {}};
  for (const auto& name : options.rules_off) {
    if (const auto rule = enum_from_name<core::Rule>(name)) scope.off.add(*rule);
  }
  return scope;
}

Error thrown_error(const char* what) {
  return {ErrorCode::unavailable, what, "What is due is looked for again; tell us if this goes on."};
}

}  // namespace

Clock::Clock(store::Store& store, Committers& committers, WaitingClaims& waiting,
             const EngineOptions& options)
    : session_(store.open_reader()),
      is_shared_(store.is_shared()),
      committers_(committers),
      waiting_(waiting),
      options_(options),
      scope_(scope_of(options)),
      failure_log_(options.failure),
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
    if (failed_by_rule_[i] > 0) stats.clock_errors[std::string(shown_rule(rule))] = failed_by_rule_[i];
  }
  stats.clock_is_on = options_.clock_interval.count() > 0;
  std::lock_guard lock(figures_mutex_);
  stats.clock_looks = looks_;
  stats.clock_lag_ms = lag_ms_;
  stats.clock_resting = resting_;
  stats.clock_restarts = restarts_;
  stats.clock_trouble = trouble_;
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
  trouble_.clear();
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

// What the step throws, as an error. Nothing of it may end the process, which is what an exception does that
// leaves a thread.
template <class Step>
std::optional<Error> Clock::attempt(Step step) {
  try {
    step();
    return std::nullopt;
  } catch (const store::StoreFailure& failure) {
    return failure.error;
  } catch (const core::MissingRecord& missing) {
    return damaged(missing);
  } catch (const std::exception& exception) {
    return thrown_error(exception.what());
  } catch (...) {
    return thrown_error("an exception without a text");
  }
}

void Clock::note_trouble(const Error& error) {
  {
    std::lock_guard lock(figures_mutex_);
    trouble_ = error.to_string();
  }
  failure_log_.add("", "", error);
}

// What concerns the store and not the record is told once for all.
void Clock::tell_failure(const RecordKey& key, core::Rule rule, const Error& error) {
  if (is_hopeless(error.code))
    failure_log_.add(std::string(shown_rule(rule)), shown(key), error);
  else
    failure_log_.add(std::string(shown_rule(rule)),
                     "what is due (" + std::string(error_name(error.code)) + ")", error);
}

store::AgendaQuestion Clock::question(std::vector<std::string> waiting_lanes) {
  std::lock_guard lock(mutex_);
  constexpr auto end_of_time = std::numeric_limits<std::int64_t>::max();
  const auto since = std::chrono::steady_clock::now() - anchor_;
  // The store's time is known from the last look. By then it will be looked at again.
  const auto now_ms = anchor_ms_ + std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  const bool is_known = anchor_ms_ > 0 && !options_.now_ms;
  const auto until_ms = is_known ? now_ms + options_.clock_interval.count() + kClockMayDifferMs : end_of_time;
  return {std::move(waiting_lanes), scope_, until_ms};
}

Result<store::Agenda> Clock::read_agenda() {
  const auto asked = question(is_shared_ ? waiting_.lanes() : std::vector<std::string>());
  std::lock_guard session_lock(session_mutex_);
  Result<store::Agenda> agenda;
  if (auto error = attempt([&] { agenda = session_->agenda(asked); })) {
    session_->rollback();
    return std::unexpected(*std::move(error));
  }
  std::lock_guard lock(figures_mutex_);
  lag_ms_ = agenda->next_due ? std::max<std::int64_t>(agenda->now_ms - *agenda->next_due, 0) : 0;
  return agenda;
}

// True: something was done, and the agenda is out of date.
Result<bool> Clock::act_on(const store::Agenda& agenda) {
  if (!agenda.offered.empty()) {
    std::vector<std::pair<Route, std::uint32_t>> offers;
    for (const auto& route : agenda.offered) {
      offers.emplace_back(route, std::numeric_limits<std::uint32_t>::max());
    }
    committers_.requeue(waiting_.wake(offers).operations);
  }
  const bool due = agenda.next_due && *agenda.next_due <= agenda.now_ms;
  // A page at a time, so that waiting claims are let go in between.
  const auto looked_at = due ? run_due(1) : Result<std::size_t>(0);
  if (!looked_at) return std::unexpected(looked_at.error());
  only_set_aside_is_due_ = due && *looked_at == 0 && has_set_aside();
  const auto now = std::chrono::steady_clock::now();
  const bool trims = options_.event_retention.count() > 0 && agenda.oldest_event && now >= next_trim_ &&
                     *agenda.oldest_event < agenda.now_ms - options_.event_retention.count();
  if (trims) {
    if (const auto trimmed = trim_events(kTrimSteps); !trimmed) return std::unexpected(trimmed.error());
    next_trim_ = std::chrono::steady_clock::now() + kTrimInterval;
  }
  return (due && !only_set_aside_is_due_) || trims;
}

// One that cannot be finished is not counted: /readyz tells when that goes on.
void Clock::look() {
  {
    // From here on a commit may set an earlier time, which must outlive the one that is worked out below.
    std::lock_guard lock(mutex_);
    next_rules_ = std::chrono::steady_clock::now() + options_.clock_interval;
  }
  const auto began = std::chrono::steady_clock::now();
  auto agenda = read_agenda();
  if (!agenda) return note_trouble(agenda.error());
  begin_look(began);
  const auto acted = act_on(*agenda);
  if (!acted) return note_trouble(acted.error());
  if (*acted) agenda = read_agenda();
  if (!agenda) return note_trouble(agenda.error());
  end_look();
  plan(*agenda);
}

void Clock::plan(const store::Agenda& agenda) {
  const auto now_ms = agenda.now_ms;
  const auto latest = now_ms + options_.clock_interval.count();
  auto next_ms = std::max(std::min(agenda.next_due.value_or(latest), latest), now_ms + kShortestRestMs);
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
    const bool rules_due = runs_rules && std::chrono::steady_clock::now() >= next_look();
    lock.unlock();
    const auto thrown = attempt([&] {
      let_go();
      if (rules_due) look();
    });
    if (thrown) recover(*thrown);
    lock.lock();
    // Announced before the waiting claims are looked at, so that none can slip in between unseen.
    sleeping_until_ = std::chrono::steady_clock::now() + kLongestSleep;
    lock.unlock();
    const auto expiry = waiting_.next_expiry();
    lock.lock();
    if (runs_rules) sleeping_until_ = std::min(sleeping_until_, next_look());
    if (expiry) sleeping_until_ = std::min(sleeping_until_, *expiry);
    // Notified when either of the two times has moved closer.
    if (!stopping_) wake_.wait_until(lock, sleeping_until_);
  }
}

// A look, or what was told of it, has thrown. It begins anew after a rest.
void Clock::recover(const Error& thrown) {
  static_cast<void>(attempt([&] {
    std::lock_guard session_lock(session_mutex_);
    session_->rollback();
  }));
  {
    std::lock_guard lock(mutex_);
    not_before_ = std::chrono::steady_clock::now() + kRestAfterException;
  }
  {
    std::lock_guard lock(figures_mutex_);
    ++restarts_;
  }
  static_cast<void>(attempt([&] { note_trouble(thrown); }));
}

std::vector<store::DueRecord> Clock::find_due() {
  core::Unit unit(*session_);
  const auto now = session_->begin(unit);
  std::erase_if(left_, [&](const auto& left) { return left.second.until_ms <= now; });
  // What is being left alone still stands at the head of the list: look past it.
  const auto set_aside = failures_.size() + left_.size();
  auto due = session_->due({.until_ms = now,
                            .scope = scope_,
                            .limit = kPage + set_aside,
                            .purge_limit = kPurgePage + failures_.size()});
  session_->rollback();
  for (const auto& [shown, error] : due.unreadable) {
    ++failed_;
    ++failed_by_rule_[static_cast<std::size_t>(core::Rule::none)];
    failure_log_.add(std::string(shown_rule(core::Rule::none)), shown, error);
  }
  some_are_unreadable_ = !due.unreadable.empty();
  std::erase_if(due.found, [&](const store::DueRecord& record) { return is_set_aside(record); });
  return std::move(due.found);
}

bool Clock::has_set_aside() {
  std::lock_guard lock(session_mutex_);
  return sets_aside();
}

bool Clock::sets_aside() const {
  return !failures_.empty() || !left_.empty() || some_are_unreadable_;
}

bool Clock::is_set_aside(const store::DueRecord& record) const {
  const auto failure = failures_.find(record.key);
  const auto left = left_.find(record.key);
  return (failure != failures_.end() && failure->second.skip_until > cycle_) ||
         (left != left_.end() && left->second.due_at_ms == record.due_at_ms);
}

// Something is due that was not found: another server, or another operation, holds it just now.
bool Clock::others_are_busy() {
  if (!is_shared_ || sets_aside()) return false;
  const auto agenda = session_->agenda(question({}));
  return agenda.next_due && *agenda.next_due <= agenda.now_ms;
}

void Clock::note_outcome(const store::DueRecord& record, const DueOutcome& outcome) {
  const auto& key = record.key;
  auto& through = through_at_[static_cast<std::size_t>(outcome.rule)];
  through = std::max(through, outcome.at);
  if (outcome.refusal) {
    ++failed_by_rule_[static_cast<std::size_t>(outcome.rule)];
    tell_failure(key, outcome.rule, *outcome.refusal);
    bool went_round = false;
    const auto thrown = attempt([&] { went_round = go_round_damage(key, outcome); });
    if (thrown) tell_failure(key, outcome.rule, *thrown);
    return note_success(key, went_round && !thrown);
  }
  if (outcome.rests_until_ms) {
    left_.insert_or_assign(key, Left{record.due_at_ms, *outcome.rests_until_ms});
  }
  if (outcome.is_foreign) {
    ++filtered_;
    return;
  }
  ++fired_[static_cast<std::size_t>(outcome.rule)];
  bool is_bulk = false;
  const auto thrown = attempt([&] { is_bulk = run_bulk(key); });
  if (thrown) {
    session_->rollback();
    ++failed_by_rule_[static_cast<std::size_t>(outcome.rule)];
    tell_failure(key, outcome.rule, *thrown);
    return note_success(key, false);
  }
  if (!is_bulk) note_success(key, true);
}

void Clock::note_success(const RecordKey& key, bool succeeded) {
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
bool Clock::run_bulk(const RecordKey& key) {
  const auto* job = key.key_of<BulkJob>();
  if (!job) return false;
  note_success(key, run_bulk_step(*session_, committers_, *job, options_));
  return true;
}

// One member of a cancelled flow, one worker, or one lease of a dead one, that cannot be read holds up nobody
// but itself.
bool Clock::go_round_damage(const RecordKey& key, const DueOutcome& outcome) {
  const bool hopeless = is_hopeless(outcome.refusal->code);
  const auto* worker = key.key_of<DeadWorker>();
  // Its leases may have met too many new records together.
  if (worker && (hopeless || outcome.refusal->code == ErrorCode::retry_exhausted)) {
    ++failed_;
    return offer_each(*session_, committers_, *worker, options_);
  }
  if (!hopeless) return false;
  if (const auto* flow = key.key_of<CancelBacklog>()) {
    ++failed_;
    return cancel_each(*session_, committers_, *flow, options_);
  }
  if (const auto* route = key.key_of<Route>()) {
    ++failed_;
    return run_now([route = *route](core::Unit& unit, core::Context& at) {
      core::unblock_unseen(unit, route, at);
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

void Clock::run_page(const std::vector<store::DueRecord>& page) {
  auto outcomes = std::make_shared<std::vector<DueOutcome>>(page.size());
  auto all = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(page.size()));
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < page.size(); ++i) {
    operations.push_back(
        due_operation(page[i].key, scope_, options_, [outcomes, all, i](const DueOutcome& outcome) {
          (*outcomes)[i] = outcome;
          all->count_down();
        }));
  }
  committers_.submit(std::move(operations));
  all->wait();
  for (std::size_t i = 0; i < page.size(); ++i) note_outcome(page[i], (*outcomes)[i]);
}

Result<std::size_t> Clock::run_due(int pages) {
  std::lock_guard lock(session_mutex_);
  std::size_t looked_at = 0;
  const auto error = attempt([&] {
    for (int i = 0; i < pages; ++i) {
      ++cycle_;
      const auto page = find_due();
      if (is_stopping()) break;
      if (page.empty()) {
        if (pages == 1 || !others_are_busy()) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(kShortestRestMs));
        continue;
      }
      run_page(page);
      looked_at += page.size();
      operations_ += page.size();
    }
  });
  if (!error) return looked_at;
  session_->rollback();
  return std::unexpected(*error);
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
  const auto error = attempt([&] {
    for (int step = 0; step < steps && !is_stopping(); ++step) {
      if (!trim_step()) break;
    }
  });
  if (!error) return {};
  session_->rollback();
  return std::unexpected(*error);
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
