#include "disk/witness.h"

#include <string_view>

namespace flowfabric::disk {

void Witness::advance_to(std::size_t event) {
  // Of which the ledger knows.
  constexpr std::string_view kAcknowledged = "CMTDFLARV";
  for (; next_ < event && next_ < trace_.events().size(); ++next_) {
    const auto& mark = trace_.events()[next_];
    if (mark.kind != EventKind::mark || mark.text.empty()) continue;
    const std::string line(mark.text);
    if (line[0] == 'Q') asked_.emplace(line.substr(2), next_);
    if (line[0] == 'N') refused_.insert(line.substr(2));
    if (line[0] == '!') complaints_.push_back(line);
    if (kAcknowledged.find(line[0]) == kAcknowledged.npos) continue;
    if (auto complaint = ledger_.note(line); !complaint.empty()) complaints_.push_back(std::move(complaint));
  }
}

}  // namespace flowfabric::disk
