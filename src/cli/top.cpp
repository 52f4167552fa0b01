// `flowfabric top`: the state of the system, redrawn every second.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <thread>

#include "cli/arguments.h"
#include "cli/output.h"
#include "store/store.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr std::array kStates{"waiting",   "delayed",   "rate_limited", "waiting_children",
                             "active",    "suspended", "completed",    "failed",
                             "cancelled", "expired",   "skipped"};

struct TopOptions : CommonOptions {
  bool once{false};
  std::string every{"1s"};
};

// The answers of one round.
struct Look {
  std::optional<Reply> overview;
  std::vector<Reply> lanes;  // by page
};

// Absent for an older server without this route.
std::optional<Reply> overview_of(Client& client) {
  try {
    return client.get("/v1/overview");
  } catch (const Failure& failure) {
    if (failure.code != kUnexpectedAnswer) throw;
    return std::nullopt;
  }
}

Look look(Client& client) {
  Look found;
  found.overview = overview_of(client);
  std::string cursor;
  do {
    found.lanes.push_back(client.get("/v1/lanes", cursor.empty()
                                                      ? Parameters{{"limit", "1000"}}
                                                      : Parameters{{"limit", "1000"}, {"cursor", cursor}}));
    cursor = text_of(found.lanes.back().root(), "next_cursor");
  } while (!cursor.empty());
  return found;
}

std::string rates_text(JsonView overview) {
  const auto rates = find(overview, "rates");
  const auto rate = [&](const char* key) {
    return fmt::format("{:.1f}/s", rates ? std::strtod(text_of(*rates, key).c_str(), nullptr) : 0.0);
  };
  const auto oldest = age_text(number_of(overview, "oldest_waiting_at"));
  return fmt::format("submitted {}   completed {}   failed {}   workers {}   oldest waiting {}\n",
                     rate("submitted_per_second"), rate("completed_per_second"), rate("failed_per_second"),
                     text_of(overview, "workers"), oldest.empty() ? "-" : oldest);
}

// The totals of all lanes.
std::string counts_text(const std::vector<Reply>& pages) {
  std::map<std::string, std::int64_t, std::less<>> counts;
  for (const auto& page : pages) {
    for (const auto lane : items_of(page.root(), "lanes")) {
      for (const auto count : items_of(lane, "counts")) {
        counts[std::string(count.key())] += count.to_int64().value_or(0);
      }
    }
  }
  std::string line;
  for (const auto* state : kStates) {
    if (counts[state] == 0) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : "   ", coloured(state, colour_of_state(state)),
                        count_text(counts[state]));
  }
  return (line.empty() ? "nothing has been submitted" : line) + "\n";
}

std::string lanes_text(const std::vector<Reply>& pages) {
  constexpr auto right = Table::Align::right;
  Table table({{"LANE"},
               {"STATE", Table::Align::left, true},
               {"WAITING", right},
               {"DELAYED", right},
               {"ACTIVE", right},
               {"SUSPENDED", right},
               {"COMPLETED", right},
               {"FAILED", right},
               {"OLDEST WAITING", right}});
  for (const auto& page : pages) {
    for (const auto lane : items_of(page.root(), "lanes")) {
      const auto counts = find(lane, "counts");
      const auto count = [&](const char* state) {
        return count_text(counts ? number_of(*counts, state).value_or(0) : 0);
      };
      table.add({text_of(lane, "lane_id"), text_of(lane, "state"), count("waiting"), count("delayed"),
                 count("active"), count("suspended"), count("completed"), count("failed"),
                 age_text(number_of(lane, "oldest_waiting_at"))});
    }
  }
  return table.take();
}

std::string screen(const Look& found, const std::string& store) {
  return fmt::format("{}  {} UTC\n{}{}\n{}", coloured(store::redacted_url(store), Colour::bold),
                     clock_text(now_ms()).substr(0, 8),
                     found.overview ? rates_text(found.overview->root()) : "", counts_text(found.lanes),
                     lanes_text(found.lanes));
}

std::string to_json(const Look& found) {
  api::JsonWriter out;
  out.object();
  if (found.overview) {
    for (const auto member : found.overview->root()) {
      if (member.key() != "lanes") out.key(member.key()).raw(member.compact());
    }
  }
  out.key("lanes").array();
  for (const auto& page : found.lanes) {
    for (const auto lane : items_of(page.root(), "lanes")) out.raw(lane.compact());
  }
  return out.end().end().take();
}

// Runs until it is interrupted. A server that goes away may come back.
int redraw(Client& client, const TopOptions& options, std::chrono::milliseconds pause) {
  for (;;) {
    std::string text;
    try {
      text = screen(look(client), options.connection.store);
    } catch (const Failure& failure) {
      if (failure.exit_code != kUnreachable) throw;
      text = coloured(failure.to_string(), Colour::red) + "\n";
    }
    // From the upper left corner; what was below is erased.
    fmt::print("\x1b[H\x1b[2J{}", text);
    std::fflush(stdout);
    std::this_thread::sleep_for(pause);
  }
}

int top(const TopOptions& options) {
  const auto pause =
      std::chrono::milliseconds(std::max<std::int64_t>(100, duration_argument("--every", options.every)));
  Client client(options.connection, Purpose::look);
  if (!options.once && !options.json && is_terminal(1)) return redraw(client, options, pause);
  const auto found = look(client);
  fmt::print("{}", options.json ? to_json(found) + "\n" : screen(found, options.connection.store));
  return kDone;
}

}  // namespace

void add_top(Command& app, Action& chosen) {
  auto* command = app.add_subcommand("top", "Watch the system: rates, counts, lanes.");
  auto options = std::make_shared<TopOptions>();
  command->add_flag("--once", options->once, "Show one snapshot, as without a terminal");
  command->add_option("--every", options->every, "Interval between updates").show_default();
  add_common_options(*command, *options, "Print one JSON object, once");
  command->footer(
      "Examples:\n  flowfabric top\n  flowfabric top --once --store postgres://user@host/database");
  on_chosen(command, chosen, options, top);
}

}  // namespace flowfabric::cli
