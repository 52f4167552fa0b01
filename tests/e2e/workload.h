// Callers and workers that survive trouble: they repeat calls that are answered `unavailable` or `timeout`,
// and a lease that was lost meanwhile they give up. Every answer is said as a line of kill_child.h.
#pragma once

#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "flowfabric/engine.h"

namespace flowfabric::e2e {

// Where the work is submitted to.
inline const std::vector<std::string> kLanes{"left", "right"};

class Workload {
 public:
  using Say = std::function<void(const std::string& line)>;

  // The name is that of its workers. `say` may be called from several threads at once.
  Workload(Engine& engine, std::string name, Say say)
      : engine_(engine), name_(std::move(name)), say_(std::move(say)) {}

  // Submits the executions of these numbers. One that was submitted before, by anybody, is there once.
  void submit(const std::vector<int>& numbers);
  // Works until it is stopped.
  void work(int worker);

  void stop() { stopping_ = true; }
  bool is_stopping() const { return stopping_; }
  std::size_t completions() const { return completions_; }
  // The number of repeated calls.
  std::size_t repeats() const { return repeats_; }

 private:
  template <class Request>
  std::vector<Result<typename Request::Answer>> call_all(const std::vector<Request>& requests);
  // Until there is an answer that counts; absent: stopped.
  template <class Request>
  std::optional<Result<typename Request::Answer>> insist(const Request& request);
  std::vector<ClaimedTask> claim(const std::string& worker);
  void complete(const std::vector<ClaimedTask>& tasks);
  void fail(const ClaimedTask& task);
  void say_claimed(const ClaimedTask& task);
  template <class Answer>
  bool accepted(const Result<Answer>& answer);
  bool may_repeat(const Error& error);

  Engine& engine_;
  const std::string name_;
  const Say say_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> completions_{0};
  std::atomic<std::size_t> repeats_{0};
};

}  // namespace flowfabric::e2e
