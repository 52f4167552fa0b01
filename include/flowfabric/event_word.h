// The word that says what an event is: one of an enum, or one that this version does not know.
#pragma once

#include <string>

namespace flowfabric {

// Logs outlive versions, and servers of several versions may share a store: what a newer one has written is
// passed on as it is.
template <class Enum>
struct EventWord {
  Enum known{};         // says nothing if the word is unknown
  std::string unknown;  // the word that this version does not know; empty: it is `known`

  EventWord() = default;
  EventWord(Enum word) : known(word) {}  // so that an event is made, and compared, with the enum itself
  bool operator==(const EventWord&) const = default;
};

}  // namespace flowfabric
