// Counters and histograms in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace flowfabric::api {

// In seconds.
inline constexpr std::array kBuckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                     0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

struct Histogram {
  std::array<std::uint64_t, kBuckets.size() + 1> counts{};
  double sum{0};
  std::uint64_t count{0};
  void observe(double seconds);
};

class Metrics {
 public:
  void count_request(std::string_view method, std::string_view route, int status, double seconds);

  // What was counted here, in the text format.
  std::string text() const;

 private:
  struct Requests {
    std::uint64_t total{0};
    Histogram seconds{};
  };
  mutable std::mutex mutex_;
  std::map<std::string, Requests> requests_;  // by its labels
};

// One family in the text format: its help and type, then a line per series.
void append_family(std::string& out, std::string_view name, std::string_view type, std::string_view help);
void append_series(std::string& out, std::string_view name, std::string_view labels, double value);
void append_series(std::string& out, std::string_view name, std::string_view labels, std::uint64_t value);
void append_histogram(std::string& out, std::string_view name, std::string_view labels,
                      const Histogram& histogram);
// `name="value"`, with what must be escaped.
std::string label(std::string_view name, std::string_view value);

}  // namespace flowfabric::api
