// Short words for tests of output streams.
#pragma once

#include "support/engine_fixture.h"

namespace flowfabric::tests {

using Fields = std::map<std::string, std::string>;

// `Base` is one of the fixtures that run once per store.
template <class Base>
class StreamWords : public Base {
 protected:
  using Base::must;

  static AppendFrame frame(const ClaimedTask& task, std::string payload) {
    AppendFrame request{.execution_id = task.execution_id, .attempt_index = task.attempt_index};
    request.fence = task.fence;
    request.payload = std::move(payload);
    return request;
  }
  // The frame's id.
  std::string append(const ClaimedTask& task, std::string payload) {
    return must(frame(task, std::move(payload))).stream_id;
  }
  // The version.
  std::uint64_t patch(const ClaimedTask& task, std::string merge_patch) {
    auto request = frame(task, std::move(merge_patch));
    request.mode = FrameMode::summary;
    return must(request).summary_version.value_or(0);
  }
  std::string show(const ClaimedTask& task, std::string payload, BestEffort config = {}) {
    auto request = frame(task, std::move(payload));
    request.mode = FrameMode::best_effort;
    request.best_effort = config;
    return must(request).stream_id;
  }

  StreamPage read(const ClaimedTask& task, std::uint32_t count = 100) {
    return must(ReadStream{task.execution_id, task.attempt_index, "start", "end", count});
  }
  StreamPage tail(const ClaimedTask& task, std::string after = "0-0", std::int64_t block_ms = 0) {
    return must(TailStream{task.execution_id, task.attempt_index, std::move(after), block_ms});
  }
  static Log payloads_of(const StreamPage& page) {
    Log found;
    for (const auto& each : page.frames) found.push_back(each.fields.at("payload"));
    return found;
  }
  Log payloads(const ClaimedTask& task) { return payloads_of(read(task)); }
  StreamInfo info(const ClaimedTask& task) {
    for (const auto& stream : must(ListStreams{task.execution_id})) {
      if (stream.attempt_index == task.attempt_index) return stream;
    }
    throw std::runtime_error("the attempt has no stream");
  }
  std::string closed_reason(const ExecutionId& id, std::uint32_t attempt_index = 0) {
    return must(ReadStream{.execution_id = id, .attempt_index = attempt_index})
        .closed_reason.value_or("open");
  }
};

class StreamTest : public StreamWords<EngineTest> {};

}  // namespace flowfabric::tests
