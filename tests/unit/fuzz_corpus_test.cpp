// Runs the fuzz targets on the corpus: the seeds, and every input that has ever broken a target.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "targets.h"

namespace flowfabric {
namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};
void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

class FuzzCorpus : public testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus,
                         testing::Values(Target{"waitpoint_token", fuzz::waitpoint_token},
                                         Target{"resume_condition", fuzz::resume_condition},
                                         Target{"condition_tree", fuzz::condition_tree},
                                         Target{"http_edge", fuzz::http_edge}),
                         [](const auto& each) { return each.param.name; });

TEST_P(FuzzCorpus, BreaksNothing) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FF_FUZZ_CORPUS "/") + GetParam().name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(GetParam().run(input)) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 5);
}

// A target that cannot fail would find nothing.
TEST(FuzzTargets, ThrowWhenAPromiseIsBroken) {
  EXPECT_THROW(fuzz::require(false, "kept"), std::logic_error);
  EXPECT_NO_THROW(fuzz::require(true, "kept"));
}

}  // namespace
}  // namespace flowfabric
