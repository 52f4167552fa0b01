#include "http_fixture.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace flowfabric::tests {

namespace {

const boost::json::value* find(const boost::json::value& root, const std::string& pointer) {
  boost::json::error_code error;
  return root.find_pointer(pointer, error);
}

boost::json::value parsed(const std::string& body) {
  boost::json::error_code error;
  auto value = boost::json::parse(body, error);
  if (error) throw std::runtime_error("not JSON: " + body);
  return value;
}

// Bytes as text in which every byte is one character: JSON has no other bytes than those of UTF-8.
std::string as_latin_1(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

// Records the answers that scripts/check-answers compares with the OpenAPI document: a line for each request,
// in the file that the environment names.
void record(const http::Request& request, const Reply& reply) {
  static const char* const file = std::getenv("FF_HTTP_ANSWERS");
  if (!file) return;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto headers_of = [](const std::vector<http::Header>& headers) {
    boost::json::object all;
    for (const auto& [name, value] : headers) all[name] = value;
    return all;
  };
  const boost::json::object line{
      {"test", test ? std::string(test->test_suite_name()) + "." + test->name() : ""},
      {"method", request.method},
      {"path", request.path},
      {"request_headers", headers_of(request.headers)},
      {"request_body", as_latin_1(request.body)},
      {"status", reply.status},
      {"headers", headers_of(reply.headers)},
      {"body", as_latin_1(reply.body)},
  };
  std::ofstream(file, std::ios::app) << boost::json::serialize(line) + "\n" << std::flush;
}

Engine opened(const std::string& url, EngineOptions options = {}) {
  auto engine = Engine::open(url, std::move(options));
  if (!engine) throw std::runtime_error(engine.error().to_string());
  return *std::move(engine);
}

}  // namespace

std::string Reply::at(const std::string& pointer) const {
  const auto root = parsed(body);
  const auto* value = find(root, pointer);
  if (!value) return "<missing>";
  if (value->is_string()) return std::string(value->get_string());
  return boost::json::serialize(*value);
}

bool Reply::has(const std::string& pointer) const {
  const auto root = parsed(body);
  return find(root, pointer) != nullptr;
}

std::size_t Reply::size(const std::string& pointer) const {
  const auto root = parsed(body);
  const auto* value = find(root, pointer);
  if (value && value->is_array()) return value->get_array().size();
  if (value && value->is_object()) return value->get_object().size();
  throw std::runtime_error("no array or object at " + pointer + " of " + body);
}

std::vector<std::string> Reply::keys(const std::string& pointer) const {
  const auto root = parsed(body);
  const auto* value = find(root, pointer);
  if (!value || !value->is_object()) throw std::runtime_error("no object at " + pointer + " of " + body);
  std::vector<std::string> names;
  for (const auto& member : value->get_object()) names.emplace_back(member.key());
  std::sort(names.begin(), names.end());
  return names;
}

std::string Reply::header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

void PrintTo(const Reply& reply, std::ostream* out) {
  *out << reply.status << ' ' << reply.body;
}

HttpTest::HttpTest(EngineOptions options)
    : store_(GetParam()), engine_(opened(store_.url(), std::move(options))) {
  serve({});
}

HttpTest::~HttpTest() {
  client_.reset();
  server_.reset();
  engine_.stop();
}

void HttpTest::serve(api::Options options, http::ServerOptions http_options) {
  client_.reset();
  server_.reset();
  api_ = std::make_unique<api::Api>(engine_, std::move(options));
  auto server = http::Server::start(std::move(http_options), *api_);
  if (!server) throw std::runtime_error(server.error().to_string());
  server_ = *std::move(server);
  auto client = http::Client::connect(url());
  if (!client) throw std::runtime_error(client.error().to_string());
  client_ = *std::move(client);
}

void HttpTest::close() {
  client_.reset();
  server_.reset();
  api_.reset();
  engine_ = opened("memory:");
}

void HttpTest::reopen(EngineOptions options) {
  close();
  engine_ = opened(store_.url(), std::move(options));
  serve({});
}

void HttpTest::reopen_changed(const std::string& sql) {
  close();
  store_.change(sql);
  reopen({});
}

Reply HttpTest::send(http::Request request) {
  // Tests write a query behind the path.
  if (const auto mark = request.path.find('?'); mark != std::string::npos && request.query.empty()) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  auto response = client_->send(request);
  if (!response) throw std::runtime_error(response.error().to_string());
  auto headers = response->headers;
  if (!response->content_type.empty()) headers.emplace_back("content-type", response->content_type);
  Reply reply{response->status, std::move(response->body), std::move(headers)};
  record(request, reply);
  return reply;
}

Reply HttpTest::with_json(const std::string& method, const std::string& path, std::string json) {
  return send({.method = method, .path = path, .headers = {json_type()}, .body = std::move(json)});
}

std::string HttpTest::submitted(const std::string& more_keys) {
  const auto reply = post("/v1/executions", R"({"execution_kind":"k")" + more_keys + "}");
  if (reply.status != 201) throw std::runtime_error("not created: " + reply.body);
  return reply.at("/Created/execution_id");
}

HttpTest::Task HttpTest::claimed(const std::string& lane) {
  const auto reply =
      post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":5000,"lanes":[")" + lane + R"("]})");
  if (reply.status != 200 || reply.size("/tasks") != 1)
    throw std::runtime_error("not claimed: " + reply.body);
  return {reply.at("/tasks/0/execution_id"), reply.at("/tasks/0/lease"), reply.at("/tasks/0/attempt_index")};
}

HttpTest::Task HttpTest::running(const std::string& more_keys) {
  submitted(more_keys);
  return claimed();
}

Reply HttpTest::report(const std::string& op, const Task& task, const std::string& more_keys) {
  return post("/v1/tasks/" + op,
              R"({"execution_id":")" + task.execution_id + R"(","lease":)" + task.lease + more_keys + "}");
}

}  // namespace flowfabric::tests
