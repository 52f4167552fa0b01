#include "e2e/server_child.h"

#include <unistd.h>

#include <csignal>
#include <thread>

#include "e2e/workload.h"

namespace flowfabric::e2e {

namespace {

constexpr int kWorkers = 16;
constexpr int kSubmitters = 2;
constexpr int kWindow = 64;

// One write of less than PIPE_BUF bytes: lines of several threads do not mix, and none is cut.
void say(int pipe, const std::string& line) {
  const auto text = line + "\n";
  if (write(pipe, text.data(), text.size()) < 0) _exit(2);
}

// The submitters take turns.
void submit_all(Workload& workload, int submitter, int executions, bool downwards) {
  for (int first = submitter * kWindow; first < executions && !workload.is_stopping();
       first += kSubmitters * kWindow) {
    std::vector<int> numbers;
    for (int i = first; i < std::min(first + kWindow, executions); ++i) {
      numbers.push_back(downwards ? executions - 1 - i : i);
    }
    workload.submit(numbers);
  }
}

void wait_for_sigterm() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  int got = 0;
  sigwait(&signals, &got);
}

// Before any thread is made, because they inherit it.
void block_sigterm() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

int run_server(const std::string& url, const std::string& name, int executions, int pipe) {
  block_sigterm();
  auto engine = Engine::open(url);
  if (!engine) {
    say(pipe, "! " + engine.error().to_string());
    return 1;
  }
  Workload workload(*engine, name, [pipe](const std::string& line) { say(pipe, line); });
  std::vector<std::thread> threads;
  for (int i = 0; i < kSubmitters; ++i) {
    threads.emplace_back([&, i] { submit_all(workload, i, executions, name == "down"); });
  }
  for (int i = 0; i < kWorkers; ++i) threads.emplace_back([&, i] { workload.work(i); });
  wait_for_sigterm();
  workload.stop();
  for (auto& thread : threads) thread.join();
  return 0;
}

}  // namespace flowfabric::e2e
