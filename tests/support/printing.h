// Printers of the public API's values for failed expectations.
#pragma once

#include <ostream>

#include "flowfabric/operations.h"
#include "model/event_word.h"

namespace flowfabric {

template <class Enum>
concept DescribedEnum = boost::describe::has_describe_enumerators<Enum>::value;

template <DescribedEnum Enum>
std::ostream& operator<<(std::ostream& out, Enum value) {
  return out << enum_name(value);
}

template <class Enum>
std::ostream& operator<<(std::ostream& out, const EventWord<Enum>& word) {
  return out << word_text(word);
}
std::ostream& operator<<(std::ostream& out, const StateVector& state);
std::ostream& operator<<(std::ostream& out, const ExecutionId& id);
template <class Tag>
std::ostream& operator<<(std::ostream& out, const TypedId<Tag>& id) {
  return out << id.to_string();
}

template <class T>
std::ostream& print_optional(std::ostream& out, const std::optional<T>& value) {
  if (value) return out << *value;
  return out << "none";
}

std::ostream& operator<<(std::ostream& out, const LeaseFence& fence);
std::ostream& operator<<(std::ostream& out, const Creation& creation);
std::ostream& operator<<(std::ostream& out, const Failed& failed);
std::ostream& operator<<(std::ostream& out, const NotActiveDetails& details);
std::ostream& operator<<(std::ostream& out, const ExecutionSnapshot& seen);
std::ostream& operator<<(std::ostream& out, const AttemptSnapshot& attempt);
std::ostream& operator<<(std::ostream& out, const LeaseEventView& event);
std::ostream& operator<<(std::ostream& out, const CompletionEventView& event);

}  // namespace flowfabric
