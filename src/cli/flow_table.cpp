#include "cli/flow_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "cli/client.h"
#include "cli/output.h"

namespace flowfabric::cli {

using api::JsonView;

namespace {

constexpr std::size_t kShownUpstreams = 6;
constexpr std::size_t kDeepest = 20;  // deeper members are not indented further

struct Node {
  std::string id;
  std::string name;
  std::string kind;
  std::string state;
  std::string join;
  std::vector<std::pair<std::size_t, std::string>> upstreams;  // with the state of the edge
  std::vector<std::size_t> downstreams;
  std::size_t waits_for{};  // upstreams not placed yet
  std::size_t depth{};
};

std::string name_of(JsonView node) {
  const auto name = text_of(node, "name");
  if (!name.empty()) return name;
  // Members that were added one by one have none.
  const auto id = text_of(node, "execution_id");
  return id.substr(id.find(':', id.find('}')) + 1);
}

std::string join_of(JsonView group) {
  const auto policy = find(group, "policy");
  const auto kind = policy ? text_of(*policy, "kind") : "";
  const auto count = [&](const char* key) { return text_of(group, key); };
  if (kind == "all_of" && count("n") == "1") return "";
  std::string text = kind == "quorum"   ? fmt::format("{} of {}", count("k"), count("n"))
                     : kind == "any_of" ? fmt::format("any of {}", count("n"))
                                        : fmt::format("all of {}", count("n"));
  text += fmt::format(": {} succeeded", count("succeeded"));
  if (count("failed") != "0") text += fmt::format(", {} failed", count("failed"));
  if (count("skipped") != "0") text += fmt::format(", {} skipped", count("skipped"));
  const auto state = text_of(group, "group_state");
  return state == "pending" ? text : text + " (" + state + ")";
}

std::vector<Node> read(JsonView graph) {
  std::vector<Node> nodes;
  std::map<std::string, std::size_t> places;
  for (const auto node : items_of(graph, "nodes")) {
    nodes.push_back({.id = text_of(node, "execution_id"),
                     .name = name_of(node),
                     .kind = text_of(node, "execution_kind"),
                     .state = text_of(node, "public_state")});
  }
  std::ranges::sort(nodes, {}, &Node::name);
  for (std::size_t i = 0; i < nodes.size(); ++i) places[nodes[i].id] = i;
  for (const auto edge : items_of(graph, "edges")) {
    const auto from = places.find(text_of(edge, "from"));
    const auto to = places.find(text_of(edge, "to"));
    if (from == places.end() || to == places.end()) continue;
    nodes[to->second].upstreams.emplace_back(from->second, text_of(edge, "state"));
    nodes[from->second].downstreams.push_back(to->second);
    ++nodes[to->second].waits_for;
  }
  for (auto& node : nodes) {
    std::ranges::sort(node.upstreams);
    std::ranges::sort(node.downstreams);
  }
  for (const auto group : items_of(graph, "groups")) {
    const auto place = places.find(text_of(group, "execution_id"));
    if (place != places.end()) nodes[place->second].join = join_of(group);
  }
  return nodes;
}

// Sorts every member after all of its upstreams. A flow has no cycles.
std::vector<std::size_t> in_order(std::vector<Node>& nodes) {
  std::vector<std::size_t> order;
  std::deque<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].waits_for == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const auto i = ready.front();
    ready.pop_front();
    order.push_back(i);
    for (const auto next : nodes[i].downstreams) {
      nodes[next].depth = std::max(nodes[next].depth, nodes[i].depth + 1);
      if (--nodes[next].waits_for == 0) ready.push_back(next);
    }
  }
  return order;
}

std::string upstreams_of(const Node& node, const std::vector<Node>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < node.upstreams.size(); ++i) {
    if (i == kShownUpstreams) return text + fmt::format(" and {} more", node.upstreams.size() - i);
    const auto& [from, state] = node.upstreams[i];
    text += (i == 0 ? "" : ", ") + nodes[from].name;
    if (state == "satisfied") text += " ✓";
    if (state == "impossible") text += " ✗";
  }
  return text;
}

}  // namespace

std::string flow_table(JsonView graph) {
  auto nodes = read(graph);
  Table table({{"NODE"}, {"STATE", Table::Align::left, true}, {"KIND"}, {"AFTER"}, {"JOIN"}, {"EXECUTION"}});
  for (const auto i : in_order(nodes)) {
    const auto& node = nodes[i];
    table.add({std::string(2 * std::min(node.depth, kDeepest), ' ') + node.name, node.state, node.kind,
               upstreams_of(node, nodes), node.join, node.id});
  }
  return table.take();
}

}  // namespace flowfabric::cli
