// The decision of a join (04 §5), and the data it passes on (§4.7).
#include <future>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;

// ---- worked sequences (04 §5.3) ----

struct Step {
  char end;  // of the next upstream: Success, Failure or sKip
  std::string tally;
};
struct Sequence {
  std::string name;
  std::size_t upstreams;
  JoinPolicy policy;
  std::vector<Step> steps;
  PublicState shown;  // the downstream, in the end
};
void PrintTo(const Sequence& sequence, std::ostream* out) {
  *out << sequence.name;
}

std::vector<Sequence> sequences() {
  constexpr auto let_run = OnSatisfied::let_run;
  const JoinPolicy all_of{};
  return {
      {"AllSucceed",
       3,
       all_of,
       {{'S', "1,0,0,2 pending"}, {'S', "2,0,0,1 pending"}, {'S', "3,0,0,0 satisfied"}},
       PublicState::waiting},
      {"OneOfAllFails",
       3,
       all_of,
       {{'S', "1,0,0,2 pending"}, {'F', "1,1,0,1 impossible"}, {'S', "2,1,0,0 impossible"}},
       PublicState::skipped},
      {"OneOfAllIsSkipped", 2, all_of, {{'K', "0,0,1,1 impossible"}}, PublicState::skipped},
      {"AnyAfterLosses",
       3,
       any_of(),
       {{'F', "0,1,0,2 pending"}, {'K', "0,1,1,1 pending"}, {'S', "1,1,1,0 satisfied"}},
       PublicState::waiting},
      {"AnyAtOnce", 3, any_of(), {{'S', "1,0,0,2 satisfied"}}, PublicState::waiting},
      {"AnyLetsRun",
       3,
       any_of(let_run),
       {{'S', "1,0,0,2 satisfied"}, {'F', "1,1,0,1 satisfied"}, {'S', "2,1,0,0 satisfied"}},
       PublicState::waiting},
      {"AnyIsImpossible",
       3,
       any_of(),
       {{'F', "0,1,0,2 pending"}, {'F', "0,2,0,1 pending"}, {'F', "0,3,0,0 impossible"}},
       PublicState::skipped},
      {"QuorumIsReached",
       5,
       quorum(3),
       {{'S', "1,0,0,4 pending"},
        {'S', "2,0,0,3 pending"},
        {'F', "2,1,0,2 pending"},
        {'S', "3,1,0,1 satisfied"}},
       PublicState::waiting},
      {"QuorumIsImpossible",
       5,
       quorum(3),
       {{'F', "0,1,0,4 pending"}, {'F', "0,2,0,3 pending"}, {'F', "0,3,0,2 impossible"}},
       PublicState::skipped},
      {"QuorumOfAllFailsAtOnce", 3, quorum(3), {{'F', "0,1,0,2 impossible"}}, PublicState::skipped},
      {"QuorumLetsRun",
       5,
       quorum(3, let_run),
       {{'S', "1,0,0,4 pending"},
        {'S', "2,0,0,3 pending"},
        {'S', "3,0,0,2 satisfied"},
        {'S', "4,0,0,1 satisfied"},
        {'K', "4,0,1,0 satisfied"}},
       PublicState::waiting},
      {"QuorumStaysImpossible",
       3,
       quorum(2, let_run),
       {{'F', "0,1,0,2 pending"}, {'K', "0,1,1,1 impossible"}, {'S', "1,1,1,0 impossible"}},
       PublicState::skipped},
  };
}

class JoinSequence : public FlowCaseTest<Sequence> {
 protected:
  // Upstreams that are to be skipped wait for one that fails.
  void build() {
    auto drawing = fan_in(given().upstreams);
    for (std::size_t i = 0; i < given().steps.size(); ++i) {
      if (given().steps[i].end == 'K') drawing += feeder(i) + ">" + upstream(i) + " ";
    }
    submit(graph(drawing, {{"d", given().policy}}));
  }
  void end(std::size_t step) {
    switch (given().steps[step].end) {
      case 'S':
        return succeeds(upstream(step));
      case 'F':
        return fails(upstream(step));
      default:
        return fails(feeder(step));
    }
  }
  static std::string upstream(std::size_t step) { return "u" + std::to_string(step + 1); }
  static std::string feeder(std::size_t step) { return "f" + std::to_string(step + 1); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, JoinSequence, on_every_store(sequences()), case_name<Sequence>);

TEST_P(JoinSequence, IsDecidedOnceAndAsSoonAsItIsCertain) {
  build();
  std::optional<std::int64_t> satisfied_at;
  for (std::size_t i = 0; i < given().steps.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(join("d").group_state == GroupState::pending,
              state_of("d").public_state == PublicState::waiting_children);
    tick(1);
    end(i);
    EXPECT_EQ(tally("d"), given().steps[i].tally);
    if (!satisfied_at) satisfied_at = join("d").satisfied_at;
    EXPECT_EQ(join("d").satisfied_at, satisfied_at) << "set once";
  }

  EXPECT_EQ(state_of("d").public_state, given().shown);
}

// ---- decided joins ----

class Joining : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Joining, kStores, store_name);

TEST_P(Joining, WhatComesAfterTheDecisionDoesNotDisturbTheMember) {
  submit(graph(fan_in(3), {{"d", any_of(OnSatisfied::let_run)}}));
  succeeds("u1");
  const auto task = take("d");
  const auto before = story(id("d"));
  tick(5);
  succeeds("u2");
  fails("u3");
  EXPECT_EQ(story(id("d")), before);
  EXPECT_EQ(tally("d"), "2,1,0,0 satisfied");

  complete(task);
}

TEST_P(Joining, UpstreamsThatEndAtOnceAreCountedEach) {
  submit(graph(fan_in(20)));
  std::vector<CompleteExecution> ends;
  for (int i = 1; i <= 20; ++i) ends.push_back(completion(take("u" + std::to_string(i))));
  std::vector<std::future<Result<Completed>>> answers;
  for (const auto& end : ends) answers.push_back(engine().submit(end));
  for (auto& answer : answers) EXPECT_TRUE(answer.get());

  EXPECT_EQ(tally("d"), "20,0,0,0 satisfied");
  succeeds("d");
}

TEST_P(Joining, ASkippedSelectorSkipsWhatNeedsIt) {
  submit(graph(fan_in(3) + "other>tail d>tail", {{"d", quorum(2, OnSatisfied::let_run)}}));
  fails("u1");
  fails("u2");

  EXPECT_EQ(members(), "d:skipped other:waiting tail:skipped u1:failed u2:failed u3:waiting");
  EXPECT_EQ(tally("tail"), "0,0,1,1 impossible");
}

TEST_P(Joining, ASelectorMixesPolicies) {
  submit(graph("a>any b>any any>d c>d", {{"any", any_of(OnSatisfied::let_run)}}));
  succeeds("b");
  succeeds("any");
  EXPECT_EQ(state_of("d"), expected::waiting_children());
  succeeds("c");

  succeeds("d");
  EXPECT_EQ(members(), "a:waiting any:completed b:completed c:completed d:completed");
}

// ---- data ----

class PassingData : public FlowTest {
 protected:
  static SubmitFlow with_input(const std::string& drawing, const std::string& name, const Joins& joins = {}) {
    auto request = graph(drawing, joins);
    node(request, name).execution.input = "original";
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, PassingData, kStores, store_name);

TEST_P(PassingData, TheResultIsTheNextInput) {
  submit(with_input("a=>b", "b"));
  const std::string bytes("\0\xff{}", 4);
  succeeds("a", bytes);

  EXPECT_EQ(input_of("b"), bytes);
  EXPECT_EQ(take("b").input, bytes);
}

TEST_P(PassingData, AnyReferenceWillDo) {
  start_flow();
  add("a");
  add("b", {.input = "original"});
  connect("a", "b", "whatever");
  succeeds("a", "result");

  EXPECT_EQ(take("b").input, "result");
}

TEST_P(PassingData, WithoutAReferenceTheInputStays) {
  submit(with_input("a>b", "b"));
  succeeds("a", "result");

  EXPECT_EQ(take("b").input, "original");
}

TEST_P(PassingData, WithoutAResultTheInputStays) {
  submit(with_input("a=>b", "b"));
  succeeds("a");

  EXPECT_EQ(take("b").input, "original");
}

TEST_P(PassingData, OfSeveralTheLastOneStays) {
  submit(with_input("a=>d b=>d c>d", "d"));
  succeeds("b", "of b");
  succeeds("a", "of a");
  succeeds("c", "of c");

  EXPECT_EQ(take("d").input, "of a");
}

TEST_P(PassingData, OnlyWhoDecidesAnyOfPassesAnything) {
  submit(with_input("a=>d b=>d c=>d", "d", {{"d", any_of(OnSatisfied::let_run)}}));
  fails("a");
  succeeds("b", "of b");
  succeeds("c", "of c");

  EXPECT_EQ(take("d").input, "of b");
}

TEST_P(PassingData, OnlyWhoCompletesTheQuorumPassesAnything) {
  submit(with_input("a=>d b=>d c=>d", "d", {{"d", quorum(2, OnSatisfied::let_run)}}));
  succeeds("c", "of c");
  succeeds("a", "of a");
  succeeds("b", "of b");

  EXPECT_EQ(take("d").input, "of a");
}

TEST_P(PassingData, AQuorumCompletedByAnEdgeWithoutDataPassesNone) {
  submit(with_input("a=>d b>d", "d", {{"d", quorum(2)}}));
  succeeds("a", "of a");
  succeeds("b", "of b");

  EXPECT_EQ(take("d").input, "original");
}

TEST_P(PassingData, ALateEdgePassesTheResultThatIsThere) {
  start_flow();
  add_all({"a", "b"});
  succeeds("a", "early");
  connect("a", "b", "result");

  EXPECT_EQ(take("b").input, "early");
}

TEST_P(PassingData, ItGoesDownTheChain) {
  submit(graph("a=>b=>c"));
  succeeds("a", "1");
  const auto task = take("b");
  complete(task, task.input + "2");

  EXPECT_EQ(take("c").input, "12");
}

}  // namespace
}  // namespace flowfabric
