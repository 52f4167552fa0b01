// The store's URL: libpq's own form, with a few parameters of ours among its own.
#pragma once

#include "store/postgres/connection.h"

namespace flowfabric::store::postgres {

struct StoreSettings {
  ConnectionSettings connection;
  std::size_t committers{2};
  std::size_t readers{8};
  bool notify{true};
  bool waits_when_away{true};
};

// Takes our parameters out: committers=1…64, readers=1…256, pooler=none|transaction, notify=on|off,
// outage=wait|fail.
Result<StoreSettings> parse_postgres_url(const std::string& url);

}  // namespace flowfabric::store::postgres
