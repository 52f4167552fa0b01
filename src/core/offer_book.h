// Executions that are offered on a route.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>

#include "flowfabric/ids.h"

namespace flowfabric::core {

// A place in the order in which work is taken.
struct Offer {
  std::int64_t order{};
  ExecutionId execution_id;
  auto operator<=>(const Offer&) const = default;
};

// Asks for the best offers of a route after `after`.
struct OfferScan {
  std::int64_t route_id{};
  std::optional<Offer> after;
  std::uint32_t limit{};
};

// The offers of one route that a batch knows: all of them up to `horizon`, and those that the batch made.
struct OfferBook {
  std::set<Offer> known;
  std::optional<Offer> horizon;
  bool exhausted{false};
  std::size_t seen{0};  // how many of the executions that the batch has touched were looked at
};

}  // namespace flowfabric::core
