// Sends spans to a collector (OTLP over HTTP), from a thread of its own. Adding a span never waits: if the
// queue is full, because the collector is slow or away, the span is dropped and counted.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "api/otlp.h"
#include "http/client.h"

namespace flowfabric::api {

struct TracerOptions {
  std::string endpoint;  // `http://host:4318`, without `/v1/traces`
  std::size_t max_queued{8192};
  std::size_t max_batch{512};
  std::chrono::milliseconds interval{1000};  // the longest wait of a span for others
  std::chrono::milliseconds timeout{5000};   // for the collector's answer
  std::function<void(const std::string&)>
      notice{};  // called when the collector fails, and when it works again
};

struct TracerStats {
  std::uint64_t exported{};
  std::uint64_t dropped{};
  std::uint64_t queued{};
};

class Tracer {
 public:
  explicit Tracer(TracerOptions options);
  ~Tracer();  // stops, at once

  void add(Span span);
  // For EngineOptions::attempts_ended. The tracer's thread reads the rest of the execution later.
  void add(std::vector<EndedAttempt> attempts);
  void describe_with(std::function<Result<ExecutionSnapshot>(const ExecutionId&)> describe);

  // Sends the queued spans within `grace`, and drops the rest.
  void stop(std::chrono::milliseconds grace);
  // Announces a stop: no request to the collector lasts beyond this time.
  void must_end_by(std::chrono::steady_clock::time_point until);

  TracerStats stats() const;

 private:
  using Item = std::variant<Span, EndedAttempt>;
  using Time = std::chrono::steady_clock::time_point;
  enum class Sent { yes, refused, try_again };

  void push(Item item);
  void loop();
  std::deque<Item> take();
  std::vector<Span> spans_of(std::deque<Item> items);
  void deliver(const std::vector<Span>& spans);
  Sent send(const std::string& body, std::size_t count);
  bool wait_to_try_again(std::chrono::milliseconds pause);
  bool is_over();
  std::chrono::milliseconds patience();
  void tell(bool works, const std::string& why);

  const TracerOptions options_;
  const std::string instance_;
  std::unique_ptr<http::Client> client_;  // used by the thread only
  bool works_{true};                      // the same; the collector took the last batch

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  std::function<Result<ExecutionSnapshot>(const ExecutionId&)> describe_;
  bool stopping_{false};
  Time until_{Time::max()};
  std::atomic<std::uint64_t> exported_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::thread thread_;
};

}  // namespace flowfabric::api
