#include "disk/load_child.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "disk/marks.h"
#include "e2e/kill_child.h"
#include "flowfabric/engine.h"
#include "model/random.h"
#include "store/sqlite/sizes.h"

namespace flowfabric::disk {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::atomic<bool> was_told_to_end{false};

// Errors of the environment, not of the request.
bool is_trouble(ErrorCode code) {
  switch (code) {
    case ErrorCode::transport:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
    case ErrorCode::resource_exhausted:
    case ErrorCode::corruption:
    case ErrorCode::invariant_violation:
      return true;
    default:
      return false;
  }
}

// The failures so far.
struct Trouble {
  std::atomic<bool> was_refused{false};
  std::atomic<bool> was_told{false};  // that the store is in trouble
  std::atomic<bool> store_failed{false};

  // To be asked when a call begins, for when it was answered.
  struct Then {
    bool was_told;
    bool store_failed;
  };
  Then now() const { return {was_told, store_failed}; }
  static void note_answer(Then then, const char* what) {
    if (then.was_told) mark(std::string("Y ") + what);
    if (then.store_failed) mark(std::string("Z ") + what);
  }
  // Whoever comes after store_failed is told of the disk, not of what a reader makes of a dropped cache.
  static void note_refusal(Then then, const Error& error) {
    if (then.store_failed && error.code != ErrorCode::unavailable) mark("W " + error.to_string());
  }
};

class Load {
 public:
  Load(Engine& engine, const Plan& plan, Trouble& trouble)
      : engine_(engine), plan_(plan), trouble_(trouble), random_(seed_for(0)) {}

  void run() {
    bool is_busy = random_() % 2 == 0;
    const int phases = plan_.is_short ? 4 : 1000;
    for (int phase = 0; phase < phases && !was_told_to_end; ++phase, is_busy = !is_busy) {
      number_ = phase;
      // A short one does always the same, however slow the machine is.
      ends_at_ = Clock::now() + std::chrono::milliseconds(plan_.is_short ? 5000 : 15 + random_() % 90);
      left_ = plan_.is_short ? (is_busy ? 24 : 3) : 150;
      submitting_ = 2;
      is_busy ? busy() : quiet();
      if (plan_.pauses && is_busy && phase > 0) return pause();
    }
    if (plan_.is_short && trouble_.was_refused) try_again();
  }

 private:
  unsigned seed_for(int thread) const {
    return plan_.seed * 1009u + static_cast<unsigned>(plan_.round * 10007 + number_ * 101 + thread);
  }
  bool goes_on() const {
    return !was_told_to_end && Clock::now() < ends_at_ && (!plan_.is_short || submitting_ > 0);
  }

  void busy() {
    std::vector<std::thread> threads;
    for (int i = 1; i <= 2; ++i) threads.emplace_back([this, i] { submit_some(seed_for(i)); });
    for (int i = 3; i <= 4; ++i) threads.emplace_back([this, i] { work(seed_for(i)); });
    threads.emplace_back([this] { look_around(seed_for(5)); });
    for (auto& thread : threads) thread.join();
  }

  // The trouble is over, or for ever.
  void try_again() {
    Random ids(seed_for(7));
    std::mt19937 random(seed_for(7));
    for (const auto until = Clock::now() + 700ms; Clock::now() < until; std::this_thread::sleep_for(10ms)) {
      const auto request = execution(random, ids);
      mark("Q " + request.execution_id->to_string());
      const auto answer = ask("create", request);
      note(*request.execution_id, answer);
      if (answer) return mark("G");
    }
  }

  // Ends with many calls at once, so that the last ones are answered while the tables are behind. A moment
  // later the tables have caught up, without a sync of them.
  void pause() {
    std::vector<std::thread> threads;
    left_ = 120;
    for (int i = 8; i <= 10; ++i) threads.emplace_back([this, i] { submit_at_once(seed_for(i)); });
    for (auto& thread : threads) thread.join();
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 12'000));
    mark("P");
    while (!was_told_to_end) std::this_thread::sleep_for(1ms);
  }

  // One call at a time.
  void quiet() {
    std::mt19937 random(seed_for(6));
    Random ids(seed_for(6));
    std::this_thread::sleep_for(2ms);
    while (goes_on() && left_-- > 0) {
      const auto request = execution(random, ids);
      mark("Q " + request.execution_id->to_string());
      note(*request.execution_id, ask("create", request));
      if (random() % 3 == 0) set_tag(*request.execution_id);
      if (random() % 2 == 0) work_once(random, 1, 0);
      if (random() % 3 == 0) look_at(*request.execution_id);
      if (random() % 4 == 0) std::this_thread::sleep_for(1ms);
    }
  }

  void submit_some(unsigned seed) {
    std::mt19937 random(seed);
    Random ids(seed);
    while (goes_on() && left_ > 0) {
      for (const auto& id : submit_together(random, ids)) {
        if (random() % 6 == 0) set_tag(id);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
    --submitting_;
  }

  void submit_at_once(unsigned seed) {
    std::mt19937 random(seed);
    Random ids(seed);
    while (!was_told_to_end && left_ > 0) submit_together(random, ids);
  }

  std::vector<ExecutionId> submit_together(std::mt19937& random, Random& ids) {
    std::vector<std::pair<ExecutionId, std::future<Result<Creation>>>> answers;
    const auto then = trouble_.now();
    const auto count = 1 + random() % 8;
    for (unsigned i = 0; i < count; ++i) {
      auto request = execution(random, ids);
      const auto id = *request.execution_id;
      mark("Q " + id.to_string());
      answers.emplace_back(id, engine_.submit(std::move(request)));
    }
    left_ -= static_cast<int>(count);
    std::vector<ExecutionId> asked;
    for (auto& [id, future] : answers) {
      const auto answer = future.get();
      if (answer) Trouble::note_answer(then, "create");
      if (!answer) note_refusal(then, answer.error());
      note(id, answer);
      asked.push_back(id);
    }
    return asked;
  }

  void work(unsigned seed) {
    std::mt19937 random(seed);
    while (goes_on()) work_once(random, 8, 4);
  }

  void look_around(unsigned seed) {
    std::mt19937 random(seed);
    while (goes_on()) {
      if (random() % 3 == 0) {
        const auto page = ask("list", ListExecutions{.limit = 20});
        for (std::size_t i = 0; page && i < page->executions.size(); ++i)
          mark("V " + page->executions[i].execution_id.to_string() + " 0");
      }
      std::optional<ExecutionId> id;
      {
        std::lock_guard lock(mutex_);
        if (!made_.empty()) id = made_[made_.size() - 1 - random() % std::min<std::size_t>(made_.size(), 40)];
      }
      if (id) look_at(*id);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    }
  }

  CreateExecution execution(std::mt19937& random, Random& ids) const {
    const bool is_large = random() % 80 == 0;
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    return {
        .execution_id = ExecutionId{static_cast<std::uint16_t>(random() % 256), mint_uuid(now.count(), ids)},
        .lane_id = random() % 2 ? "left" : "right",
        .execution_kind = "disk",
        .input = std::string(is_large ? 100'000 + random() % 60'000 : random() % 600, 'x'),
        .tags = {{"test.round", std::to_string(plan_.round)}},
        .policy = {.retry_policy =
                       RetryPolicy{.max_retries = 2, .backoff = FixedBackoff{plan_.pauses ? 400u : 5u}}}};
  }

  void note(const ExecutionId& id, const Result<Creation>& answer) {
    const auto text = id.to_string();
    if (answer) {
      mark("C " + text);
      std::lock_guard lock(mutex_);
      made_.push_back(id);
      return;
    }
    const auto code = answer.error().code;
    if (code != ErrorCode::unavailable && code != ErrorCode::timeout) mark("N " + text);
  }

  void set_tag(const ExecutionId& id) {
    const auto text = id.to_string();
    if (ask("tag", SetTags{.execution_id = id, .tags = {{e2e::kMark, text}}})) mark("M " + text);
  }

  void look_at(const ExecutionId& id) {
    if (const auto seen = ask("describe", DescribeExecution{id}))
      mark("V " + id.to_string() + " " + std::to_string(seen->lease_epoch));
  }

  void work_once(std::mt19937& random, std::uint32_t most, std::int64_t wait_ms) {
    const auto tasks = ask("claim", ClaimTasks{.worker_id = "w" + std::to_string(plan_.round),
                                               .lanes = {"left", "right"},
                                               .max_tasks = most,
                                               .lease_ttl_ms = 1000,
                                               .wait_ms = wait_ms});
    if (!tasks) return;
    for (const auto& task : *tasks) mark("T" + tail(task));
    for (const auto& task : *tasks) end(task, random() % 100);
  }

  static std::string tail(const ClaimedTask& task) {
    return " " + task.execution_id.to_string() + " " + std::to_string(*task.fence.lease_epoch);
  }

  void end(const ClaimedTask& task, std::uint64_t roll) {
    const auto id = task.execution_id.to_string();
    if (roll < 5) return;  // forgets it: the lease will be lost
    if (roll < 75) {
      const auto result = e2e::result_of(id, *task.fence.lease_epoch);
      if (!ask("complete",
               CompleteExecution{.execution_id = task.execution_id, .fence = task.fence, .result = result}))
        return;
      mark("D" + tail(task));
      if (roll >= 10) return;
      mark("A " + id);
      if (ask("replay", ReplayExecution{.execution_id = task.execution_id, .reason = "once more"}))
        mark("R " + id);
      return;
    }
    const auto failed =
        ask("fail",
            FailExecution{.execution_id = task.execution_id, .fence = task.fence, .reason = "on purpose"});
    if (failed) mark("F" + tail(task) + (failed->retry_scheduled ? " 1" : " 0"));
  }

  template <class Request>
  Result<typename Request::Answer> ask(const char* what, Request request) {
    const auto then = trouble_.now();
    auto answer = engine_.call(std::move(request));
    if (!answer) note_refusal(then, answer.error());
    if (answer) Trouble::note_answer(then, what);
    return answer;
  }

  void note_refusal(Trouble::Then then, const Error& error) {
    if (!is_trouble(error.code)) return;
    mark("X " + error.to_string());
    Trouble::note_refusal(then, error);
    trouble_.was_refused = true;
    // A reader may meet a dropped cache before the failed sync has returned, and anybody can know of it.
    if (error.code != ErrorCode::corruption) trouble_.was_told = true;
    std::this_thread::sleep_for(1ms);  // who is refused comes again, and not at once
  }

  Engine& engine_;
  const Plan plan_;
  Trouble& trouble_;
  int number_{0};
  std::mt19937 random_;
  Clock::time_point ends_at_;
  std::atomic<int> left_{0};  // to be made in this phase
  std::atomic<int> submitting_{0};
  std::mutex mutex_;
  std::vector<ExecutionId> made_;
};

// Short logs, so that everything that long logs cause happens within moments.
void shorten_logs(const Plan& plan) {
  std::mt19937 random(plan.seed);
  auto& sizes = store::sqlite::sizes();
  sizes.checkpoint_pages = static_cast<int>(plan.is_short ? 40 + random() % 40 : 60 + random() % 200);
  sizes.redo_turn_bytes =
      static_cast<std::int64_t>(plan.is_short ? 6'000 + random() % 6'000 : 20'000 + random() % 120'000);
  // Before a file's turn comes the tables are synced. Here that is not to help.
  if (plan.pauses) sizes.redo_turn_bytes = 4 << 20;
}

}  // namespace

std::string Plan::to_string() const {
  return std::to_string(seed) + " " + std::to_string(round) + " " + std::to_string(is_short ? 1 : 0) + " " +
         std::to_string(pauses ? 1 : 0);
}

Plan Plan::parse(const std::string& text) {
  Plan plan;
  int is_short = 0, pauses = 0;
  std::istringstream(text) >> plan.seed >> plan.round >> is_short >> pauses;
  plan.pauses = pauses == 1;
  plan.is_short = is_short == 1;
  return plan;
}

int run_load(const std::string& url, const std::string& text, int pipe) {
  const auto plan = Plan::parse(text);
  std::signal(SIGTERM, [](int) { was_told_to_end = true; });
  shorten_logs(plan);
  Trouble trouble;
  EngineOptions options;
  options.operation_deadline = 10s;  // however slow the machine is
  options.store_failed = [&](const Error& error) {
    mark("S " + error.to_string());
    trouble.store_failed = trouble.was_told = trouble.was_refused = true;
  };
  auto engine = Engine::open(url, std::move(options));
  if (!engine) {
    mark("X open: " + engine.error().to_string());
    return write(pipe, "closed\n", 7) == 7 ? 3 : 4;
  }
  mark("O");
  if (write(pipe, "open\n", 5) != 5) return 4;
  Load(*engine, plan, trouble).run();
  mark("E");
  engine->stop(2s);
  return 0;
}

}  // namespace flowfabric::disk
