#include "server/log.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "api/json.h"
#include "model/describe.h"

namespace flowfabric::server {

namespace {

std::string timestamp() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto ms = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(now)), ms);
}

}  // namespace

void Log::say(LogLevel level, std::string_view text) {
  if (level < least_) return;
  if (format_ == LogFormat::text) return write(fmt::format("{} {} {}", timestamp(), enum_name(level), text));
  api::JsonWriter out;
  out.object().field("time", timestamp()).field("level", enum_name(level)).field("message", text).end();
  write(out.take());
}

void Log::record(std::string_view json) {
  // Its time belongs into the same object.
  api::JsonWriter time;
  time.value(timestamp());
  write(fmt::format("{{\"time\":{},{}", time.text(), json.substr(1)));
}

void Log::write(const std::string& line) {
  std::lock_guard lock(mutex_);
  fmt::print(stderr, "{}\n", line);
}

}  // namespace flowfabric::server
