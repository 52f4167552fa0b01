// Output for people: tables, colours (only on a terminal), times, and progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flowfabric::cli {

// True if standard output is a terminal with colours; NO_COLOR and TERM=dumb turn them off.
bool has_colours();
bool is_terminal(int descriptor);
// The width of the terminal; 0 if there is none.
std::size_t terminal_width();

enum class Colour { none, dim, bold, red, green, yellow, cyan };
std::string coloured(std::string_view text, Colour colour);
// The colour of a state of an execution, a flow or a lane.
Colour colour_of_state(std::string_view state);

// Makes control characters visible, so that data cannot move the cursor or break a table.
std::string printable(std::string_view text);
// Cuts the text to `most` characters, the last one an ellipsis.
std::string shortened(std::string_view text, std::size_t most);

// Since the epoch, now.
std::int64_t now_ms();
std::string duration_text(std::int64_t ms);  // 350ms, 12s, 5m, 3h, 2d
std::string clock_text(std::int64_t ms);     // 21:40:03.120, UTC
std::string time_text(std::int64_t ms);      // 2026-11-16 21:40:03 UTC (5m ago)
std::string age_text(const std::optional<std::int64_t>& ms);
std::string count_text(std::int64_t number);  // 1 234 567

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align{Align::left};
    bool is_state{false};  // coloured
  };
  explicit Table(std::vector<Column> columns);

  void add(std::vector<std::string> row);
  // The rows so far, the first time with the titles. Columns never get narrower.
  std::string take();
  bool empty() const { return rows_.empty() && !has_titles_; }

 private:
  void append(std::string& out, const std::vector<std::string>& row, bool is_title) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
  bool has_titles_{false};
};

// A progress line on standard error; nothing if that is not a terminal.
class Progress {
 public:
  // An absent total is unknown.
  Progress(std::string what, std::optional<std::uint64_t> total);
  ~Progress();
  void show(std::uint64_t done, std::uint64_t failed = 0);

 private:
  const std::string what_;
  const std::optional<std::uint64_t> total_;
  const bool is_shown_;
  const std::chrono::steady_clock::time_point begun_{std::chrono::steady_clock::now()};
};

}  // namespace flowfabric::cli
