// Shared parts of the benchmarks of the PostgreSQL store.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "flowfabric/engine.h"
#include "store/postgres/connection.h"
#include "store/postgres/url.h"

namespace flowfabric::bench {

using SteadyClock = std::chrono::steady_clock;

inline double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

inline std::uint32_t micros_between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(end - start).count());
}

// Trouble ends a benchmark by an exception, so that it cleans up behind itself.
inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}
template <class T>
T must(Result<T> answer) {
  require(answer.has_value(), answer ? "" : answer.error().to_string());
  return *std::move(answer);
}

template <class F>
int run_and_report(F&& benchmark) {
  try {
    benchmark();
    return 0;
  } catch (const store::StoreFailure& failure) {
    fmt::print(stderr, "{}\n", failure.error.to_string());
  } catch (const std::exception& trouble) {
    fmt::print(stderr, "{}\n", trouble.what());
  }
  return 1;
}

// A whole number among the arguments, or what is usual.
inline std::int64_t number_argument(int argc, char** argv, int index, std::int64_t usual) {
  if (index >= argc) return usual;
  const auto number = std::strtoll(argv[index], nullptr, 10);
  require(number >= 0, std::string(argv[index]) + ": not a number");
  return number;
}

inline store::postgres::Connection connect(const std::string& url) {
  return store::postgres::Connection(must(store::postgres::parse_postgres_url(url)).connection);
}

// Forces a checkpoint, so that older changes are not written during a measurement. Not every role may do
// that.
inline void write_out(store::postgres::Connection& connection) {
  try {
    connection.run("checkpoint");
  } catch (const store::StoreFailure&) {
    require(!connection.is_broken(), "the connection to the database was lost");
  }
}

}  // namespace flowfabric::bench
