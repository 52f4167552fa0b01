// Conditions that a program has built: any tree, any bytes in its texts. What passes the check can be stored.
#include "core/suspension/resume_condition.h"
#include "model/condition_json.h"
#include "targets.h"

namespace flowfabric::fuzz {

namespace {

constexpr int kDeepest = 6;  // one may be too deep

class Builder {
 public:
  explicit Builder(std::string_view bytes) : bytes_(bytes) {}

  ResumeCondition condition(int depth = 0) {
    const auto kind = byte() % (depth < kDeepest ? 5 : 4);
    if (kind == 0) return {SingleSignal{text(), matcher()}};
    if (kind == 1) return {OperatorOnly{}};
    if (kind == 2) return {TimeoutOnly{}};
    if (kind == 3) return {CountOf{byte(), static_cast<CountKind>(byte() % 3), matcher(), texts()}};
    AllOf all;
    for (auto left = byte() % 5; left > 0; --left) all.members.push_back(condition(depth + 1));
    return {all};
  }

 private:
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }
  std::string text() {
    const std::size_t length = byte();
    const auto taken = bytes_.substr(0, length);
    bytes_.remove_prefix(taken.size());
    return std::string(taken);
  }
  std::vector<std::string> texts() {
    std::vector<std::string> all(byte() % 5);
    for (auto& each : all) each = text();
    return all;
  }
  SignalMatcher matcher() { return byte() % 2 == 0 ? SignalMatcher{} : SignalMatcher{text()}; }

  std::string_view bytes_;
};

}  // namespace

void condition_tree(std::string_view input) {
  const auto condition = Builder(input).condition();
  if (!core::check(condition)) return;
  const auto stored = condition_from_json(to_json(condition));
  require(stored && *stored == condition, "what may be waited for is what is stored");
}

}  // namespace flowfabric::fuzz
