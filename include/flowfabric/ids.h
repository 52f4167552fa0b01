// Every identifier of the system. UUID-valued ids are distinct types, so that an attempt id cannot be
// passed where a lease id is meant; names chosen by callers are plain strings with a validator in
// src/model/text.h.
#pragma once

#include <boost/describe.hpp>

#include "flowfabric/uuid.h"

namespace flowfabric {

template <class Tag>
struct TypedId {
  Uuid uuid;

  static std::optional<TypedId> parse(std::string_view text) {
    if (auto uuid = Uuid::parse(text)) return TypedId{*uuid};
    return std::nullopt;
  }
  std::string to_string() const { return uuid.to_string(); }
  auto operator<=>(const TypedId&) const = default;
};

using FlowId = TypedId<struct FlowTag>;
using LeaseId = TypedId<struct LeaseTag>;
using AttemptId = TypedId<struct AttemptTag>;
using BudgetId = TypedId<struct BudgetTag>;
using QuotaPolicyId = TypedId<struct QuotaPolicyTag>;
using SignalId = TypedId<struct SignalTag>;
using WaitpointId = TypedId<struct WaitpointTag>;
using SuspensionId = TypedId<struct SuspensionTag>;
using EdgeId = TypedId<struct EdgeTag>;
using OperationId = TypedId<struct OperationTag>;  // of a bulk operation

// `{fp:N}:<uuid>`. N is the partition that holds all records of the execution; it is read from the id and
// never recomputed.
struct ExecutionId {
  std::uint16_t partition{};
  Uuid uuid;

  enum class ParseError { missing_tag, invalid_partition_index, invalid_uuid };
  // `{fp:007}` and any spelling of the UUID are accepted and made canonical.
  static std::optional<ExecutionId> parse(std::string_view text, ParseError* why = nullptr);
  std::string to_string() const;
  auto operator<=>(const ExecutionId&) const = default;
};
BOOST_DESCRIBE_STRUCT(ExecutionId, (), (partition, uuid))

}  // namespace flowfabric

template <class Tag>
struct std::hash<flowfabric::TypedId<Tag>> {
  std::size_t operator()(const flowfabric::TypedId<Tag>& id) const noexcept {
    return std::hash<flowfabric::Uuid>{}(id.uuid);
  }
};
template <>
struct std::hash<flowfabric::ExecutionId> {
  std::size_t operator()(const flowfabric::ExecutionId& id) const noexcept {
    return std::hash<flowfabric::Uuid>{}(id.uuid) + id.partition;
  }
};
