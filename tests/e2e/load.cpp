#include "e2e/load.h"

#include <stdexcept>

#include "e2e/waiting.h"

namespace flowfabric::e2e {

namespace {

constexpr int kWorkers = 4;
constexpr int kSubmitters = 2;
constexpr int kWindow = 16;
// More waits for the workers.
constexpr std::int64_t kBacklog = 200;

// Several loads on one database submit different executions.
std::atomic<int> next_number{0};

Engine opened(const std::string& url) {
  auto engine = Engine::open(url);
  if (!engine) throw std::runtime_error(engine.error().to_string());
  return *std::move(engine);
}

}  // namespace

Load::Load(const std::string& url, const std::string& name)
    : engine_(opened(url)), workload_(engine_, name, [this](const std::string& line) { note(line); }) {
  for (int i = 0; i < kSubmitters; ++i) submitters_.emplace_back([this] { submit(); });
  for (int i = 0; i < kWorkers; ++i) workers_.emplace_back([this, i] { workload_.work(i); });
}

Load::~Load() {
  stop();
}

void Load::submit() {
  while (submitting_ && !workload_.is_stopping()) {
    if (open().value_or(kBacklog) >= kBacklog) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    std::vector<int> numbers;
    for (int i = 0; i < kWindow; ++i) numbers.push_back(next_number++);
    workload_.submit(numbers);
  }
}

void Load::note(const std::string& line) {
  std::lock_guard lock(mutex_);
  const auto complaint = ledger_.note(line);
  if (!complaint.empty()) complaints_.push_back(complaint);
}

bool Load::goes_on(std::size_t more) {
  const auto enough = workload_.completions() + more;
  return wait_until([&] { return workload_.completions() >= enough; }, std::chrono::seconds(20));
}

std::optional<std::int64_t> Load::open() {
  std::int64_t open = 0;
  for (const auto& lane : kLanes) {
    const auto counts = engine_.call(CountLane{.lane_id = lane});
    if (!counts) return std::nullopt;
    for (const auto& [state, count] : *counts) {
      if (state != PublicState::completed && state != PublicState::failed) open += count;
    }
  }
  return open;
}

void Load::stop_submitting() {
  submitting_ = false;
  for (auto& thread : submitters_) thread.join();
  submitters_.clear();
}

bool Load::finish() {
  stop_submitting();
  const bool ended =
      wait_until([&] { return open() == 0; }, std::chrono::seconds(20), std::chrono::milliseconds(50));
  stop();
  return ended;
}

void Load::stop() {
  workload_.stop();
  for (auto* threads : {&submitters_, &workers_}) {
    for (auto& thread : *threads) thread.join();
    threads->clear();
  }
}

Ledger Load::ledger() const {
  std::lock_guard lock(mutex_);
  return ledger_;
}

std::vector<std::string> Load::complaints() const {
  std::lock_guard lock(mutex_);
  return complaints_;
}

}  // namespace flowfabric::e2e
