// An engine fixture on a store that is closed and opened again: with other options, after a restart, after
// damage. Its clock goes on.
#pragma once

#include "support/engine_fixture.h"

namespace flowfabric::tests {

class ReopenFixture : public EngineFixture {
 protected:
  explicit ReopenFixture(const std::string& store = "sqlite") : EngineFixture("memory"), url_(store) {
    if (store == "memory") url_ = "memory:";
    if (store == "memory_deferred") url_ = "memory:?load=deferred";
    if (store == "sqlite") url_ = "sqlite:" + file() + "?synchronous=normal";
    reopen();
  }
  void TearDown() override {
    EngineFixture::TearDown();
    close();
  }

  std::string file() const { return folder_.file("reopened.db"); }

  // What was in memory is gone; what was on disk is there again.
  void reopen(EngineOptions options = {}) {
    close();
    engine() = opened(url_, std::move(options));
  }
  // An empty engine takes its place, so that the file is nobody's.
  void close() { engine() = opened("memory:", {}); }

 private:
  Engine opened(const std::string& url, EngineOptions options) {
    options.clock_interval = std::chrono::milliseconds(0);
    options.now_ms = [this] { return now(); };
    auto engine = Engine::open(url, std::move(options));
    if (!engine) throw std::runtime_error(engine.error().to_string());
    return *std::move(engine);
  }

  TemporaryFolder folder_;
  std::string url_;
};

// Once per store; only options may change, because memory does not survive.
class ReopenTest : public ReopenFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  ReopenTest() : ReopenFixture(GetParam()) {}
};

}  // namespace flowfabric::tests
