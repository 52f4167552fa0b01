// W3C trace context, and looks that may take too long.
#include <gtest/gtest.h>

#include <latch>

#include "api/lookout.h"
#include "api/trace.h"

namespace flowfabric::api {
namespace {

using namespace std::chrono_literals;

const std::string kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, IsReadAndWritten) {
  const auto context = parse_traceparent(kGood);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id, "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->to_string(), kGood);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02")->sampled);
  EXPECT_EQ(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03")->to_string(), kGood)
      << "flags that nobody knows are not handed on";
}

TEST(TraceContext, OfALaterVersionIsReadAsFarAsItIsKnown) {
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
  EXPECT_FALSE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more"));
}

TEST(TraceContext, ThatIsMalformedIsNone) {
  for (const auto* bad : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                          "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
                          "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                          "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                          "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                          "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
                          "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
}

TEST(TraceContext, HasNewIdsEachTime) {
  EXPECT_EQ(new_trace_id().size(), 32u);
  EXPECT_EQ(new_span_id().size(), 16u);
  EXPECT_NE(new_trace_id(), new_trace_id());
  EXPECT_TRUE(parse_traceparent("00-" + new_trace_id() + "-" + new_span_id() + "-01"));
}

TEST(Lookouts, SeeAnewEachTime) {
  int looks = 0;
  Lookout<int> lookout([&]() -> Result<int> { return ++looks; }, 10s);
  EXPECT_EQ(**lookout.fresh(), 1);
  EXPECT_EQ(**lookout.fresh(), 2);
}

TEST(Lookouts, KeepNobodyWaitingForWhatDoesNotAnswer) {
  std::latch back(1);
  std::atomic<int> looks{0};
  Lookout<int> lookout(
      [&]() -> Result<int> {
        if (++looks == 1) back.wait();
        return looks;
      },
      50ms);
  EXPECT_FALSE(lookout.fresh());
  std::this_thread::sleep_for(60ms);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(lookout.fresh()) << "it has not come back";
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
  back.count_down();
  std::optional<Result<int>> seen;
  for (int i = 0; i < 1000 && !seen; ++i) {
    seen = lookout.fresh();
    if (!seen) std::this_thread::sleep_for(5ms);
  }
  ASSERT_TRUE(seen);
  EXPECT_GE(**seen, 2);
}

}  // namespace
}  // namespace flowfabric::api
