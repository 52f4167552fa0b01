#include "e2e/hostile_requests.h"

namespace flowfabric::e2e {

namespace {

constexpr std::size_t kSmall = 64u << 10;
constexpr std::size_t kSignal = 256u << 10;
constexpr std::size_t kLarge = 1u << 20;
constexpr std::size_t kBulk = 16u << 20;
constexpr std::size_t kRoom = 512;  // for what stands around

// "a,b,c,…", as many as fit.
std::string list(std::size_t most_bytes, const std::function<std::string(std::size_t)>& item,
                 std::size_t most_items = static_cast<std::size_t>(-1)) {
  std::string all;
  for (std::size_t i = 0; i < most_items; ++i) {
    const auto next = item(i);
    if (all.size() + next.size() + 1 > most_bytes) break;
    if (i > 0) all += ',';
    all += next;
  }
  return all;
}

std::string repeated(std::size_t most_bytes, std::string_view part) {
  std::string all;
  while (all.size() + part.size() <= most_bytes) all += part;
  return all;
}

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}
std::string number(std::size_t i) {
  return std::to_string(i);
}
std::string member(std::size_t i) {
  return "\"k" + number(i) + "\":\"v\"";
}
std::string name(std::size_t i) {
  return quoted("n" + number(i));
}
std::string digit(std::size_t) {
  return "7";
}
std::string empty_array(std::size_t) {
  return "[]";
}
std::string empty_object(std::size_t) {
  return "{}";
}
std::string uuid(std::size_t i) {
  auto tail = number(i);
  tail.insert(0, 12 - tail.size(), '0');
  return "00000000-0000-4000-8000-" + tail;
}

std::string execution(const std::string& more) {
  return R"({"execution_kind":"k","lane_id":"hostile",)" + more + "}";
}

HostileRequest create(const std::string& name, const std::string& more, const std::string& status = "4") {
  return {name, "POST", "/v1/executions", [more](const HostileTask&) { return execution(more); }, status};
}
HostileRequest create_with_policy(const std::string& name, const std::string& policy) {
  return create(name, R"("policy":{)" + policy + "}");
}
HostileRequest bulk(const std::string& name, std::function<std::string()> body,
                    const std::string& status = "4") {
  return {name, "POST", "/v1/executions/bulk", [body](const HostileTask&) { return body(); }, status};
}
HostileRequest flow(const std::string& name, std::function<std::string()> nodes,
                    std::function<std::string()> edges) {
  return {name, "POST", "/v1/flows/submit", [nodes, edges](const HostileTask&) {
            return R"({"flow_kind":"f","nodes":[)" + nodes() + R"(],"edges":[)" + edges() + "]}";
          }};
}
HostileRequest report(const std::string& name, const std::string& op, const std::string& more,
                      const std::string& status = "4") {
  return {name, "POST", "/v1/tasks/" + op,
          [more](const HostileTask& task) {
            return R"({"execution_id":")" + task.execution_id + R"(","lease":)" + task.lease + "," + more +
                   "}";
          },
          status};
}
HostileRequest send(const std::string& name, const std::string& method, const std::string& path,
                    const std::string& body, const std::string& status = "4") {
  return {name, method, path, [body](const HostileTask&) { return body; }, status};
}

std::string node(std::size_t i) {
  return R"({"name":"n)" + number(i) + R"(","execution_kind":"k"})";
}
std::string equal_node(std::size_t) {
  return R"({"name":"same","execution_kind":"k"})";
}
std::string edge(std::size_t from, std::size_t to) {
  return R"({"from":"n)" + number(from) + R"(","to":"n)" + number(to) + "\"}";
}

}  // namespace

std::vector<HostileRequest> hostile_executions() {
  const auto room = kLarge - kRoom;
  return {
      create("many tags", R"("tags":{)" + list(room, member) + "}"),
      create("the largest tags there may be",
             R"("tags":{)" +
                 list(
                     16u << 10,
                     [](std::size_t i) {
                       return quoted("key" + number(i)) + ":" + quoted(std::string(230, 'v'));
                     },
                     64) +
                 "}",
             "201"),
      create("a large tag", R"("tags":{"k":")" + std::string(room, 'v') + "\"}"),
      create("a tag with a large key", R"("tags":{")" + std::string(room, 'k') + R"(":"v"})"),
      create("arrays in arrays", R"("input":)" + std::string(room, '[')),
      create("objects in objects", R"("input":)" + repeated(room, R"({"a":)")),
      create("many arrays", R"("input":[)" + list(room, empty_array) + "]", "201"),
      create("many numbers", R"("input":[)" + list(room, digit) + "]", "201"),
      create("many bytes", R"("input_payload":[)" + list(room, digit) + "]", "201"),
      create("bytes that end badly", R"("input_payload":[)" + list(room - 4, digit) + ",256]"),
      create("many unknown keys", list(room, member)),
      create("one key again and again",
             list(room, [](std::size_t) { return std::string(R"("priority":1)"); })),
      send("a large kind", "POST", "/v1/executions",
           R"({"execution_kind":")" + std::string(room, 'k') + "\"}"),
      create("a large namespace", R"("namespace":")" + std::string(room, 'n') + "\""),
      send("a large lane", "POST", "/v1/executions",
           R"({"execution_kind":"k","lane_id":")" + std::string(room, 'l') + "\"}"),
      create("a large key", R"("idempotency_key":")" + std::string(room, 'i') + "\""),
      create("a large number", R"("priority":)" + std::string(room, '9')),
      create("a large fraction", R"("priority":0.)" + std::string(room, '1')),
      create("a large exponent", R"("priority":1e)" + std::string(room, '9')),
      create("escapes", R"("creator_identity":")" + repeated(room, "\\u0000") + "\""),
      create("lone surrogates", R"("creator_identity":")" + repeated(room, "\\ud800") + "\""),
      create("bytes that are no UTF-8", R"("creator_identity":")" + std::string(room, '\xff') + "\""),
      create("base64 that ends badly", R"("input_base64":")" + std::string(room, 'A') + "*\""),
      create_with_policy("many budgets", R"("budget_ids":[)" +
                                             list(room, [](std::size_t i) { return quoted(uuid(i)); }) + "]"),
      create_with_policy(
          "many fallbacks",
          R"("fallback_policy":{"tiers":[)" +
              list(room,
                   [](std::size_t i) { return R"({"provider":"p)" + number(i) + R"(","model":"m"})"; }) +
              "]}"),
      create_with_policy("many capabilities",
                         R"("routing_requirements":{"required_capabilities":[)" + list(room, name) + "]}"),
      create_with_policy("many categories",
                         R"("retry_policy":{"retryable_categories":[)" + list(room, name) + "]}"),
      create_with_policy("a deep policy", R"("retry_policy":)" + repeated(room, R"({"a":)")),
  };
}

std::vector<HostileRequest> hostile_bulks() {
  const auto room = kBulk - kRoom;
  return {
      bulk("objects and nothing else",
           [=] { return R"({"executions":[)" + list(room, empty_object) + "]}"; }),
      bulk(
          "a thousand that are refused",
          [=] { return R"({"executions":[)" + list(room, empty_object, 1000) + "]}"; }, "200"),
      bulk(
          "a thousand with many tags",
          [=] {
            return R"({"executions":[)" +
                   list(
                       room, [](std::size_t) { return execution(R"("tags":{)" + list(8000, member) + "}"); },
                       1000) +
                   "]}";
          },
          "200"),
      bulk(
          "a thousand with large kinds",
          [=] {
            return R"({"executions":[)" +
                   list(
                       room,
                       [](std::size_t) {
                         return R"({"execution_kind":")" + std::string(16'000, 'k') + "\"}";
                       },
                       1000) +
                   "]}";
          },
          "200"),
      bulk("one with a million keys", [=] { return R"({"executions":[{)" + list(room, member) + "}]}"; }),
      bulk("a million keys", [=] { return "{" + list(room, member) + "}"; }),
      bulk("arrays in arrays", [=] { return R"({"executions":)" + std::string(room, '['); }),
      bulk("many arrays", [=] { return R"({"executions":[[)" + list(room, empty_array) + "]]}"; }),
      bulk("spaces", [=] { return std::string(room, ' ') + "{}"; }),
      bulk("a large text", [=] { return R"({"executions":")" + std::string(room, 'x') + "\"}"; }),
      bulk("a large number", [=] { return R"({"executions":)" + std::string(room, '9') + "}"; }),
      bulk("a text of escapes", [=] { return R"({"executions":")" + repeated(room, "\\u00e4") + "\"}"; }),
      bulk("a text that never ends", [=] { return R"({"executions":")" + std::string(room, 'x'); }),
  };
}

std::vector<HostileRequest> hostile_flows() {
  const auto room = kBulk - kRoom;
  const auto none = [] { return std::string(); };
  return {
      flow(
          "nodes with equal names, as many as fit", [=] { return list(room, equal_node); }, none),
      flow(
          "10 000 nodes with equal names", [=] { return list(room, equal_node, 10'000); }, none),
      flow(
          "nodes, as many as fit", [=] { return list(room, node); }, none),
      flow(
          "nodes without names", [=] { return list(room, empty_object, 10'000); }, none),
      flow(
          "edges, as many as fit", [=] { return list(room, node, 2); },
          [=] { return list(room - kRoom, [](std::size_t) { return edge(0, 1); }); }),
      flow(
          "100 000 edges to nowhere", [=] { return list(room, node, 10'000); },
          [=] {
            return list(
                room / 2, [](std::size_t i) { return edge(i % 10'000, 10'000); }, 100'000);
          }),
      flow(
          "100 000 edges in a circle", [=] { return list(room, node, 10'000); },
          [=] {
            return list(
                room / 2, [](std::size_t i) { return edge(i % 10'000, (i + 1) % 10'000); }, 100'000);
          }),
      flow(
          "large names",
          [=] {
            return list(
                room,
                [](std::size_t i) {
                  return R"({"name":")" + std::string(1500, 'n') + number(i) + R"(","execution_kind":"k"})";
                },
                10'000);
          },
          none),
      flow(
          "many tags",
          [=] {
            return list(
                room,
                [](std::size_t i) {
                  return R"({"name":"n)" + number(i) + R"(","execution_kind":"k","tags":{)" +
                         list(1500, member) + "}}";
                },
                10'000);
          },
          none),
      flow(
          "a deep join",
          [=] { return R"({"name":"n","execution_kind":"k","join":)" + repeated(room - kRoom, R"({"a":)"); },
          none),
      flow(
          "a quorum that nobody can meet",
          [=] {
            return list(
                room,
                [](std::size_t i) {
                  return R"({"name":"n)" + number(i) +
                         R"(","execution_kind":"k","join":{"kind":"quorum","k":2147483647,"on_satisfied":"let_run"}})";
                },
                10'000);
          },
          none),
  };
}

std::vector<HostileRequest> hostile_reports() {
  const auto room = kLarge - kRoom;
  return {
      send("many reports", "POST", "/v1/tasks/report", R"({"reports":[)" + list(room, empty_object) + "]}"),
      send("256 empty reports", "POST", "/v1/tasks/report",
           R"({"reports":[)" + list(room, empty_object, 256) + "]}", "200"),
      send("256 reports about nobody", "POST", "/v1/tasks/report",
           R"({"reports":[)" +
               list(
                   room,
                   [](std::size_t i) {
                     return R"({"op":"complete","execution_id":"{fp:1}:)" + uuid(i) +
                            R"(","lease":{"lease_id":")" + uuid(1) + R"(","lease_epoch":1,"attempt_id":")" +
                            uuid(2) + R"("},"result":")" + std::string(3500, 'r') + "\"}";
                   },
                   256) +
               "]}",
           "200"),
      report("a large message", "progress", R"("message":")" + std::string(room, 'm') + "\""),
      report("a large frame", "append", R"("frame_type":"t","text":")" + std::string(room, 't') + "\""),
      report("a large type of frame", "append",
             R"("text":"t","frame_type":")" + std::string(room, 't') + "\""),
      report("a deep patch", "append",
             R"("frame_type":"t","mode":"durable_summary","payload":)" + repeated(room, R"({"a":)")),
      report("many waitpoints", "suspend",
             R"("waitpoints":[)" + list(room, empty_object) +
                 R"(],"resume_condition":{"kind":"operator_only"})"),
      report("a wide condition", "suspend",
             R"("waitpoints":[{}],"resume_condition":{"Composite":{"Count":{"n":1,"waitpoints":[)" +
                 list(room, name) + "]}}}"),
      report("a deep condition", "suspend",
             R"("waitpoints":[{}],"resume_condition":)" + repeated(room, R"({"Composite":)")),
      report("many dimensions", "usage",
             R"("budget_id":"00000000-0000-4000-8000-000000000001","dimensions":{)" +
                 list(room, [](std::size_t i) { return "\"d" + number(i) + "\":1"; }) + "}"),
      report("a large waitpoint key", "create_waitpoint",
             R"("waitpoint_key":")" + std::string(room, 'w') + "\""),
      report("a large key", "suspend", R"("idempotency_key":")" + std::string(room, 'i') + "\""),
      // The last report: a failure is accepted however long its text is.
      report("a large reason", "fail", R"("reason":")" + std::string(room, 'r') + "\"", "200"),
  };
}

std::vector<HostileRequest> hostile_settings() {
  const auto room = kSmall - kRoom;
  const std::string budget = "00000000-0000-4000-8000-000000000001";
  const std::string known = "{task}";  // becomes the path of the task's execution
  return {
      send("many lanes", "POST", "/v1/tasks/claim",
           R"({"worker_id":"w","lanes":[)" + list(room, name) + "]}"),
      send("many capabilities", "POST", "/v1/tasks/claim",
           R"({"worker_id":"w","capabilities":[)" + list(room, name) + "]}"),
      send("many grants", "POST", "/v1/tasks/claim",
           R"({"worker_id":"w","grants":[)" + list(room, empty_object) + "]}"),
      send("a worker with many lanes", "PUT", "/v1/workers/w", R"({"lanes":[)" + list(room, name) + "]}"),
      send("a worker with many capabilities", "PUT", "/v1/workers/w",
           R"({"lanes":["l"],"capabilities":[)" + list(room, name) + "]}"),
      send(
          "many tags", "PUT", "/v1/executions/" + known + "/tags",
          R"({"tags":{)" + list(room, [](std::size_t i) { return "\"t.k" + number(i) + "\":\"v\""; }) + "}}"),
      send("many tags of a flow", "PUT", "/v1/flows/" + budget + "/tags",
           R"({"tags":{)" + list(room, [](std::size_t i) { return "\"t.k" + number(i) + "\":null"; }) + "}}"),
      send("a flow with many tags", "POST", "/v1/flows",
           R"({"flow_kind":"f","tags":{)" + list(room, member) + "}}"),
      send("a budget with many dimensions", "POST", "/v1/budgets",
           R"({"budget_id":")" + budget + R"(","scope_type":"lane","scope_id":"l","dimensions":[)" +
               list(room / 2, name) + R"(],"hard_limits":[)" + list(room / 4, digit) +
               R"(],"soft_limits":[)" + list(room / 4, digit) + "]}"),
      send("a large scope", "POST", "/v1/budgets",
           R"({"budget_id":")" + budget + R"(","scope_type":"tenant","scope_id":")" + std::string(room, 's') +
               R"(","dimensions":["d"],"hard_limits":[1],"soft_limits":[0]})"),
      send(
          "usage of many dimensions", "POST", "/v1/budgets/" + budget + "/usage",
          R"({"dimensions":{)" + list(room, [](std::size_t i) { return "\"d" + number(i) + "\":1"; }) + "}}"),
      send("a bulk operation with many tags", "POST", "/v1/operations",
           R"({"action":"cancel","filter":{"tags":{)" + list(room, member) + "}}}"),
      send("a large reason for a cancel", "POST", "/v1/executions/" + known + "/cancel",
           R"({"reason":")" + std::string(room, 'r') + "\"}", "200"),
      send("a large kid", "POST", "/v1/admin/rotate-waitpoint-secret",
           R"({"new_kid":")" + std::string(room / 2, 'k') + R"(","new_secret_hex":")" +
               std::string(room / 2, 'a') + "\"}"),
      {"a deep signal", "POST", "/v1/executions/" + known + "/signal",
       [](const HostileTask& task) {
         return R"({"execution_id":")" + task.execution_id + R"(","signal_name":"s","payload":)" +
                std::string(kSignal - kRoom, '[');
       }},
      {"a large signal", "POST", "/v1/executions/" + known + "/signal",
       [](const HostileTask& task) {
         return R"({"execution_id":")" + task.execution_id +
                R"(","waitpoint_id":"00000000-0000-4000-8000-000000000001","signal_id":)" +
                R"("00000000-0000-4000-8000-000000000002","signal_name":"s","waitpoint_token":")" +
                std::string(kSignal - kRoom, 't') + "\"}";
       }},
  };
}

std::vector<HostileRequest> hostile_questions() {
  const std::size_t room = (16u << 10) - kRoom;
  const auto question = [](const std::string& name, const std::string& target,
                           const std::string& status = "4") {
    return HostileRequest{name, "GET", target, {}, status};
  };
  const auto parameters = [&](const std::string& each) { return repeated(room, each); };
  std::string tags;
  for (std::size_t i = 0; tags.size() < room - 32; ++i) tags += "tag=k" + number(i) + "%3Dv&";
  return {
      question("all states, again and again", "/v1/executions?" + parameters("state=waiting&"), "200"),
      question("states of flows, again and again", "/v1/flows?" + parameters("state=open&"), "200"),
      question("many tags", "/v1/executions?" + tags),
      question("many parameters", "/v1/executions?" + parameters("x&"), "200"),
      question("a large lane", "/v1/executions?lane=" + std::string(room, 'l')),
      question("a large kind", "/v1/executions?kind=" + parameters("%6b")),
      question("a large cursor", "/v1/executions?cursor=" + std::string(room, 'c')),
      question("a large id", "/v1/executions/" + parameters("%7B")),
      question("a deep path", "/v1" + parameters("/a")),
      question("dots", "/" + parameters("../")),
      question("kinds of events, again and again", "/v1/events?follow=false&" + parameters("kind=lease&"),
               "200"),
      question("a page that is too long", "/v1/executions?limit=" + std::string(room, '9')),
  };
}

std::vector<HostileBytes> hostile_bytes() {
  const std::string head =
      "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
  const std::string chunked = head + "transfer-encoding: chunked\r\n\r\n";
  std::string headers;
  for (std::size_t i = 0; headers.size() < (32u << 10) - kRoom; ++i) headers += "x" + number(i) + ":\r\n";
  return {
      {"small chunks with extensions",
       chunked + repeated(kLarge, "1;" + std::string(1000, 'e') + "\r\n \r\n") + "0\r\n\r\n"},
      {"one large extension", chunked + "1;" + std::string(kLarge, 'e') + "\r\n \r\n0\r\n\r\n"},
      {"large trailers",
       chunked + "2\r\n{}\r\n0\r\n" + repeated(kLarge, "x: " + std::string(1000, 't') + "\r\n") + "\r\n"},
      {"many headers", "GET /livez HTTP/1.1\r\nhost: localhost\r\n" + headers + "\r\n", "200"},
      {"a header that never ends",
       "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: " + std::string(kLarge, 'h')},
      {"a target that never ends", "GET /" + std::string(kLarge, 'a')},
      {"a length that is no number", head + "content-length: " + std::string(1000, '9') + "\r\n\r\n"},
      {"zeros", std::string(kLarge, '\0')},
      {"ends of lines", repeated(kLarge, "\r\n")},
  };
}

}  // namespace flowfabric::e2e
