// The name of an event: a value of an enum, or a word that this version does not know.
#pragma once

#include <string>

namespace flowfabric {

// Logs outlive versions, and servers of several versions may share a store. A word that a newer version has
// written is passed on unchanged.
template <class Enum>
struct EventWord {
  Enum known{};         // meaningless if the word is unknown
  std::string unknown;  // the unknown word; empty: the word is `known`

  EventWord() = default;
  EventWord(Enum word)
      : known(word) {}  // implicit, so that events are made from and compared with the enum itself
  bool operator==(const EventWord&) const = default;
};

}  // namespace flowfabric
