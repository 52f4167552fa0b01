// Checks of output streams that hold after any operation.
#pragma once

#include <gtest/gtest.h>

#include "simulation/state.h"

namespace flowfabric::simulation {

inline void check_streams(const State& state) {
  std::map<StreamKey, std::vector<const Frame*>> frames;
  for (const auto& [key, frame] : state.rows<Frame>()) {
    frames[{key.partition_key, key.execution_id, key.attempt_index}].push_back(&frame);
  }
  for (const auto& [key, stream] : state.rows<Stream>()) {
    const auto name = owner_of(key).to_string();
    const auto& kept = frames[key];
    EXPECT_EQ(stream.frames_kept, kept.size()) << name;
    EXPECT_LE(stream.frames_kept, stream.frame_count) << name;
    EXPECT_FALSE(stream.expires_at_ms && stream.has_durable_frame) << name << " would lose what is durable";
    EXPECT_TRUE(!stream.expires_at_ms || stream.next_due_at_ms <= stream.expires_at_ms) << name;
    if (!kept.empty()) {
      EXPECT_EQ(kept.back()->frame_ms, stream.last_ms) << name;
      EXPECT_EQ(kept.back()->frame_seq, stream.last_seq) << name;
    }
    frames.erase(key);
  }
  EXPECT_TRUE(frames.empty()) << "frames without a stream";
  for (const auto& [key, summary] : state.rows<StreamSummary>()) {
    EXPECT_TRUE(state.rows<Stream>().contains(key)) << "a summary without a stream";
  }
}

}  // namespace flowfabric::simulation
