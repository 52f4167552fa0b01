// Checks of a PostgreSQL database after trouble.
#pragma once

#include "e2e/kill_checks.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {

Number number_on(const tests::PostgresServer& server);

// Everything that was submitted has ended, exactly once, under the last of its leases; nothing that was
// acknowledged is lost; and all of it fits together.
void check_all_ended_once(const tests::PostgresServer& server, const Ledger& ledger);

// Waits until the database has no connections any more.
void wait_for_silence(const tests::PostgresServer& server);

}  // namespace flowfabric::e2e
