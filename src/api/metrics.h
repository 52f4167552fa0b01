// Counters and histograms in Prometheus' text format, and the counters of HTTP.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "flowfabric/stats.h"

namespace flowfabric::api {

// The label for a method. Clients can make up methods, so unknown ones share a label.
std::string_view shown_method(std::string_view method);

class Metrics {
 public:
  void count_request(std::string_view method, std::string_view route, int status, double seconds);
  // Counts a connection or a request that the edge refused.
  void count_refusal(std::string_view reason);

  // These counters in the text format.
  std::string text() const;

 private:
  struct Requests {
    std::uint64_t total{0};
    Distribution seconds{};
  };
  mutable std::mutex mutex_;
  std::map<std::string, Requests> requests_;  // by its labels
  std::map<std::string, std::uint64_t, std::less<>> refusals_;
};

// One family in the text format: its help and type, then a line per series.
void append_family(std::string& out, std::string_view name, std::string_view type, std::string_view help);
void append_series(std::string& out, std::string_view name, std::string_view labels, double value);
void append_series(std::string& out, std::string_view name, std::string_view labels, std::uint64_t value);
void append_histogram(std::string& out, std::string_view name, std::string_view labels,
                      const Distribution& values);
// `name="value"`, escaped.
std::string label(std::string_view name, std::string_view value);

}  // namespace flowfabric::api
