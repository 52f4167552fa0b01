// A backup on a disk that fails, or whose power fails: a copy that was announced is whole and stays; one that
// was not is whole or absent; and the original is as it was. FF_DISK_ALL=1: at every call, not only at some.
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "disk/backup_child.h"
#include "disk/load_child.h"
#include "disk/numbers.h"
#include "disk/recording.h"
#include "disk/state_checks.h"
#include "disk/states.h"
#include "e2e/waiting.h"

namespace flowfabric::disk {
namespace {

using std::chrono::milliseconds;

class BackupOnABadDisk : public testing::Test {
 protected:
  // A killed process has left its logs, with changes that are not in the tables yet.
  void SetUp() override {
    const Plan plan{.seed = static_cast<unsigned>(number_from("FF_DISK_SEED", std::random_device{}()))};
    const auto child = load_.start({kLoadArgument, url_of(load_.folder(), Promise::full), plan.to_string()});
    e2e::wait_until([&] { return child->is_speaking(); }, milliseconds(20'000), milliseconds(1));
    std::this_thread::sleep_for(milliseconds(60));
    child->kill();
    load_.settle();
    original_ = read_files(load_.folder());
    told_.advance_to(load_.trace().events().size());
  }

  // Returns whether the backup was announced.
  bool back_up(Recording& recording, const std::optional<Failing>& failing) {
    write_files(original_, recording.folder());
    const auto child = recording.start(
        {kBackupArgument, url_of(recording.folder(), Promise::full), recording.folder() + "/" + kCopy},
        {.failing = failing});
    child->wait();
    recording.settle();
    EXPECT_TRUE(child->exit_code() == 0 || child->exit_code() == 3) << "it crashed";
    return child->exit_code() == 0;
  }

  void check_copy(const std::string& bytes) {
    const tests::TemporaryFolder folder;
    write_files({{"a.db", bytes}}, folder.path());
    for (const auto& complaint : check_state(folder.path(), Promise::full, told_)) ADD_FAILURE() << complaint;
    ++copies_;
  }

  void check_original(const Recording& recording) const {
    const auto files = read_files(recording.folder());
    for (const auto& [path, bytes] : original_) {
      const auto found = files.find(path);
      ASSERT_NE(found, files.end()) << path;
      EXPECT_TRUE(found->second == bytes) << path << " has changed";
    }
  }

  void check_after_failure(const Recording& recording, const std::string& call) {
    const auto files = read_files(recording.folder());
    if (const auto copy = files.find(kCopy); copy != files.end()) check_copy(copy->second);
    if (call != "unlink") {
      EXPECT_FALSE(files.contains(kCopy + ".part")) << "what nobody will ask for is left";
    }
  }

  // Whatever the disk holds after a power cut.
  void check_announced(const Recording& recording) {
    Disk disk(recording.trace());
    disk.advance_to(recording.trace().events().size());
    std::set<std::string> checked;
    for (unsigned seed = 0; seed < 3 * kStrategies; ++seed) {
      const auto content = disk.state({static_cast<Strategy>(seed % kStrategies), seed});
      const auto copy = content.find(kCopy);
      ASSERT_NE(copy, content.end()) << "it was announced, and a power cut takes it away";
      if (checked.insert(copy->second).second) check_copy(copy->second);
    }
  }

  inline static const std::string kCopy = "copy.db";
  Recording load_;
  Content original_;
  Witness told_{load_.trace()};
  std::size_t copies_{0};
};

TEST_F(BackupOnABadDisk, IsWholeOrNotThere) {
  std::vector<std::uint64_t> calls;
  {
    Recording well;
    ASSERT_TRUE(back_up(well, {}));
    check_announced(well);
    const auto& header = well.trace().header();
    calls.assign(std::begin(header.calls), std::end(header.calls));
  }
  std::size_t errors = 0, announced = 0;
  const bool is_long = number_from("FF_DISK_ALL", 0) == 1;
  for (const int reason : {EIO, ENOSPC}) {
    for (std::size_t call = 0; call < kCalls; ++call) {
      EXPECT_GT(calls[call], 0u) << kCallNames[call];
      const auto step = is_long ? 1 : std::max<std::uint64_t>(calls[call] / 5, 1);
      for (std::uint64_t first = 1; first <= calls[call]; first += step) {
        const Failing failing{.call = kCallNames[call], .first = first, .reason = reason};
        SCOPED_TRACE(failing.call + " " + std::to_string(first) + (reason == EIO ? " EIO" : " ENOSPC"));
        Recording recording;
        const bool is_announced = back_up(recording, failing);
        ASSERT_EQ(recording.trace().count(EventKind::injected), 1u);
        is_announced ? check_announced(recording) : check_after_failure(recording, failing.call);
        check_original(recording);
        announced += is_announced ? 1 : 0;
        ++errors;
      }
    }
  }
  std::printf("%zu errors, %zu copies announced all the same, %zu copies looked at\n", errors, announced,
              copies_);
}

}  // namespace
}  // namespace flowfabric::disk
