// Chooses what of the calls that were not synced is on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flowfabric::disk {

// The strategy for choosing among the states of a cut.
enum class Strategy {
  everything,    // as the process saw it
  nothing,       // except for synced data
  by_file,       // all of a file, or none
  by_kind,       // all of one kind of file (redo, say), and nothing of the others; or the reverse
  by_sector,     // each sector by itself
  by_call,       // each call by itself
  newest,        // the last calls only
  oldest,        // the first ones only: as if the disk had kept the order
  but_one,       // everything but one call, or one sector of it
  torn,          // of each call all, nothing, its beginning or its end
  names_only,    // names, and no content
  content_only,  // content under the old names
};
inline constexpr int kStrategies = 12;
const char* name_of(Strategy strategy);

struct Choice {
  Strategy strategy{};
  unsigned seed{};
  std::string to_string() const;
};

// A call that may or may not be on the disk.
struct Candidate {
  std::size_t event;
  std::uint32_t file;  // 0: it changes names
  std::string kind;
};

struct Sector {
  std::size_t event;
  std::uint32_t file;
  std::uint64_t number;
  std::uint64_t first;
  std::uint64_t last;
};

// Says the same whenever it is asked the same.
class Chooser {
 public:
  Chooser(const Choice& choice, std::vector<Candidate> candidates);

  std::uint64_t sector_bytes() const { return sector_bytes_; }
  // Whether a call has reached a sector, one of those from `first` to `last` that it writes to.
  bool has(const Sector& sector) const;
  bool has_name(std::size_t event) const;

 private:
  enum class Names { like_content, all, none, some };
  bool roll(std::uint64_t what, std::uint64_t part, double probability) const;
  bool is_of_kind(std::size_t event) const;
  std::uint64_t number_for(std::uint64_t what, std::uint64_t part) const;
  bool is_torn_off(const Sector& sector) const;

  const Choice choice_;
  std::vector<Candidate> candidates_;  // in the order of their events
  std::uint64_t sector_bytes_;
  double probability_;
  Names names_;
  std::size_t limit_{0};       // the event where the newest begin, or the oldest end; or the one left out
  bool leaves_out_all_{true};  // of the one, or a sector of it
  bool is_reversed_;
  std::string kind_;
};

}  // namespace flowfabric::disk
