#include "support/test_store.h"

#include <stdexcept>

#include "support/damage.h"

namespace flowfabric::tests {

TestStore::TestStore(const std::string& name) {
  if (name == "memory") {
    url_ = "memory:";
  } else if (name == "memory_deferred") {
    url_ = "memory:?load=deferred";
  } else if (name == "sqlite") {
    // These tests are not about power loss, so commits need not wait for the disk.
    url_ = "sqlite:" + file() + "?synchronous=normal";
  } else if (name == "postgres") {
    url_ = database_.emplace().url();
  } else {
    throw std::invalid_argument("no store is called " + name);
  }
}

void TestStore::change(const std::string& sql) const {
  if (database_)
    database_->query(sql);
  else
    damage_file(file(), sql);
}

}  // namespace flowfabric::tests
