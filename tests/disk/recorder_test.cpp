// The recorder's traces, and the states that follow from them.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "disk/recording.h"
#include "disk/script_child.h"
#include "disk/states.h"

namespace flowfabric::disk {
namespace {

class ScriptedDisk : public testing::Test {
 protected:
  void run(const std::string& script, const Settings& settings = {}) { run(recording_, script, settings); }
  static void run(Recording& recording, const std::string& script, const Settings& settings) {
    const auto child = recording.start({kScriptArgument, recording.folder(), script}, settings);
    child->wait();
    ASSERT_TRUE(child->ended_well());
    recording.settle();
  }

  // All states that a cut at the end may leave, as texts: "a=4A" is a file of four letters A.
  std::set<std::string> states() const { return states(recording_); }
  static std::set<std::string> states(const Recording& recording) {
    Disk disk(recording.trace());
    disk.advance_to(recording.trace().events().size());
    std::set<std::string> found;
    for (unsigned seed = 0; seed < 3000; ++seed) {
      found.insert(text_of(disk.state({static_cast<Strategy>(seed % kStrategies), seed})));
    }
    return found;
  }

  static std::string text_of(const Content& content) {
    std::string text;
    for (const auto& [path, bytes] : content) {
      text += (text.empty() ? "" : " ") + path + "=";
      for (std::size_t i = 0; i < bytes.size();) {
        const auto end = std::min(bytes.find_first_not_of(bytes[i], i), bytes.size());
        text += std::to_string(end - i) + (bytes[i] == '\0' ? '0' : bytes[i]);
        i = end;
      }
    }
    return text;
  }

  std::size_t marks() const { return recording_.trace().count(EventKind::mark); }

  using States = std::set<std::string>;
  Recording recording_;
  static inline const std::string kMade = "write a 0 4 A\nsync a\nsync_folder\n";
};

TEST_F(ScriptedDisk, WhatIsSyncedIsThere) {
  run(kMade);
  EXPECT_EQ(states(), (States{"a=4A"}));
}

TEST_F(ScriptedDisk, ANameIsLostUntilItsFolderIsSynced) {
  run("write a 0 4 A\nsync a");
  EXPECT_EQ(states(), (States{"", "a=4A"}));
}

TEST_F(ScriptedDisk, AWriteMayBeThereOrNot) {
  run(kMade + "write a 2 4 B");
  EXPECT_EQ(states(), (States{"a=4A", "a=2A4B"}));
}

TEST_F(ScriptedDisk, AWriteIsTornAtSectors) {
  run(kMade + "write a 0 1024 B");
  EXPECT_EQ(states(), (States{"a=4A", "a=1024B", "a=512B",
                              "a=4A508"
                              "0512B"}));
}

TEST_F(ScriptedDisk, ASectorIsWrittenAsAWhole) {
  run(kMade + "write a 4 4 B\nwrite a 8 4 C");
  EXPECT_EQ(states(), (States{"a=4A", "a=4A4B", "a=4A4B4C"})) << "C is never there without B";
}

TEST_F(ScriptedDisk, FilesKeepNoOrder) {
  run("write a 0 4 A\nwrite b 0 4 B\nsync a\nsync b\nsync_folder\nwrite a 0 4 C\nwrite b 0 4 D");
  EXPECT_EQ(states(), (States{"a=4A b=4B", "a=4C b=4B", "a=4A b=4D", "a=4C b=4D"}));
}

TEST_F(ScriptedDisk, ATruncationMayBeLost) {
  run(kMade + "truncate a 1");
  EXPECT_EQ(states(), (States{"a=4A", "a=1A"}));
}

TEST_F(ScriptedDisk, ARemovedFileMayComeBackBesideItsSuccessor) {
  run(kMade + "unlink a\nwrite a 0 2 B\nsync a");
  EXPECT_EQ(states(), (States{"", "a=4A", "a=2B"}));
}

TEST_F(ScriptedDisk, ARenameIsOneStep) {
  run(kMade + "rename a b");
  EXPECT_EQ(states(), (States{"a=4A", "b=4A"}));
}

TEST_F(ScriptedDisk, AFolderOfItsOwnHasNamesOfItsOwn) {
  run("mkdir d\nwrite d/a 0 4 A\nsync d/a\nsync_folder d");
  EXPECT_EQ(states(), (States{"", "d/= d/a=4A"}));
}

TEST_F(ScriptedDisk, TheNextProcessGoesOnWithTheTrace) {
  run("write a 0 4 A\nsync a");
  run("sync_folder\nwrite a 4 4 B");
  EXPECT_EQ(states(), (States{"a=4A", "a=4A4B"}));
  EXPECT_EQ(recording_.trace().count(EventKind::start), 2u);
}

TEST_F(ScriptedDisk, WhatWasThereBeforeIsOnDisk) {
  write_files({{"a", "AAAA"}, {"d/", ""}, {"d/b", "BB"}}, recording_.folder());
  run("write a 4 4 C");
  EXPECT_EQ(states(), (States{"a=4A d/= d/b=2B", "a=4A4C d/= d/b=2B"}));
}

TEST_F(ScriptedDisk, ASyncThatIsLeftOutMakesNothingDurable) {
  run(kMade);
  std::string site;
  for (const auto& event : recording_.trace().events()) {
    if (event.kind != EventKind::site || !event.text.starts_with("db")) continue;
    char text[24];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(event.extra));
    site = text;
  }
  run("write a 4 4 B\nsync a", {.skipped_sites = site});
  EXPECT_EQ(states(), (States{"a=4A", "a=4A4B"}));
}

TEST_F(ScriptedDisk, AFailedSyncLosesWhatItWasFor) {
  run(kMade + "write a 0 4 B\nsync a\nsync a\nwrite a 512 4 C\nsync a",
      {.failing = Failing{.call = "sync", .first = 3, .reason = EIO}});
  // A later sync succeeds, and does not bring it back.
  EXPECT_EQ(states(), (States{"a=4A508"
                              "04C",
                              "a=4B508"
                              "04C"}));
  EXPECT_EQ(marks(), 1u);
  EXPECT_EQ(read_files(recording_.folder()).at("a").substr(0, 4), "BBBB") << "the cache shows it";
}

TEST_F(ScriptedDisk, AFailedSyncOfAFolderLosesNothing) {
  const Settings second_fails{.failing = Failing{.call = "sync", .first = 2, .reason = EIO}};
  run("write a 0 4 A\nsync a\nsync_folder", second_fails);
  EXPECT_EQ(states(), (States{"", "a=4A"}));
  run("sync_folder");
  EXPECT_EQ(states(), (States{"a=4A"}));
}

TEST_F(ScriptedDisk, AFailedSyncMayDropTheCache) {
  run(kMade + "write a 2 4 B\nsync a\nwrite a 512 4 C",
      {.failing = Failing{.call = "sync", .first = 3, .reason = EIO, .how = "drop"}, .keeps_old = true});
  EXPECT_EQ(states(), (States{"a=4A20",
                              "a=4A508"
                              "04C"}));
  EXPECT_EQ(read_files(recording_.folder()).at("a").substr(0, 6), std::string("AAAA\0\0", 6));
}

// Two syncs of a file at the same time, of which the one that began first fails. The other one fails with it
// if it is still under way; if it was quicker, everything that both were for is on disk.
TEST_F(ScriptedDisk, ASyncThatSucceedsBesideAFailedOneHasStoredEverything) {
  bool both_failed = false;
  bool other_was_quicker = false;
  for (int i = 0; i < 200 && !(both_failed && other_was_quicker); ++i) {
    Recording recording;
    // A sync more before them makes the recorder choose other times for how long they take.
    const bool has_more = i % 2 == 1;
    const Failing first_fails{.call = "sync", .first = has_more ? 4u : 3u, .reason = EIO, .how = "drop"};
    run(recording, kMade + (has_more ? "sync a\n" : "") + "write a 0 4 B\nsync_twice a",
        {.failing = first_fails, .keeps_old = true});
    std::vector<EventKind> syncs;
    for (const auto& event : recording.trace().events()) {
      const bool is_end = event.kind == EventKind::sync_end || event.kind == EventKind::sync_failed;
      if (is_end || event.kind == EventKind::sync_begin) syncs.push_back(event.kind);
    }
    ASSERT_EQ(syncs.size(), has_more ? 10u : 8u);
    const auto last = syncs.end() - 4;  // events, of the two
    if (last[1] != EventKind::sync_begin) continue;
    const bool is_stored = last[2] == EventKind::sync_end;
    EXPECT_EQ(last[3], EventKind::sync_failed) << i;
    EXPECT_EQ(states(recording), (States{is_stored ? "a=4B" : "a=4A"})) << i;
    EXPECT_EQ(read_files(recording.folder()).at("a"), is_stored ? "BBBB" : "AAAA") << i;
    (is_stored ? other_was_quicker : both_failed) = true;
  }
  EXPECT_TRUE(both_failed && other_was_quicker) << "neither was met in 200 runs";
}

TEST_F(ScriptedDisk, AFailedWriteWritesNothing) {
  run(kMade + "write a 0 4 B\nwrite a 0 4 C\nwrite a 4 4 D",
      {.failing = Failing{.call = "write", .first = 2, .count = 2, .reason = ENOSPC}});
  EXPECT_EQ(marks(), 2u);
  EXPECT_EQ(states(), (States{"a=4A", "a=4A4D"}));
}

TEST_F(ScriptedDisk, AFullDiskMayTakeHalf) {
  run(kMade + "write a 0 4 B\nwrite a 0 4 C",
      {.failing = Failing{.call = "write", .first = 2, .reason = ENOSPC, .how = "half"}});
  EXPECT_EQ(marks(), 2u);
  EXPECT_EQ(states(), (States{"a=4A", "a=2B2A"}));
}

}  // namespace
}  // namespace flowfabric::disk
