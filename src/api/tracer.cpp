#include "api/tracer.h"

#include <algorithm>
#include <charconv>

#include "api/json.h"
#include "api/trace.h"

namespace flowfabric::api {

namespace {

constexpr std::chrono::milliseconds kFirstPause{500};
constexpr std::chrono::milliseconds kLongestPause{30'000};

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

bool may_try_again(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// `{"partialSuccess":{"rejectedSpans":"3"}}`
std::uint64_t rejected_by(const std::string& answer) {
  const auto json = Json::parse(answer);
  if (!json || json->root().kind() != JsonView::Kind::object) return 0;
  for (const auto member : json->root()) {
    if (member.key() != "partialSuccess" || member.kind() != JsonView::Kind::object) continue;
    for (const auto part : member) {
      if (part.key() != "rejectedSpans") continue;
      std::uint64_t count = 0;
      const auto text = part.text();
      std::from_chars(text.data(), text.data() + text.size(), count);
      return count;
    }
  }
  return 0;
}

}  // namespace

Tracer::Tracer(TracerOptions options)
    : options_([&] {
        options.endpoint = without_slash(std::move(options.endpoint));
        return std::move(options);
      }()),
      instance_(new_span_id()),
      thread_([this] { loop(); }) {}

Tracer::~Tracer() {
  stop(std::chrono::milliseconds(0));
}

void Tracer::describe_with(std::function<Result<ExecutionSnapshot>(const ExecutionId&)> describe) {
  std::lock_guard lock(mutex_);
  describe_ = std::move(describe);
}

void Tracer::push(Item item) {
  std::lock_guard lock(mutex_);
  if (stopping_ || queue_.size() >= options_.max_queued) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(item));
  if (queue_.size() == options_.max_batch) changed_.notify_all();
}

void Tracer::add(Span span) {
  push(std::move(span));
}

void Tracer::add(std::vector<EndedAttempt> attempts) {
  for (auto& attempt : attempts) push(std::move(attempt));
}

void Tracer::stop(std::chrono::milliseconds grace) {
  {
    std::lock_guard lock(mutex_);
    until_ = std::min(until_, std::chrono::steady_clock::now() + grace);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Tracer::must_end_by(std::chrono::steady_clock::time_point until) {
  std::lock_guard lock(mutex_);
  until_ = std::min(until_, until);
}

TracerStats Tracer::stats() const {
  std::lock_guard lock(mutex_);
  return {.exported = exported_, .dropped = dropped_, .queued = queue_.size()};
}

bool Tracer::is_over() {
  std::lock_guard lock(mutex_);
  return stopping_ && std::chrono::steady_clock::now() >= until_;
}

// The timeout of one request, bounded by the time that is left.
std::chrono::milliseconds Tracer::patience() {
  std::lock_guard lock(mutex_);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
  return std::clamp(left, std::chrono::milliseconds(1), options_.timeout);
}

std::deque<Tracer::Item> Tracer::take() {
  std::unique_lock lock(mutex_);
  const auto is_full = [&] { return stopping_ || queue_.size() >= options_.max_batch; };
  changed_.wait_for(lock, options_.interval, is_full);
  std::deque<Item> taken;
  while (!queue_.empty() && taken.size() < options_.max_batch) {
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return taken;
}

void Tracer::loop() {
  for (;;) {
    auto items = take();
    if (items.empty()) {
      std::lock_guard lock(mutex_);
      if (stopping_ && queue_.empty()) return;
      continue;
    }
    deliver(spans_of(std::move(items)));
  }
}

std::vector<Span> Tracer::spans_of(std::deque<Item> items) {
  std::function<Result<ExecutionSnapshot>(const ExecutionId&)> describe;
  {
    std::lock_guard lock(mutex_);
    describe = describe_;
  }
  std::vector<Span> spans;
  for (auto& item : items) {
    if (auto* span = std::get_if<Span>(&item)) {
      spans.push_back(std::move(*span));
      continue;
    }
    const auto& attempt = std::get<EndedAttempt>(item);
    // Without its trace, the span would appear in the wrong place.
    if (!describe || is_over()) {
      ++dropped_;
    } else if (const auto execution = describe(attempt.execution_id); !execution) {
      ++dropped_;
    } else if (auto made = span_of(attempt, *execution)) {
      spans.push_back(*std::move(made));
    }
  }
  return spans;
}

void Tracer::tell(bool works, const std::string& why) {
  if (works == std::exchange(works_, works) || !options_.notice) return;
  options_.notice(works ? "Traces are sent again to " + options_.endpoint + "."
                        : "Traces cannot be sent to " + options_.endpoint + ": " + why +
                              " What there is no room for meanwhile is dropped.");
}

Tracer::Sent Tracer::send(const std::string& body, std::size_t count) {
  const auto timeout = patience();
  if (timeout < options_.timeout) client_.reset();
  if (!client_) {
    auto connected = http::Client::connect(options_.endpoint, {.timeout = timeout});
    if (!connected) {
      tell(false, connected.error().to_string());
      return Sent::try_again;
    }
    client_ = *std::move(connected);
  }
  const auto answer = client_->send({.method = "POST",
                                     .path = "/v1/traces",
                                     .headers = {{"content-type", "application/json"}},
                                     .body = body});
  if (!answer) {
    client_.reset();
    tell(false, answer.error().to_string());
    return Sent::try_again;
  }
  const bool taken = answer->status >= 200 && answer->status < 300;
  tell(taken, "it answers with status " + std::to_string(answer->status) + ".");
  if (!taken) return may_try_again(answer->status) ? Sent::try_again : Sent::refused;
  const auto rejected = std::min<std::uint64_t>(rejected_by(answer->body), count);
  exported_ += count - rejected;
  dropped_ += rejected;
  return Sent::yes;
}

// Returns false if another try is pointless.
bool Tracer::wait_to_try_again(std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  // A stop does not wait for a collector that is away.
  if (!stopping_) changed_.wait_for(lock, pause, [&] { return stopping_; });
  if (!stopping_) return true;
  const auto soon = std::min(until_, std::chrono::steady_clock::now() + kFirstPause);
  lock.unlock();
  std::this_thread::sleep_until(soon);
  return std::chrono::steady_clock::now() < until_;
}

void Tracer::deliver(const std::vector<Span>& spans) {
  if (spans.empty()) return;
  const auto body = otlp_json(spans, instance_);
  auto pause = kFirstPause;
  while (!is_over()) {
    const auto sent = send(body, spans.size());
    if (sent == Sent::yes) return;
    if (sent == Sent::refused || !wait_to_try_again(pause)) break;
    pause = std::min(pause * 2, kLongestPause);
  }
  dropped_ += spans.size();
}

}  // namespace flowfabric::api
