// Conditions as JSON from outside, and signals that arrive for them. The input is the JSON up to the first
// line feed; behind it, each four bytes are a signal: which waitpoint, which name, which source, which id.
#include "core/suspension/resume_condition.h"

#include "model/condition_json.h"
#include "support/condition_definition.h"
#include "targets.h"

namespace flowfabric::fuzz {

namespace {

using core::ArrivedSignal;

constexpr std::size_t kMostSignals = 32;

// One of the texts, or one that is none of them.
std::string choose(const std::vector<std::string>& texts, char byte) {
  const auto index = static_cast<unsigned char>(byte) % (texts.size() + 1);
  return index < texts.size() ? texts[index] : "another";
}

ArrivedSignal signal_from(std::string_view bytes, const ResumeCondition& condition,
                          const std::vector<std::string>& keys) {
  ArrivedSignal signal;
  signal.waitpoint_key = choose(keys, bytes[0]);
  signal.signal_name = choose(core::required_names(condition, signal.waitpoint_key), bytes[1]);
  signal.source_type = bytes[2] & 1 ? "type" : "type:a";
  signal.source_identity = bytes[2] & 2 ? "a:b" : "b";
  signal.signal_id.uuid.bytes[0] = static_cast<std::uint8_t>(bytes[3]);
  // One waitpoint has one id.
  const auto place = std::ranges::find(keys, signal.waitpoint_key) - keys.begin();
  signal.waitpoint_id.uuid.bytes[0] = static_cast<std::uint8_t>(place);
  signal.waitpoint_id.uuid.bytes[1] = static_cast<std::uint8_t>(place >> 8);
  return signal;
}

std::vector<ArrivedSignal> signals_from(std::string_view bytes, const ResumeCondition& condition) {
  const auto keys = core::keys_of(condition);
  std::vector<ArrivedSignal> signals;
  for (std::size_t i = 0; i + 4 <= bytes.size() && signals.size() < kMostSignals; i += 4) {
    signals.push_back(signal_from(bytes.substr(i, 4), condition, keys));
  }
  return signals;
}

// It resumes exactly when the definition says so, and forgets nothing on the way.
void check_evaluation(const ResumeCondition& condition, const std::vector<ArrivedSignal>& signals) {
  core::Satisfied satisfied;
  std::vector<ArrivedSignal> history;
  for (const auto& signal : signals) {
    const auto before = satisfied;
    const auto effect = core::deliver(condition, satisfied, signal);
    history.push_back(signal);
    const bool resumes = effect == SignalEffect::resume_condition_satisfied;
    require(resumes == tests::holds(condition, history), "the condition is met as it is defined");
    require(std::ranges::includes(satisfied, before), "nothing is taken back");
    require(core::is_satisfier(effect) == (satisfied != before), "a satisfier adds something");
    require(core::is_matched(effect) || !core::is_satisfier(effect), "a satisfier is a match");
    if (resumes) return;
  }
}

}  // namespace

void resume_condition(std::string_view input) {
  const auto end = std::min(input.find('\n'), input.size());
  const auto condition = condition_from_json(input.substr(0, end));
  if (!condition) {
    require(condition.error().code == ErrorCode::invalid_input, "what is wrong is the input");
    return;
  }
  const auto json = to_json(*condition);
  const auto again = condition_from_json(json);
  require(again && *again == *condition, "what was read is written so that it can be read");
  require(to_json(*again) == json, "there is one way to write it");
  core::needs_deadline(*condition);
  const auto signals = signals_from(input.substr(std::min(end + 1, input.size())), *condition);
  if (core::check(*condition)) check_evaluation(*condition, signals);
}

}  // namespace flowfabric::fuzz
