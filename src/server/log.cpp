#include "server/log.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "api/json.h"
#include "model/describe.h"
#include "model/text.h"

namespace flowfabric::server {

namespace {

constexpr std::chrono::duration<int, std::milli> kPatienceAtTheEnd{100};

std::string timestamp() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto ms = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(now)), ms);
}

}  // namespace

std::string Log::line_of(LogLevel level, std::string_view text) const {
  if (format_ == LogFormat::text) return fmt::format("{} {} {}", timestamp(), enum_name(level), text);
  api::JsonWriter out;
  out.object().field("time", timestamp()).field("level", enum_name(level)).field("message", text).end();
  return out.take();
}

void Log::say(LogLevel level, std::string_view text) {
  if (level >= least_) write(line_of(level, text));
}

void Log::record(std::string_view json) {
  // The time goes into the same object.
  api::JsonWriter time;
  time.value(timestamp());
  write(fmt::format("{{\"time\":{},{}", time.text(), json.substr(1)));
}

void Log::last_words(std::string_view text) {
  std::unique_lock lock(mutex_, kPatienceAtTheEnd);
  pollfd one{STDERR_FILENO, POLLOUT, 0};
  if (!lock || poll(&one, 1, kPatienceAtTheEnd.count()) <= 0) return;
  const auto line = one_line(line_of(LogLevel::error, text)) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// The one place that writes lines: any text becomes exactly one line.
void Log::write(std::string_view text) {
  const auto line = one_line(text) + '\n';
  std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stderr);  // a failed write is ignored
}

}  // namespace flowfabric::server
