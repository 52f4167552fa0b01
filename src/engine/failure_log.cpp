#include "engine/failure_log.h"

namespace flowfabric::engine {

bool FailureLog::is_news(const std::string& about, SteadyTime now) {
  std::lock_guard lock(mutex_);
  if (now - forgot_at_ >= kBetween) {
    forgot_at_ = now;
    std::erase_if(told_at_, [&](const auto& told) { return now - told.second >= kBetween; });
  }
  const auto [told, is_first] = told_at_.try_emplace(about, now);
  if (!is_first && now - told->second < kBetween) return false;
  told->second = now;
  return true;
}

void FailureLog::add(const std::string& rule, const std::string& about, const Error& error, SteadyTime now) {
  if (!tell_ || !is_news(about, now)) return;
  const auto what = about.empty() ? "The clock could not look for what is due"
                                  : "The clock's rule " + rule + " failed on " + about;
  tell_(what + ": " + error.to_string());
}

}  // namespace flowfabric::engine
