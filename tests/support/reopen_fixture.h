// An engine fixture on a store that is closed and opened again: with other options, after a restart, after
// damage. Its clock goes on.
#pragma once

#include "support/engine_fixture.h"

namespace flowfabric::tests {

class ReopenFixture : public EngineFixture {
 protected:
  using EngineFixture::EngineFixture;

  // Memory is lost; the contents of the disk are back.
  void reopen(EngineOptions options = {}) {
    close();
    engine() = open(store().url(), std::move(options));
  }
  // An empty engine takes its place, so that the store is closed.
  void close() { engine() = open("memory:"); }
};

// Once per store. Of kStores, only options may change, because memory does not survive.
class ReopenTest : public ReopenFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  ReopenTest() : ReopenFixture(GetParam()) {}
};

}  // namespace flowfabric::tests
