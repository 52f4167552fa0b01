#include "core/suspension/resume_condition.h"

#include <algorithm>

#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxDepth = 4;
constexpr std::size_t kMaxNodes = 256;
constexpr std::size_t kMaxNameLength = 256;

std::string member_path(const std::string& path, std::size_t index) {
  return (path.empty() ? "" : path + ".") + "members[" + std::to_string(index) + "]";
}

// Calls f(node, path) for every node but AllOf, from left to right.
template <class F>
void for_each_leaf(const ResumeCondition& condition, const std::string& path, const F& f) {
  const auto* all = std::get_if<AllOf>(&condition.node);
  if (!all) return f(condition, path);
  for (std::size_t i = 0; i < all->members.size(); ++i) {
    for_each_leaf(all->members[i], member_path(path, i), f);
  }
}

bool is_composite(const ResumeCondition& condition) {
  return std::holds_alternative<AllOf>(condition.node) || std::holds_alternative<CountOf>(condition.node);
}

std::unexpected<Error> refuse(const std::string& rule, const std::string& path, const std::string& advice) {
  return fail_with(ErrorCode::invalid_input, rule + " at path " + (path.empty() ? "<root>" : path), advice);
}

// ---- structure ----

class StructureCheck {
 public:
  Result<void> run(const ResumeCondition& condition, const std::string& path, std::size_t depth) {
    if (auto ok = grow(1, path); !ok) return ok;
    if (is_composite(condition) && ++depth > kMaxDepth) {
      return refuse("depth " + std::to_string(depth) + " exceeds cap " + std::to_string(kMaxDepth), path,
                    "Flatten the condition: an AllOf inside an AllOf is one AllOf.");
    }
    return std::visit([&](const auto& node) { return check_node(node, path, depth); }, condition.node);
  }

 private:
  // The keys of a count are as much work as nodes.
  Result<void> grow(std::size_t nodes, const std::string& path) {
    nodes_ += nodes;
    if (nodes_ <= kMaxNodes) return {};
    return refuse("more than " + std::to_string(kMaxNodes) + " nodes", path,
                  "Wait for less, or count signals on one waitpoint.");
  }
  // It is kept as JSON, which has room for texts only.
  static Result<void> check_name(const std::string& text, const std::string& path) {
    if (text.size() <= kMaxNameLength) return check_text("resume_condition", text);
    return refuse("name or key longer than " + std::to_string(kMaxNameLength) + " bytes", path,
                  "Use shorter signal names and waitpoint keys.");
  }
  static Result<void> check_matcher(const SignalMatcher& matcher, const std::string& path) {
    if (!matcher.name) return {};
    if (matcher.name->empty()) {
      return fail_with(ErrorCode::invalid_input, "resume_condition: empty signal name (use Wildcard instead)",
                       "Name a signal, or take any.");
    }
    return check_name(*matcher.name, path);
  }

  Result<void> check_node(const SingleSignal& node, const std::string& path, std::size_t) {
    if (auto ok = check_name(node.waitpoint_key, path); !ok) return ok;
    return check_matcher(node.matcher, path);
  }
  Result<void> check_node(const OperatorOnly&, const std::string&, std::size_t) { return {}; }
  Result<void> check_node(const TimeoutOnly&, const std::string&, std::size_t) { return {}; }
  Result<void> check_node(const AllOf& node, const std::string& path, std::size_t depth) {
    if (node.members.empty()) return refuse("allof_empty_members", path, "Give at least one member.");
    for (std::size_t i = 0; i < node.members.size(); ++i) {
      if (auto ok = run(node.members[i], member_path(path, i), depth); !ok) return ok;
    }
    return {};
  }
  Result<void> check_node(const CountOf& node, const std::string& path, std::size_t) {
    if (node.n == 0) return refuse("count_n_zero", path, "Count at least one.");
    if (node.waitpoints.empty()) return refuse("count_waitpoints_empty", path, "Name a waitpoint.");
    if (auto ok = grow(node.waitpoints.size(), path); !ok) return ok;
    for (const auto& key : node.waitpoints) {
      if (auto ok = check_name(key, path); !ok) return ok;
    }
    const std::set<std::string> keys(node.waitpoints.begin(), node.waitpoints.end());
    if (node.count_kind == CountKind::distinct_waitpoints && node.n > keys.size()) {
      return refuse("count_exceeds_waitpoint_set: n=" + std::to_string(node.n) +
                        " > waitpoints.len()=" + std::to_string(keys.size()),
                    path, "Count at most as many as there are waitpoints.");
    }
    return check_matcher(node.matcher, path);
  }

  std::size_t nodes_{0};
};

// ---- signals ----

bool names(const CountOf& node, const std::string& key) {
  return std::ranges::find(node.waitpoints, key) != node.waitpoints.end();
}

bool matches(const SignalMatcher& matcher, const std::string& name) {
  return !matcher.name || *matcher.name == name;
}

// The matcher of a node that listens to the waitpoint.
const SignalMatcher* listens_to(const ResumeCondition& condition, const std::string& key) {
  if (const auto* single = std::get_if<SingleSignal>(&condition.node)) {
    return single->waitpoint_key == key ? &single->matcher : nullptr;
  }
  const auto* count = std::get_if<CountOf>(&condition.node);
  return count && names(*count, key) ? &count->matcher : nullptr;
}

// The length goes before what may itself contain a colon, so that no two sources look alike.
std::string source_of(const ArrivedSignal& signal) {
  return "src:" + std::to_string(signal.source_type.size()) + ":" + signal.source_type + ":" +
         signal.source_identity;
}

std::string who_counts(const ResumeCondition& condition, const ArrivedSignal& signal) {
  const auto* count = std::get_if<CountOf>(&condition.node);
  if (!count) return "leaf";
  switch (count->count_kind) {
    case CountKind::distinct_waitpoints:
      return "wp:" + signal.waitpoint_id.to_string();
    case CountKind::distinct_signals:
      return "sig:" + signal.signal_id.to_string();
    case CountKind::distinct_sources:
      return source_of(signal);
  }
  return "";
}

std::size_t satisfiers_of(const Satisfied& satisfied, const std::string& path) {
  std::size_t count = 0;
  for (auto it = satisfied.lower_bound({path, ""}); it != satisfied.end() && it->path == path; ++it) ++count;
  return count;
}

bool is_met(const ResumeCondition& condition, const Satisfied& satisfied) {
  bool met = true;
  for_each_leaf(condition, "", [&](const ResumeCondition& leaf, const std::string& path) {
    const auto* count = std::get_if<CountOf>(&leaf.node);
    const bool by_signals = count || std::holds_alternative<SingleSignal>(leaf.node);
    met = met && by_signals && satisfiers_of(satisfied, path) >= (count ? count->n : 1);
  });
  return met;
}

}  // namespace

Result<void> check(const ResumeCondition& condition) {
  return StructureCheck().run(condition, "", 0);
}

std::vector<std::string> keys_of(const ResumeCondition& condition) {
  std::vector<std::string> keys;
  std::set<std::string_view> seen;  // it is asked before anybody has checked how many there are
  const auto add = [&](const std::string& key) {
    if (seen.insert(key).second) keys.push_back(key);
  };
  for_each_leaf(condition, "", [&](const ResumeCondition& leaf, const std::string&) {
    if (const auto* single = std::get_if<SingleSignal>(&leaf.node)) add(single->waitpoint_key);
    if (const auto* count = std::get_if<CountOf>(&leaf.node)) std::ranges::for_each(count->waitpoints, add);
  });
  return keys;
}

void name_waitpoint(ResumeCondition& condition, const std::string& key) {
  if (auto* all = std::get_if<AllOf>(&condition.node)) {
    for (auto& member : all->members) name_waitpoint(member, key);
  }
  if (auto* single = std::get_if<SingleSignal>(&condition.node); single && single->waitpoint_key.empty()) {
    single->waitpoint_key = key;
  }
  if (auto* count = std::get_if<CountOf>(&condition.node)) std::ranges::replace(count->waitpoints, "", key);
}

bool needs_deadline(const ResumeCondition& condition) {
  bool needed = false;
  for_each_leaf(condition, "", [&](const ResumeCondition& leaf, const std::string&) {
    needed = needed || std::holds_alternative<TimeoutOnly>(leaf.node);
  });
  return needed;
}

std::vector<std::string> required_names(const ResumeCondition& condition, const std::string& key) {
  std::vector<std::string> required;
  for_each_leaf(condition, "", [&](const ResumeCondition& leaf, const std::string&) {
    std::optional<std::string> name;
    if (std::holds_alternative<OperatorOnly>(leaf.node)) name = kOperatorOnlyName;
    if (std::holds_alternative<TimeoutOnly>(leaf.node)) name = kTimeoutOnlyName;
    if (const auto* matcher = listens_to(leaf, key)) name = matcher->name;
    if (name && std::ranges::find(required, *name) == required.end()) required.push_back(*name);
  });
  return required;
}

SignalEffect deliver(const ResumeCondition& condition, Satisfied& satisfied, const ArrivedSignal& signal) {
  bool listened = false;
  bool matched = false;
  bool added = false;
  for_each_leaf(condition, "", [&](const ResumeCondition& leaf, const std::string& path) {
    const auto* matcher = listens_to(leaf, signal.waitpoint_key);
    listened = listened || matcher;
    if (!matcher || !matches(*matcher, signal.signal_name)) return;
    matched = true;
    added = satisfied.insert({path, who_counts(leaf, signal)}).second || added;
  });
  using enum SignalEffect;
  if (added && is_met(condition, satisfied)) return resume_condition_satisfied;
  if (!is_composite(condition)) return no_op;
  if (!listened) return signal_ignored_not_in_condition;
  if (!matched) return signal_ignored_matcher_failed;
  return added ? appended_to_waitpoint : appended_to_waitpoint_duplicate;
}

bool is_matched(SignalEffect effect) {
  using enum SignalEffect;
  return effect == resume_condition_satisfied || effect == appended_to_waitpoint ||
         effect == appended_to_waitpoint_duplicate;
}

bool is_satisfier(SignalEffect effect) {
  using enum SignalEffect;
  return effect == resume_condition_satisfied || effect == appended_to_waitpoint;
}

}  // namespace flowfabric::core
