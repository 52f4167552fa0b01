// Helpers over Boost.Describe: the names of an enum's values, and the columns of a record.
//
// A record is a plain struct; nested described structs are flattened, so that `Execution::state` becomes
// seven columns. A trailing underscore (`namespace_`) is not part of the column's name.
#pragma once

#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <optional>
#include <string_view>
#include <type_traits>

namespace flowfabric {

// `namespace_` and `operator_` are words of the language without the underscore.
constexpr std::string_view column_name(std::string_view member) {
  return member.ends_with('_') ? member.substr(0, member.size() - 1) : member;
}

template <class Enum>
constexpr std::size_t enum_size() {
  return boost::mp11::mp_size<boost::describe::describe_enumerators<Enum>>::value;
}

// All our enums count from zero without gaps, so that a value is an index into its names.
template <class Enum>
inline constexpr auto enum_names = [] {
  std::array<std::string_view, enum_size<Enum>()> names{};
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>([&](auto descriptor) {
    names[static_cast<std::size_t>(descriptor.value)] = column_name(descriptor.name);
  });
  return names;
}();

template <class Enum>
constexpr std::string_view enum_name(Enum value) {
  return enum_names<Enum>[static_cast<std::size_t>(value)];
}

template <class Enum>
constexpr std::optional<Enum> enum_from_name(std::string_view name) {
  for (std::size_t i = 0; i < enum_names<Enum>.size(); ++i) {
    if (enum_names<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <class T>
using PublicMembers = boost::describe::describe_members<T, boost::describe::mod_public>;

// Types with members of their own that are nevertheless one column say so here.
template <class T>
inline constexpr bool is_one_column = !boost::describe::has_describe_members<T>::value;

// Calls f(column name, field) for every column of `record`, in order.
template <class Record, class F>
constexpr void for_each_field(Record& record, F&& f) {
  using Plain = std::remove_const_t<Record>;
  boost::mp11::mp_for_each<PublicMembers<Plain>>([&](auto member) {
    auto& field = record.*member.pointer;
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (is_one_column<Field>) {
      f(column_name(member.name), field);
    } else {
      for_each_field(field, f);
    }
  });
}

// Calls f.template operator()<FieldType>(column name) for every column of Record, in order.
template <class Record, class F>
constexpr void for_each_column(F&& f) {
  boost::mp11::mp_for_each<PublicMembers<Record>>([&](auto member) {
    using Field = std::remove_cvref_t<decltype(std::declval<Record&>().*member.pointer)>;
    if constexpr (is_one_column<Field>) {
      f.template operator()<Field>(column_name(member.name));
    } else {
      for_each_column<Field>(f);
    }
  });
}

template <class Record>
constexpr std::size_t column_count() {
  std::size_t count = 0;
  for_each_column<Record>([&]<class Field>(std::string_view) { ++count; });
  return count;
}

// Calls f.template operator()<T>() for every type of a list.
template <class List, class F>
constexpr void for_each_type(F&& f) {
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, List>>(
      [&]<class T>(std::type_identity<T>) { f.template operator()<T>(); });
}

}  // namespace flowfabric
