#include "disk/chooser.h"

#include <algorithm>
#include <array>
#include <random>

namespace flowfabric::disk {

namespace {

constexpr std::array kNames{"everything", "nothing", "by_file", "by_kind", "by_sector",  "by_call",
                            "newest",     "oldest",  "but_one", "torn",    "names_only", "content_only"};
static_assert(kNames.size() == kStrategies);
constexpr std::array kProbabilities{0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98};

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace

const char* name_of(Strategy strategy) {
  return kNames[static_cast<std::size_t>(strategy)];
}

std::string Choice::to_string() const {
  return std::string(name_of(strategy)) + " by seed " + std::to_string(seed);
}

Chooser::Chooser(const Choice& choice, std::vector<Candidate> candidates)
    : choice_(choice), candidates_(std::move(candidates)) {
  std::mt19937 random(choice.seed);
  std::ranges::sort(candidates_, {}, &Candidate::event);
  sector_bytes_ = random() % 2 == 0 ? 512 : 4096;
  probability_ = kProbabilities[random() % kProbabilities.size()];
  names_ = static_cast<Names>(random() % 4);
  is_reversed_ = random() % 2 == 0;
  leaves_out_all_ = random() % 2 == 0;
  if (candidates_.empty()) return;
  // Chooses near the end as often as anywhere: the last calls are the least likely to be on disk.
  const auto count = candidates_.size();
  const auto from_end = random() % 2 == 0 ? random() % std::min<std::size_t>(count, 8) : random() % count;
  const auto place = count - 1 - from_end;
  limit_ = candidates_[choice.strategy == Strategy::oldest && random() % 2 == 0 ? from_end : place].event;
  kind_ = candidates_[random() % count].kind;
}

std::uint64_t Chooser::number_for(std::uint64_t what, std::uint64_t part) const {
  return mix(mix(mix(choice_.seed + 1) + what) + part);
}

bool Chooser::roll(std::uint64_t what, std::uint64_t part, double probability) const {
  return static_cast<double>(number_for(what, part) >> 11) * 0x1.0p-53 < probability;
}

bool Chooser::is_torn_off(const Sector& sector) const {
  const auto number = number_for(sector.event, 0);
  const auto tear = sector.first + (number >> 8) % (sector.last - sector.first + 1);
  switch (number % 6) {
    case 0:
      return false;
    case 1:
      return true;
    case 2:
    case 3:
      return sector.number > tear;
    default:
      return sector.number < tear;
  }
}

bool Chooser::is_of_kind(std::size_t event) const {
  const auto found = std::ranges::lower_bound(candidates_, event, {}, &Candidate::event);
  return found != candidates_.end() && found->kind == kind_;
}

bool Chooser::has(const Sector& sector) const {
  const auto event = sector.event;
  switch (choice_.strategy) {
    case Strategy::everything:
    case Strategy::content_only:
      return true;
    case Strategy::nothing:
    case Strategy::names_only:
      return false;
    case Strategy::by_file:
      return roll(1'000'000'000 + sector.file, 0, 0.5);
    case Strategy::by_kind:
      return is_of_kind(event) != is_reversed_;
    case Strategy::by_sector:
      return roll(event, sector.number, probability_);
    case Strategy::by_call:
      return roll(event, 0, probability_);
    case Strategy::newest:
      return event >= limit_;
    case Strategy::oldest:
      return event <= limit_;
    case Strategy::but_one:
      return event != limit_ || !(leaves_out_all_ || roll(event, sector.number, 0.5));
    case Strategy::torn:
      return !is_torn_off(sector);
  }
  return false;
}

bool Chooser::has_name(std::size_t event) const {
  if (choice_.strategy == Strategy::names_only || choice_.strategy == Strategy::everything) return true;
  if (choice_.strategy == Strategy::content_only || choice_.strategy == Strategy::nothing) return false;
  switch (names_) {
    case Names::like_content:
      return has({event, 0, 0, 0, 0});
    case Names::all:
      return true;
    case Names::none:
      return false;
    case Names::some:
      return roll(event, 1, 0.5);
  }
  return false;
}

}  // namespace flowfabric::disk
