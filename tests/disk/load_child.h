// The process whose disk is looked at: an engine under a load that changes all the time, which says in the
// trace what it was answered.
#pragma once

#include <string>

namespace flowfabric::disk {

inline constexpr const char* kLoadArgument = "--load-of-disk-tests";

// The marks: those of e2e/kill_child.h, and
//   O            the engine is open
//   Q id         about to be asked for
//   N id         refused, and certainly not stored
//   V id epoch   shown to a reader, with this lease epoch
//   X code       a call was refused because of the disk
//   Y what       a call that began after that (unless that was a dropped cache, read) was answered
//   S code       the engine said that its store has failed
//   Z what       a call that began after that was answered
//   W code       a call that began after that was refused, and not because the store is unavailable
//   G            after trouble, a call was answered at last
//   P            has nothing to do any more
//   E            in order from here on: every call was answered
//   ! what       nothing that may happen
struct Plan {
  unsigned seed{};
  int round{};
  bool is_short{false};  // a few calls of each kind, then it ends by itself; else until SIGTERM
  bool pauses{false};    // after a while it is busy, then waits for its end with nothing to do

  std::string to_string() const;
  static Plan parse(const std::string& text);
};

// Exits with 0 when it was asked to end and the engine has stopped.
int run_load(const std::string& url, const std::string& plan, int pipe);

}  // namespace flowfabric::disk
