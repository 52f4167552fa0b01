#include "disk/trouble.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "disk/cuts.h"
#include "disk/load_child.h"
#include "e2e/waiting.h"

namespace flowfabric::disk {

namespace {

using std::chrono::milliseconds;

// The marks of a process, from one event on.
struct Said {
  std::map<char, std::size_t> marks;  // how often
  std::size_t opened{0};              // by event; 0: never
  std::size_t ended{0};
  std::size_t failed{0};  // where the first call failed on purpose
  std::string what;
};

Said said_since(const Trace& trace, std::size_t first) {
  Said said;
  for (auto i = first; i < trace.events().size(); ++i) {
    const auto& event = trace.events()[i];
    if (event.kind == EventKind::injected && said.failed == 0) {
      said.failed = i;
      said.what = event.text;
    }
    if (event.kind != EventKind::mark || event.text.empty()) continue;
    ++said.marks[event.text[0]];
    if (event.text[0] == 'O') said.opened = i;
    if (event.text[0] == 'E') said.ended = i;
  }
  return said;
}

class Run {
 public:
  explicit Run(const Experiment& experiment) : experiment_(experiment) {}

  Outcome go() {
    if (experiment_.is_restart) leave_something();
    const auto first = recording_.trace().events().size();
    work(1, {.failing = experiment_.failing, .keeps_old = keeps_old()}, "with the error");
    const auto said = said_since(recording_.trace(), first);
    outcome_.was_met = said.failed > 0;
    outcome_.what = said.what;
    if (!outcome_.was_met) return outcome_;
    check_rules(said);
    const auto second = recording_.trace().events().size();
    work(2, {.keeps_old = keeps_old()}, "after it");
    const auto later = said_since(recording_.trace(), second);
    if (later.opened == 0)
      broken("the next process cannot open the store");
    else if (later.marks.contains('X') || later.marks.contains('S'))
      broken("the next process is refused something");
    check_states(said.failed, second);
    keep_if_broken();
    return outcome_;
  }

 private:
  bool keeps_old() const { return experiment_.failing.how == "drop" || experiment_.failing.how == "alone"; }
  // SQLite does not look at what a folder's sync says: only the states tell whether that matters.
  bool is_sync_of_file() const { return outcome_.what.starts_with("sync ") && outcome_.what.size() > 5; }
  void broken(const std::string& rule) { outcome_.broken_rules.push_back(rule); }

  std::unique_ptr<e2e::ChildProcess> start(const Plan& plan, const Settings& settings) {
    return recording_.start({kLoadArgument, url_of(recording_.folder(), Promise::full), plan.to_string()},
                            settings);
  }

  // A killed process, with its logs.
  void leave_something() {
    const auto child = start({.seed = experiment_.seed, .round = 0}, {.keeps_old = keeps_old()});
    e2e::wait_until([&] { return child->is_speaking(); }, milliseconds(20'000), milliseconds(1));
    std::this_thread::sleep_for(milliseconds(30 + experiment_.seed % 50));
    child->kill();
    recording_.settle();
  }

  void work(int round, const Settings& settings, const std::string& when) {
    const auto child = start({.seed = experiment_.seed, .round = round, .is_short = true}, settings);
    const bool has_ended =
        e2e::wait_until([&] { return child->has_hung_up(); }, milliseconds(60'000), milliseconds(1));
    if (has_ended)
      child->wait();
    else
      child->kill();
    if (!has_ended) broken("the process " + when + " hangs");
    // 3: the engine did not open, and said why.
    else if (child->exit_code() != 0 && child->exit_code() != 3)
      broken("the process " + when + " crashed");
    recording_.settle();
  }

  void check_rules(const Said& said) {
    const auto count = [&](char mark) { return said.marks.contains(mark) ? said.marks.at(mark) : 0; };
    if (count('S') > 1) broken("store_failed was called more than once");
    if (count('Z') > 0) broken("a call was answered after store_failed");
    if (count('W') > 0)
      broken("a call was refused after store_failed, and not told that the disk has failed");
    const bool is_while_open =
        said.opened > 0 && said.failed > said.opened && (said.ended == 0 || said.failed < said.ended);
    if (!is_while_open) return;
    if (is_sync_of_file()) {
      if (count('S') == 0) broken("a sync has failed, and store_failed was not called");
      if (count('Y') > 0) broken("a sync has failed, and a call was answered after the first refusal");
    } else if (experiment_.failing.count != kForEver && count('X') > 0 && count('G') == 0 &&
               count('S') == 0) {
      broken("the disk is well again, and every call is refused");
    }
  }

  void keep_if_broken() {
    static std::set<std::string> kept;
    if (outcome_.broken_rules.empty() || !kept.insert(outcome_.broken_rules.front()).second) return;
    const auto& trace = recording_.trace();
    outcome_.trace = keep(trace, Promise::full, {{trace.events().size(), {Strategy::everything, 0}}, {}});
  }

  void check_states(std::size_t failed, std::size_t second) {
    std::mt19937 random(experiment_.seed);
    const auto& trace = recording_.trace();
    auto cuts = choose_cuts(trace, experiment_.states, random, failed);
    // As the processes see it.
    cuts.push_back({second, {Strategy::everything, 0}});
    cuts.push_back({trace.events().size(), {Strategy::everything, 0}});
    std::ranges::stable_sort(cuts, {}, &Cut::event);
    outcome_.states = check_cuts(trace, Promise::full, cuts, [&](const BadState& bad) {
      outcome_.bad_states.push_back(fmt::format("cut before event {} of {}, {}: {}", bad.cut.event,
                                                trace.events().size(), bad.cut.choice.to_string(),
                                                bad.complaints.front()));
      if (first_bad_) return true;
      first_bad_ = true;
      outcome_.bad_states.back() += keep(trace, Promise::full, bad);
      return true;
    });
  }

  const Experiment experiment_;
  Recording recording_;
  Outcome outcome_;
  bool first_bad_{false};
};

}  // namespace

Outcome run(const Experiment& experiment) {
  return Run(experiment).go();
}

std::string site_text(std::uint64_t number) {
  return fmt::format("{:x}", number);
}

Probe probe(bool is_restart, unsigned seed) {
  Recording recording;
  Probe found;
  const auto url = url_of(recording.folder(), Promise::full);
  for (int round = is_restart ? 0 : 1; round < 2; ++round) {
    const bool is_first = round == 0;
    const Plan plan{.seed = seed, .round = round, .is_short = !is_first};
    const auto child = recording.start({kLoadArgument, url, plan.to_string()});
    e2e::wait_until([&] { return is_first ? child->is_speaking() : child->has_hung_up(); },
                    milliseconds(20'000));
    std::this_thread::sleep_for(milliseconds(is_first ? 50 : 0));
    is_first ? child->kill() : child->wait();
    recording.settle();
  }
  for (std::size_t i = 0; i < kCalls; ++i) found.calls[i] = recording.trace().header().calls[i];
  found.seen.add(recording.trace());
  bool is_last = false;
  std::size_t starts = 0;
  for (const auto& event : recording.trace().events()) {
    starts += event.kind == EventKind::start ? 1 : 0;
    is_last = starts == recording.trace().count(EventKind::start);
    if (is_last && event.kind == EventKind::sync_begin) ++found.syncs_of_site[site_text(event.extra)];
  }
  return found;
}

}  // namespace flowfabric::disk
