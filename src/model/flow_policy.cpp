// The policies of flows: what makes sense, and how they are written outside of the engine.
#include <boost/json.hpp>

#include "flowfabric/flows.h"
#include "model/describe.h"
#include "model/partition.h"

namespace flowfabric {

namespace {

namespace json = boost::json;

constexpr std::uint32_t kMaxQuorum = 2'147'483'647;

std::unexpected<Error> invalid(std::string detail, std::string advice) {
  return fail_with(ErrorCode::invalid_input, std::move(detail), std::move(advice));
}

Result<std::uint32_t> quorum_from(const json::object& object) {
  const auto* k = object.if_contains("k");
  if (!k || !k->is_number())
    return invalid("quorum k: missing", "Say how many upstreams must succeed: \"k\".");
  boost::system::error_code not_whole;
  const auto number = k->to_number<std::int64_t>(not_whole);
  if (not_whole) return invalid("quorum k: not a whole number", "Give k as a whole number.");
  if (number > kMaxQuorum) {
    return invalid("quorum k exceeds supported maximum",
                   "A quorum may ask for at most 2147483647 upstreams.");
  }
  return static_cast<std::uint32_t>(std::max<std::int64_t>(number, 0));
}

}  // namespace

Result<void> validate(const JoinPolicy& policy) {
  if (policy.kind == JoinKind::all_of) return {};
  if (policy.kind == JoinKind::quorum) {
    if (policy.k < 1) {
      return invalid("quorum k must be >= 1", "Say how many of the upstreams must succeed.");
    }
    if (policy.k > kMaxQuorum) {
      return invalid("quorum k exceeds supported maximum",
                     "A quorum may ask for at most 2147483647 upstreams.");
    }
  }
  if (!policy.on_satisfied) {
    return invalid("on_satisfied: missing",
                   "Say what becomes of the remaining upstreams: cancel_remaining or let_run.");
  }
  return {};
}

Result<JoinPolicy> parse_join_policy(std::string_view text) {
  boost::system::error_code broken;
  const auto value = json::parse(text, broken);
  if (broken || !value.is_object()) {
    return invalid("join policy: not an object", "Give an object like {\"kind\":\"all_of\"}.");
  }
  const auto& object = value.as_object();
  const auto* kind = object.if_contains("kind");
  const auto known = kind && kind->is_string() ? enum_from_name<JoinKind>(kind->as_string()) : std::nullopt;
  if (!known) {
    const std::string name = kind && kind->is_string() ? std::string(kind->as_string()) : "";
    return invalid("unsupported_policy_variant: " + name, "The kinds are all_of, any_of and quorum.");
  }
  JoinPolicy policy{.kind = *known};
  if (policy.kind == JoinKind::quorum) {
    const auto k = quorum_from(object);
    if (!k) return std::unexpected(k.error());
    policy.k = *k;
  }
  if (const auto* then = object.if_contains("on_satisfied"); then && policy.kind != JoinKind::all_of) {
    policy.on_satisfied = then->is_string() ? enum_from_name<OnSatisfied>(then->as_string()) : std::nullopt;
    if (!policy.on_satisfied) {
      return invalid("on_satisfied: unknown", "It is cancel_remaining or let_run.");
    }
  }
  if (auto ok = validate(policy); !ok) return std::unexpected(ok.error());
  return policy;
}

std::string to_json(const JoinPolicy& policy) {
  json::object object{{"kind", enum_name(policy.kind)}};
  if (policy.kind == JoinKind::quorum) object["k"] = policy.k;
  if (policy.on_satisfied) object["on_satisfied"] = enum_name(*policy.on_satisfied);
  return json::serialize(object);
}

Result<CancellationPolicy> parse_cancellation_policy(std::string_view text) {
  if (text == "cancel_flow_only") return CancellationPolicy::flow_only;
  if (const auto known = enum_from_name<CancellationPolicy>(text)) return *known;
  return invalid("cancellation_policy: " + std::string(text),
                 "The policies are cancel_all, cancel_pending, cancel_unscheduled_only, flow_only and "
                 "let_active_finish.");
}

ExecutionId execution_id_for(const FlowId& flow_id, const Uuid& uuid, std::uint16_t flow_partitions) {
  return {partition_of(flow_id.uuid, flow_partitions), uuid};
}

}  // namespace flowfabric
