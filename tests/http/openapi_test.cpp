// Every operation of the OpenAPI document, asked with the document's own examples, and with everything that
// all routes refuse. What the answers look like is compared with the document by scripts/check-answers.
#include <boost/json.hpp>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

namespace json = boost::json;

class HttpDocument : public HttpTest {
 protected:
  struct Operation {
    std::string name;
    std::string method;
    std::string pattern;
    std::string path;     // with the document's examples in place of the braces
    std::string no_path;  // with something there that is none; empty: there are no braces
    std::string type;     // of a success
    std::size_t limit{};  // of its body; 0: it takes none
    bool takes_json{};
    std::vector<std::string> examples;
    json::object responses;

    bool lists(int status) const { return responses.contains(std::to_string(status)); }
    bool is_open_to_all() const { return !lists(401); }
  };

  // Called before the server needs a token.
  std::vector<Operation> operations() {
    document_ = json::parse(get("/openapi.json").body);
    std::vector<Operation> all;
    for (const auto& [path, item] : document_.at("paths").as_object()) {
      for (const auto& [method, spec] : item.as_object()) {
        if (method != "parameters") all.push_back(read(path, method, spec.as_object()));
      }
    }
    return all;
  }

  Reply ask(const Operation& operation, const std::string& path, std::string body, bool typed = true,
            std::vector<http::Header> headers = {}) {
    if (typed && !body.empty()) headers.push_back(json_type());
    // Events have no end.
    const bool is_endless = operation.type == "text/event-stream";
    return send({.method = is_endless ? "HEAD" : operation.method,
                 .path = path,
                 .headers = std::move(headers),
                 .body = std::move(body)});
  }

 private:
  const json::value& resolved(const json::value& value) const {
    const auto* found = &value;
    while (found->is_object() && found->get_object().contains("$ref"))
      found = &document_.at_pointer(std::string(found->at("$ref").as_string()).substr(1));
    return *found;
  }

  Operation read(std::string_view pattern, std::string_view method, const json::object& spec) {
    Operation operation{.name = std::string(spec.at("operationId").as_string()),
                        .pattern = std::string(pattern),
                        .path = std::string(pattern),
                        .responses = spec.at("responses").as_object()};
    for (const char c : method) operation.method += static_cast<char>(std::toupper(c));
    if (spec.contains("parameters")) fill(operation, spec.at("parameters").as_array());
    if (spec.contains("x-body-limit-bytes"))
      operation.limit = static_cast<std::size_t>(spec.at("x-body-limit-bytes").as_int64());
    for (const auto& [status, response] : operation.responses) {
      const auto& content = resolved(response).as_object();
      if (status.starts_with('2') && content.contains("content"))
        operation.type = std::string(content.at("content").as_object().begin()->key());
    }
    if (!spec.contains("requestBody")) return operation;
    operation.takes_json = true;
    const auto& media = resolved(spec.at("requestBody")).at("content").at("application/json").as_object();
    if (media.contains("example")) operation.examples.push_back(json::serialize(media.at("example")));
    if (media.contains("examples")) {
      for (const auto& [name, example] : media.at("examples").as_object())
        operation.examples.push_back(json::serialize(example.at("value")));
    }
    return operation;
  }

  void fill(Operation& operation, const json::array& parameters) {
    std::string nonsense = operation.path;
    for (const auto& each : parameters) {
      const auto& parameter = resolved(each);
      if (parameter.at("in").as_string() != "path") continue;
      const auto& schema = resolved(parameter.at("schema")).as_object();
      const auto braces = "{" + std::string(parameter.at("name").as_string()) + "}";
      const auto value =
          schema.contains("examples") ? std::string(schema.at("examples").at(0).as_string()) : "0";
      const auto put = [&](std::string& path, const std::string& text) {
        path.replace(path.find(braces), braces.size(), text);
      };
      put(operation.path, value);
      // Neither an id, nor a number, nor a name of anything.
      put(nonsense, "%01%20");
      operation.no_path = nonsense;
    }
  }

  json::value document_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpDocument, kHttpStores, http_store_name);

TEST_P(HttpDocument, ListsManyOperations) {
  EXPECT_GT(operations().size(), 80u);
}

TEST_P(HttpDocument, ShowsExamplesThatAreUnderstood) {
  for (const auto& operation : operations()) {
    auto examples = operation.examples;
    if (examples.empty()) examples.emplace_back();
    for (const auto& example : examples) {
      const auto reply = ask(operation, operation.path, example);
      EXPECT_TRUE(operation.lists(reply.status)) << operation.name << " " << reply.status << reply.body;
      EXPECT_LT(reply.status, 500) << operation.name << reply.body;
      // Not what its own token or its state of things refuses, which examples cannot know.
      for (const int misunderstood : {405, 413, 415, 422})
        EXPECT_NE(reply.status, misunderstood) << operation.name << example << reply.body;
      if (reply.status == 400) {
        EXPECT_NE(reply.at("/code"), "invalid_input") << operation.name << example << reply.body;
      }
    }
  }
}

TEST_P(HttpDocument, NamesEveryRefusalOfABody) {
  for (const auto& operation : operations()) {
    if (operation.limit == 0) continue;
    const auto too_large = ask(operation, operation.path, std::string(operation.limit + 1, ' '));
    EXPECT_EQ(said(too_large), "413 payload_too_large") << operation.name;
    EXPECT_EQ(too_large.at("/limit_bytes"), std::to_string(operation.limit)) << operation.name;
    EXPECT_EQ(too_large.at("/route"), operation.pattern);
    if (!operation.takes_json) continue;
    const auto untyped = ask(operation, operation.path, "{}", false);
    EXPECT_EQ(said(untyped), "415 invalid JSON: Unsupported Media Type") << operation.name;
    for (const auto* broken : {"{", "{}}", "{\"a\":1,}", "nul", "\"\\ud800\""})
      EXPECT_EQ(said(ask(operation, operation.path, broken)), "400 invalid JSON: Bad Request")
          << operation.name;
    for (const auto* other : {"[]", "1", "null", "\"{}\""})
      expect_shape_refused(ask(operation, operation.path, other), operation.name + " " + other);
  }
}

TEST_P(HttpDocument, NamesTheRefusalOfAPathThatIsNone) {
  for (const auto& operation : operations()) {
    if (operation.no_path.empty()) continue;
    // The body's shape is looked at first.
    const auto body = operation.examples.empty() ? "" : operation.examples.front();
    const auto none = ask(operation, operation.no_path, body);
    EXPECT_EQ(none.status, 400) << operation.name << none.body;
    auto bad = operation.no_path;
    for (auto at = bad.find("%01%20"); at != bad.npos; at = bad.find("%01%20")) bad.replace(at, 6, "%f");
    EXPECT_EQ(ask(operation, bad, body).status, 400) << operation.name;
    for (auto at = bad.find("%f"); at != bad.npos; at = bad.find("%f")) bad.replace(at, 2, "%FF");
    EXPECT_EQ(ask(operation, bad, body).status, 400) << operation.name;
  }
}

TEST_P(HttpDocument, NamesEveryMethod) {
  for (const auto& operation : operations()) {
    const auto refused = send({.method = "PATCH", .path = operation.path});
    EXPECT_EQ(refused.status, 405) << operation.name;
    EXPECT_TRUE(contains(refused.header("allow"), operation.method)) << operation.name;
    if (operation.method != "GET") continue;
    const auto head = send({.method = "HEAD", .path = operation.path});
    EXPECT_TRUE(operation.lists(head.status)) << operation.name << head.status;
    EXPECT_EQ(head.body, "");
  }
}

TEST_P(HttpDocument, SaysWhoNeedsTheToken) {
  const auto all = operations();
  serve({.token = "a-secret-token"});
  for (const auto& operation : all) {
    const auto refused = ask(operation, operation.path, "");
    // A signal may bring the token of its waitpoint instead, which is in its body.
    const bool has_other_door = operation.name == "deliver_signal";
    EXPECT_EQ(refused.status == 401, !operation.is_open_to_all() && !has_other_door)
        << operation.name << refused.status;
    const auto taken = ask(operation, operation.path, "", true, {{"authorization", "Bearer a-secret-token"}});
    EXPECT_NE(taken.status, 401) << operation.name;
  }
}

TEST_P(HttpDocument, SaysThatPagesOfStrangersAreRefused) {
  for (const auto& operation : operations()) {
    const auto refused = ask(operation, operation.path, "", true, {{"origin", "https://evil.example"}});
    EXPECT_EQ(refused.status, 403) << operation.name;
    EXPECT_TRUE(operation.lists(403)) << operation.name;
  }
}

TEST_P(HttpDocument, SaysThatOnlyJsonChangesAnything) {
  for (const auto& operation : operations()) {
    if (operation.method == "GET") continue;
    const auto refused = send({.method = operation.method,
                               .path = operation.path,
                               .headers = {{"content-type", "text/plain"}},
                               .body = operation.takes_json ? "{}" : ""});
    EXPECT_EQ(refused.status, 415) << operation.name;
  }
}

}  // namespace
}  // namespace flowfabric::tests
