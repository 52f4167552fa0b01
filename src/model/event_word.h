// Words of events as text, and back.
#pragma once

#include <string_view>

#include "flowfabric/event_word.h"
#include "model/describe.h"

namespace flowfabric {

template <class Enum>
std::string_view word_text(const EventWord<Enum>& word) {
  return word.unknown.empty() ? enum_name(word.known) : std::string_view(word.unknown);
}

template <class Enum>
EventWord<Enum> event_word(std::string_view text) {
  EventWord<Enum> word;
  if (const auto known = enum_from_name<Enum>(text))
    word.known = *known;
  else
    word.unknown = text;
  return word;
}

}  // namespace flowfabric
