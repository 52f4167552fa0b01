#include "api/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace flowfabric::api {

std::string label(std::string_view name, std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

std::string_view shown_method(std::string_view method) {
  constexpr std::array known{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  return std::find(known.begin(), known.end(), method) != known.end() ? method : "OTHER";
}

void Metrics::count_request(std::string_view method, std::string_view route, int status, double seconds) {
  auto labels =
      label("method", method) + "," + label("path", route) + "," + label("status", fmt::format("{}", status));
  std::lock_guard lock(mutex_);
  auto& entry = requests_[std::move(labels)];
  ++entry.total;
  entry.seconds.observe(seconds);
}

void Metrics::count_refusal(std::string_view reason) {
  std::lock_guard lock(mutex_);
  ++refusals_[std::string(reason)];
}

void append_family(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

namespace {

std::string in_braces(std::string_view labels) {
  return labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
}

}  // namespace

void append_series(std::string& out, std::string_view name, std::string_view labels, double value) {
  fmt::format_to(std::back_inserter(out), "{}{} {}\n", name, in_braces(labels), value);
}

void append_series(std::string& out, std::string_view name, std::string_view labels, std::uint64_t value) {
  fmt::format_to(std::back_inserter(out), "{}{} {}\n", name, in_braces(labels), value);
}

void append_histogram(std::string& out, std::string_view name, std::string_view labels,
                      const Distribution& values) {
  const auto bucket = [&](std::string_view least, std::uint64_t below) {
    fmt::format_to(std::back_inserter(out), "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels,
                   labels.empty() ? "" : ",", least, below);
  };
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < values.bounds.size(); ++i) {
    below += values.counts[i];
    bucket(fmt::format("{}", values.bounds[i]), below);
  }
  bucket("+Inf", values.count());
  append_series(out, fmt::format("{}_sum", name), labels, values.sum);
  append_series(out, fmt::format("{}_count", name), labels, values.count());
}

std::string Metrics::text() const {
  std::string out;
  std::lock_guard lock(mutex_);
  append_family(out, "ff_http_requests_total", "counter", "Answered requests.");
  for (const auto& [labels, entry] : requests_) {
    append_series(out, "ff_http_requests_total", labels, entry.total);
  }
  append_family(out, "ff_http_refusals_total", "counter",
                "Connections and requests refused before they reached a route.");
  for (const auto& [reason, count] : refusals_) {
    append_series(out, "ff_http_refusals_total", label("reason", reason), count);
  }
  append_family(out, "ff_http_request_duration_seconds", "histogram", "Time to answer a request.");
  for (const auto& [labels, entry] : requests_) {
    append_histogram(out, "ff_http_request_duration_seconds", labels, entry.seconds);
  }
  return out;
}

}  // namespace flowfabric::api
