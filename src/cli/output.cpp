#include "cli/output.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace flowfabric::cli {

namespace {

constexpr std::size_t kBarWidth = 30;
constexpr std::string_view kGap = "  ";

std::string_view escape_of(Colour colour) {
  switch (colour) {
    case Colour::dim:
      return "\x1b[2m";
    case Colour::bold:
      return "\x1b[1m";
    case Colour::red:
      return "\x1b[31m";
    case Colour::green:
      return "\x1b[32m";
    case Colour::yellow:
      return "\x1b[33m";
    case Colour::cyan:
      return "\x1b[36m";
    case Colour::none:
      break;
  }
  return "";
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::tm utc(std::int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

bool is_terminal(int descriptor) {
  return isatty(descriptor) == 1;
}

bool has_colours() {
  static const bool has = [] {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    if (no_colour && *no_colour != '\0') return false;
    if (terminal && std::string_view(terminal) == "dumb") return false;
    return is_terminal(STDOUT_FILENO);
  }();
  return has;
}

std::size_t terminal_width() {
  winsize size{};
  if (!is_terminal(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::string coloured(std::string_view text, Colour colour) {
  if (colour == Colour::none || !has_colours()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_of(colour), text);
}

Colour colour_of_state(std::string_view state) {
  if (state == "completed" || state == "ended_success") return Colour::green;
  if (state == "failed" || state == "expired" || state == "ended_failure" || state == "disabled") {
    return Colour::red;
  }
  if (state == "active" || state == "running" || state == "started") return Colour::cyan;
  if (state == "suspended" || state == "paused" || state == "draining" || state == "rate_limited" ||
      state == "blocked") {
    return Colour::yellow;
  }
  return state == "cancelled" || state == "skipped" ? Colour::dim : Colour::none;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (width_of(text) <= most) return std::string(text);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && ++seen == most) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

// ---- times ------------------------------------------------------------------------------------------------

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string duration_text(std::int64_t ms) {
  constexpr std::int64_t second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
  if (ms < 0) return "-" + duration_text(ms == INT64_MIN ? INT64_MAX : -ms);
  if (ms < second) return fmt::format("{}ms", ms);
  if (ms < 10 * second) return fmt::format("{:.1f}s", static_cast<double>(ms) / 1000);
  if (ms < 2 * minute) return fmt::format("{}s", ms / second);
  if (ms < 2 * hour) return fmt::format("{}m", ms / minute);
  return ms < 2 * day ? fmt::format("{}h", ms / hour) : fmt::format("{}d", ms / day);
}

std::string clock_text(std::int64_t ms) {
  const auto parts = utc(ms);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", parts.tm_hour, parts.tm_min, parts.tm_sec, ms % 1000);
}

std::string time_text(std::int64_t ms) {
  const auto parts = utc(ms);
  const auto ago = now_ms() - ms;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC ({})", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ago >= 0 ? duration_text(ago) + " ago" : "in " + duration_text(-ago));
}

std::string age_text(const std::optional<std::int64_t>& ms) {
  return ms ? duration_text(std::max<std::int64_t>(0, now_ms() - *ms)) : "";
}

std::string count_text(std::int64_t number) {
  auto digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), " ");
  }
  return digits;
}

// ---- tables -----------------------------------------------------------------------------------------------

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const auto& column : columns_) widths_.push_back(width_of(column.title));
}

void Table::add(std::vector<std::string> row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = printable(row[i]);
    widths_[i] = std::max(widths_[i], width_of(row[i]));
  }
  rows_.push_back(std::move(row));
}

void Table::append(std::string& out, const std::vector<std::string>& row, bool is_title) const {
  const auto room = terminal_width();
  std::size_t used = 0;
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool is_last = i + 1 == row.size();
    // The last column is the one that may be long; it is cut where a terminal would break the line.
    const auto cell = is_last && room > used + 8 ? shortened(row[i], room - used) : row[i];
    const auto width = width_of(cell);
    const std::string padding(widths_[i] > width ? widths_[i] - width : 0, ' ');
    const auto colour = is_title ? Colour::bold : columns_[i].is_state ? colour_of_state(cell) : Colour::none;
    const auto shown = coloured(cell, colour);
    if (columns_[i].align == Align::right)
      line += padding + shown;
    else
      line += is_last ? shown : shown + padding;
    if (!is_last) line += kGap;
    used += widths_[i] + kGap.size();
  }
  while (line.ends_with(' ')) line.pop_back();
  out += line + "\n";
}

std::string Table::take() {
  std::string out;
  if (!has_titles_ && !rows_.empty()) {
    std::vector<std::string> titles;
    for (const auto& column : columns_) titles.push_back(column.title);
    append(out, titles, true);
    has_titles_ = true;
  }
  for (const auto& row : rows_) append(out, row, false);
  rows_.clear();
  return out;
}

// ---- progress ---------------------------------------------------------------------------------------------

Progress::Progress(std::string what, std::optional<std::uint64_t> total)
    : what_(std::move(what)), total_(total), is_shown_(is_terminal(STDERR_FILENO)) {}

Progress::~Progress() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(std::uint64_t done, std::uint64_t failed) {
  if (!is_shown_) return;
  const auto all = done + failed;
  std::string bar;
  if (total_ && *total_ > 0) {
    const auto part = std::min(1.0, static_cast<double>(all) / static_cast<double>(*total_));
    const auto filled = static_cast<std::size_t>(part * kBarWidth);
    bar = fmt::format("[{}{}] {:3.0f} %  ", std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
                      part * 100);
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
  const auto rate = passed.count() > 0 ? static_cast<double>(all) / passed.count() : 0.0;
  fmt::print(stderr, "\r\x1b[K{} {}{} done, {} failed, {:.0f}/s", what_, bar,
             count_text(static_cast<std::int64_t>(done)), count_text(static_cast<std::int64_t>(failed)),
             rate);
  std::fflush(stderr);
}

}  // namespace flowfabric::cli
