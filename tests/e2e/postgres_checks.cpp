#include "e2e/postgres_checks.h"

#include <gtest/gtest.h>

#include "e2e/waiting.h"

namespace flowfabric::e2e {

namespace {

void check_ends(const Number& number) {
  const auto none = [&](const char* what, const std::string& query) { expect_none(number, what, query); };
  none("executions that have not ended", "select 1 from ff_exec_core where lifecycle_phase<>'terminal'");
  none("executions that ended more often, or less often, than once",
       "select 1 from ff_exec_core e left join ff_completion_event c using (partition_key, execution_id) "
       "group by partition_key, execution_id having count(c.event_id)<>1");
  none("attempts that ended twice", "select 1 from ff_attempt group by attempt_id having count(*)>1");
  none("executions that succeeded twice",
       "select 1 from ff_attempt where attempt_state='ended_success' "
       "group by partition_key, execution_id having count(*)>1");
  none("executions whose success has no attempt",
       "select partition_key, execution_id from ff_exec_core where public_state='completed' except "
       "select partition_key, execution_id from ff_attempt where attempt_state='ended_success'");
}

void check_leases(const Number& number) {
  const auto none = [&](const char* what, const std::string& query) { expect_none(number, what, query); };
  const std::string of_execution = "over (partition by partition_key, execution_id order by event_id";
  none("leases whose epoch does not follow the one before",
       "select 1 from (select lease_epoch, row_number() " + of_execution +
           ") as place from ff_lease_event where event_type in ('acquired','reclaimed')) as leases "
           "where lease_epoch<>place");
  none("events of a lease after the next one was given",
       "select 1 from (select lease_epoch, max(lease_epoch) " + of_execution +
           ") as latest from ff_lease_event) as events where lease_epoch<latest");
  none("executions that ended under another lease than their last one",
       "select 1 from ff_attempt a join ff_exec_core e using (partition_key, execution_id) join "
       "(select partition_key, execution_id, max(lease_epoch) as latest from ff_lease_event group by 1, 2) "
       "as l using (partition_key, execution_id) where (a.attempt_state='ended_success' or "
       "a.attempt_index=e.attempt_index) and (a.lease_epoch<>e.lease_epoch or a.lease_epoch<>l.latest)");
  none("leases that ended twice",
       "select 1 from ff_lease_event where event_type in ('released','revoked') "
       "group by partition_key, execution_id, lease_epoch having count(*)>1");
}

}  // namespace

Number number_on(const tests::PostgresServer& server) {
  return [&server](const std::string& sql) { return std::stoll(server.query(sql).at(0).at(0)); };
}

void check_all_ended_once(const tests::PostgresServer& server, const Ledger& ledger) {
  const auto number = number_on(server);
  EXPECT_GT(ledger.completions, 0u);
  EXPECT_EQ(number("select count(*) from ff_exec_core"), static_cast<std::int64_t>(ledger.executions.size()));
  check_ends(number);
  check_leases(number);
  check_nothing_is_half_there(number);
  check_acknowledged(server.url(), ledger);
  check_store(server.url());
}

void wait_for_silence(const tests::PostgresServer& server) {
  const auto others = [&] {
    return number_on(server)(
        "select count(*) from pg_stat_activity where application_name='flowfabric' and "
        "pid<>pg_backend_pid()");
  };
  EXPECT_TRUE(wait_until([&] { return others() == 0; }, std::chrono::seconds(10)));
}

}  // namespace flowfabric::e2e
