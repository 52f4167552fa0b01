#include "server/ending.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace flowfabric::server {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The time to end for a server whose disk has failed.
constexpr milliseconds kGraceAfterFailure{3000};
// The extra time beyond the grace. The engine and the traces need a part of it when clients have used up the
// grace.
constexpr milliseconds kBeyondGrace{2000};

timespec from_now(steady_clock::time_point until) {
  const auto left = std::max(until - steady_clock::now(), steady_clock::duration::zero());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  return {.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
}

}  // namespace

Ending::Ending(Log& log, milliseconds grace) : log_(log), grace_(grace) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { watch(); });
}

Ending::~Ending() {
  is_over_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it
  thread_.join();
}

void Ending::store_has_failed(const Error& why) {
  log_.error(
      why.to_string() +
      fmt::format(" This process refuses everything from now on, and ends with exit code {}.", kDiskFailed));
  store_failed_ = true;
  std::lock_guard lock(mutex_);
  if (!is_asked_) kill(getpid(), SIGTERM);
}

bool Ending::wait_for(milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return is_asked_; });
}

steady_clock::time_point Ending::grace_ends() const {
  std::lock_guard lock(mutex_);
  return grace_ends_;
}

milliseconds Ending::grace_left() const {
  return std::max(std::chrono::ceil<milliseconds>(grace_ends() - steady_clock::now()), milliseconds(0));
}

milliseconds Ending::grace() const {
  return store_failed_ ? std::min(grace_, kGraceAfterFailure) : grace_;
}

void Ending::watch() {
  int signal = 0;
  while (sigwait(&signals_, &signal) != 0) {
  }
  if (is_over_) return;
  {
    std::lock_guard lock(mutex_);
    grace_ends_ = steady_clock::now() + grace();
    is_asked_ = true;
  }
  changed_.notify_all();
  for (;;) {
    const auto time = from_now(grace_ends() + kBeyondGrace);
    const bool came = sigtimedwait(&signals_, nullptr, &time) > 0;
    if (is_over_) return;
    if (came) _exit(kFailed);
    if (errno == EAGAIN) end_by_force();
  }
}

void Ending::end_by_force() {
  const int code = store_failed_ ? kDiskFailed : kForced;
  log_.last_words(fmt::format(
      "The grace period is over, and the process is still {}: it is ended now, with exit code {}. "
      "Everything that was acknowledged is stored.",
      stage_.load(), code));
  _exit(code);
}

}  // namespace flowfabric::server
