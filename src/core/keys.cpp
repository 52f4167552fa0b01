#include "core/keys.h"

#include <algorithm>
#include <string>

namespace flowfabric::core {

namespace {

// The version of a UUID that is made by a rule of our own.
constexpr std::uint8_t kOwnRule = 8;

void set_version(Uuid& uuid, std::uint8_t version) {
  uuid.bytes[6] = static_cast<std::uint8_t>((version << 4) | (uuid.bytes[6] & 0x0F));
}

bool is_named_by_flow(const Uuid& execution) {
  return execution.bytes[6] >> 4 == kOwnRule;
}

// The part that all ids made from one flow's have in common, with it and with each other.
std::size_t family_of(Uuid flow_or_member) {
  set_version(flow_or_member, kOwnRule);
  std::fill(flow_or_member.bytes.begin() + 8, flow_or_member.bytes.end(), std::uint8_t{0});
  return std::hash<Uuid>{}(flow_or_member);
}

}  // namespace

Uuid id_within(const FlowId& flow, std::string_view text, std::uint64_t number) {
  std::string seed(reinterpret_cast<const char*>(flow.uuid.bytes.data()), flow.uuid.bytes.size());
  seed.append(text);
  const std::uint64_t low = fnv1a64(seed) + number * 0x9E3779B97F4A7C15ULL;
  Uuid uuid = flow.uuid;
  set_version(uuid, kOwnRule);
  for (std::size_t i = 0; i < 8; ++i) uuid.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  uuid.bytes[8] = static_cast<std::uint8_t>(0x80 | (uuid.bytes[8] & 0x3F));
  return uuid;
}

std::size_t affinity_of(const FlowId& id) {
  return family_of(id.uuid);
}

std::size_t affinity_of(const ExecutionId& id) {
  return is_named_by_flow(id.uuid) ? family_of(id.uuid) : std::hash<Uuid>{}(id.uuid);
}

}  // namespace flowfabric::core
