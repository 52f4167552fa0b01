// Signals in the event logs (06 §9.3; the number is that of §16).
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class FollowingSignals : public SuspensionTest {
 protected:
  Log told(EventFamily family, const std::string& field) {
    Log found;
    const auto batch = must(FollowEvents{.family = family, .cursor = first_cursor()});
    for (const auto& event : batch.events) found.push_back(event.type + " " + event.fields.at(field));
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FollowingSignals, kStores, store_name);

TEST_P(FollowingSignals, TellsWhatASignalDid) {  // 59
  const auto task = running();
  suspend(suspension(task));
  auto request = signal(waitpoint());
  request.idempotency_key = "once";
  deliver(request);
  deliver(request);
  EXPECT_EQ(told(EventFamily::signal_delivery, "raw_effect"),
            (Log{"satisfied resume_condition_satisfied", "deduped duplicate"}));
  EXPECT_EQ(told(EventFamily::completion, "outcome"), Log{}) << "it has not ended";
  fail(claim_one());
  EXPECT_EQ(told(EventFamily::completion, "outcome"), Log{"failed failed"});
}

}  // namespace
}  // namespace flowfabric
