// Does somebody's long transaction hold up the work? While it is open, nothing that has died since may be
// vacuumed away. The same load runs without it and with it, in turn, each time in a schema of its own.
//
//   postgres_pressure URL [TASKS] [ROUNDS]      e.g. postgres_pressure postgres://postgres@/postgres 150000 2
#include "cli/bench.h"
#include "support/bench.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;
using store::postgres::Rows;

// A session that has looked at the database once and then does nothing, in a transaction that stays open.
class OpenTransaction {
 public:
  explicit OpenTransaction(const std::string& url) : connection_(bench::connect(url)) {
    connection_.run("begin isolation level repeatable read");
    connection_.run("select pg_backend_pid()", {},
                    [this](const Rows& rows) { backend_ = rows.get<std::int32_t>(0, 0); });
  }

  // How many transactions ago the oldest row died that may not be removed because of it.
  std::int64_t transactions_held_back(const std::string& url) const {
    std::int64_t age = 0;
    bench::connect(url).run("select age(backend_xmin)::int8 from pg_stat_activity where pid=$1::int4",
                            store::postgres::Parameters().add(backend_), [&](const Rows& rows) {
                              age = rows.size() == 1 ? rows.get<std::int64_t>(0, 0) : 0;
                            });
    return age;
  }

 private:
  store::postgres::Connection connection_;
  std::int32_t backend_{};
};

struct Total {
  std::int64_t tasks{};
  double seconds{};
  double per_second() const { return static_cast<double>(tasks) / seconds; }
};

void run_load(const std::string& url, std::int64_t tasks, bool pinned, Total& total) {
  auto store = must(cli::BenchStore::open(url));
  {
    auto connection = bench::connect(url);
    bench::write_out(connection);
  }
  std::optional<OpenTransaction> open;
  if (pinned) open.emplace(url);
  const auto report = must(cli::bench_lifecycle(store, {.store = url, .tasks = tasks}));
  const auto held_back = open ? open->transactions_held_back(url) : 0;
  require(!pinned || held_back > 0, "the open transaction has held nothing back");
  fmt::print(
      "{:<12} {:>7.0f} lifecycles per second for {:>5.1f} s; submit to start p50 {:.1f} ms, p99 {:.1f} ms; "
      "{:.2f} dead rows per task in the end; {} transactions held back\n",
      pinned ? "pinned" : "undisturbed", report.throughput(), report.seconds, report.start.p50,
      report.start.p99, report.database->dead_tuples, held_back);
  std::fflush(stdout);
  total.tasks += tasks;
  total.seconds += report.seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: postgres_pressure URL [TASKS] [ROUNDS]\n");
    return 2;
  }
  return bench::run_and_report([&] {
    const auto tasks = bench::number_argument(argc, argv, 2, 150'000);
    const auto rounds = bench::number_argument(argc, argv, 3, 2);
    Total undisturbed;
    Total pinned;
    for (std::int64_t round = 0; round < rounds; ++round) {
      run_load(argv[1], tasks, false, undisturbed);
      run_load(argv[1], tasks, true, pinned);
    }
    fmt::print("undisturbed {:.0f}, pinned {:.0f} lifecycles per second, ratio {:.2f}\n",
               undisturbed.per_second(), pinned.per_second(), pinned.per_second() / undisturbed.per_second());
  });
}
