// The commands of the program that are clients, each tried directly on a store and through a server: a test
// is written once.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "e2e/program.h"
#include "e2e/serving.h"
#include "flowfabric/engine.h"
#include "support/temporary_folder.h"

namespace flowfabric::e2e {

inline constexpr const char* kNobody = "'{fp:0}:00000000-0000-4000-8000-000000000000'";

class Cli : public testing::TestWithParam<bool> {
 protected:
  bool has_server() const { return GetParam(); }
  // Prepares the store before the first command.
  void prepare(const std::function<void(Engine&)>& work) const;

  // Adds --store; starts the server if that is how.
  Ended run(const std::string& arguments, const Surroundings& surroundings = {});
  // Standard output of a command that must succeed.
  std::string out(const std::string& arguments);
  // The output of a list: one object per line.
  std::vector<boost::json::object> objects(const std::string& arguments);
  boost::json::object object(const std::string& arguments);

  std::string submitted(const std::string& arguments = "k");  // its id, in quotes
  std::string file(const std::string& name, const std::string& content) const;
  const std::string& store() const { return store_; }
  const std::string& server_url();

 private:
  tests::TemporaryFolder folder_;
  std::string store_{"sqlite:" + folder_.file("jobs.db")};
  std::optional<Serving> server_;
};

inline std::string how(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Server" : "Direct";
}

bool has(const std::string& text, const std::string& words);

}  // namespace flowfabric::e2e
