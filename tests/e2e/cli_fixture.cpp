#include "e2e/cli_fixture.h"

#include <fstream>
#include <sstream>

namespace flowfabric::e2e {

namespace json = boost::json;

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

void Cli::prepare(const std::function<void(Engine&)>& work) const {
  auto engine = Engine::open(store_);
  ASSERT_TRUE(engine) << engine.error().to_string();
  work(*engine);
}

const std::string& Cli::server_url() {
  if (!server_) server_.emplace(store_);
  return server_->url();
}

Ended Cli::run(const std::string& arguments, const Surroundings& surroundings) {
  return run_program(arguments + " --store '" + (has_server() ? server_url() : store_) + "'", surroundings);
}

std::string Cli::out(const std::string& arguments) {
  auto ended = run(arguments, {.only_output = true});
  EXPECT_EQ(ended.code, 0) << arguments << ": " << run(arguments).said;
  // No terminal, no colours.
  EXPECT_FALSE(has(ended.said, "\x1b")) << ended.said;
  return std::move(ended.said);
}

std::vector<json::object> Cli::objects(const std::string& arguments) {
  std::vector<json::object> found;
  std::istringstream lines(out(arguments));
  for (std::string line; std::getline(lines, line);) {
    json::error_code error;
    auto value = json::parse(line, error);
    EXPECT_FALSE(error) << line;
    if (!error) found.push_back(std::move(value).as_object());
  }
  return found;
}

json::object Cli::object(const std::string& arguments) {
  auto all = objects(arguments);
  EXPECT_EQ(all.size(), 1u) << arguments;
  return all.empty() ? json::object{} : all.front();
}

std::string Cli::submitted(const std::string& arguments) {
  auto id = out("submit " + arguments);
  if (id.ends_with('\n')) id.pop_back();
  return "'" + id + "'";
}

std::string Cli::file(const std::string& name, const std::string& content) const {
  std::ofstream(folder_.file(name)) << content;
  return folder_.file(name);
}

}  // namespace flowfabric::e2e
