#include "core/suspension/keystore.h"

#include "core/operation.h"
#include "model/waitpoint_token.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kSeedDigits = 64;
constexpr std::int64_t kMaxGraceMs = (std::int64_t{1} << 53) - 1;

std::unexpected<Error> invalid_token() {
  return fail_with(ErrorCode::invalid_token, "",
                   "Use the token that was returned for this waitpoint of this execution.");
}

Result<std::string> active_kid(Unit& unit) {
  const auto* keystore = unit.find<Keystore>({});
  if (keystore) return keystore->active_kid;
  return fail_with(ErrorCode::hmac_secret_not_initialized, "",
                   "No secret is installed to sign waitpoint tokens with: seed one.");
}

Result<void> check_usable(const HmacKey* key, const std::string& kid) {
  if (key && !key->secret.data.empty()) return {};
  return fail_with(ErrorCode::invalid_secret, kid, "The stored secret cannot be used: rotate to a new one.");
}

void activate(Unit& unit, const std::string& kid, std::string secret, const std::string& previous,
              const Context& at) {
  unit.insert(HmacKey{.kid = kid,
                      .secret = Bytes{std::move(secret)},
                      .rotated_at_ms = at.now_ms,
                      .active = true,
                      .expires_at_ms = std::nullopt,
                      .previous_kid = previous});
  if (unit.find<Keystore>({}))
    unit.edit<Keystore>({}).active_kid = kid;
  else
    unit.insert(Keystore{.active_kid = kid});
}

// Retired secrets whose time is over, or which do not say when that will be.
std::uint32_t collect(Unit& unit, const Context& at) {
  const auto& retired = unit.ask(RetiredSecrets{});
  unit.fetch<HmacKey>(retired);
  std::vector<HmacKeyKey> over;
  for (const auto& found : retired) {
    const auto* key = unit.find<HmacKey>(found);
    if (key && !key->active && !is_accepted(*key, at.now_ms)) over.push_back(found);
  }
  for (const auto& found : over) unit.want_lock<HmacKey>(found);  // all at once
  for (const auto& found : over) unit.erase<HmacKey>(found);
  return static_cast<std::uint32_t>(over.size());
}

}  // namespace

bool is_accepted(const HmacKey& key, std::int64_t now_ms) {
  return key.active || (key.expires_at_ms && *key.expires_at_ms > 0 && *key.expires_at_ms >= now_ms);
}

SecretAtOpen install_secret(Unit& unit, const std::string& secret, SecretFrom whom, Context& at) {
  if (const auto* known = unit.find<HmacKey>({kFirstKid})) {
    if (whom == SecretFrom::engine) return SecretAtOpen::in_force;
    if (equal_in_constant_time(known->secret.data, secret)) return SecretAtOpen::in_force;
    if (!known->secret.data.empty()) return SecretAtOpen::another_is_stored;
    unit.edit<HmacKey>({kFirstKid}).secret = Bytes{secret};
    return SecretAtOpen::put_back;
  }
  if (unit.find<Keystore>({})) return SecretAtOpen::in_force;
  activate(unit, kFirstKid, secret, "", at);
  return SecretAtOpen::installed;
}

Result<SecretSeeded> apply(Unit& unit, const SeedWaitpointSecret& request, Context& at) {
  if (!is_kid(request.kid)) {
    return fail_with(ErrorCode::invalid_kid, "",
                     "A kid is 1 to 128 visible ASCII characters without a colon.");
  }
  auto secret = bytes_from_hex(request.secret_hex);
  if (!secret || request.secret_hex.size() != kSeedDigits) {
    return fail_with(ErrorCode::invalid_input, "secret_hex: not 64 hex digits",
                     "Give a secret of 32 bytes in hex, such as `openssl rand -hex 32` prints.");
  }
  if (const auto* known = unit.find<HmacKey>({request.kid})) {
    return SecretSeeded{request.kid, equal_in_constant_time(known->secret.data, *secret)};
  }
  if (const auto* keystore = unit.find<Keystore>({})) {
    return fail_with(ErrorCode::invalid_input, "another kid is active: " + keystore->active_kid,
                     "A secret is installed already: rotate to replace it.");
  }
  activate(unit, request.kid, *std::move(secret), "", at);
  return SecretSeeded{request.kid, std::nullopt};
}

Result<SecretRotated> apply(Unit& unit, const RotateWaitpointSecret& request, Context& at) {
  if (!is_kid(request.new_kid)) {
    return fail_with(ErrorCode::invalid_kid, "",
                     "A kid is 1 to 128 visible ASCII characters without a colon.");
  }
  auto secret = bytes_from_hex(request.new_secret_hex);
  if (!secret) {
    return fail_with(ErrorCode::invalid_secret_hex, "", "Give the secret as pairs of hex digits.");
  }
  if (request.grace_ms < 0 || request.grace_ms > kMaxGraceMs) {
    return fail_with(ErrorCode::invalid_grace_ms, "", "Give a number of milliseconds from 0 to 2^53-1.");
  }
  const auto* keystore = unit.find<Keystore>({});
  if (const auto* known = unit.find<HmacKey>({request.new_kid})) {
    const bool missing = known->secret.data.empty();
    if (!missing && !equal_in_constant_time(known->secret.data, *secret)) {
      return fail_with(ErrorCode::rotation_conflict, request.new_kid,
                       "This kid has another secret: choose a new kid.");
    }
    if (missing) unit.edit<HmacKey>({request.new_kid}).secret = Bytes{*std::move(secret)};
    return SecretRotated{.noop = true, .new_kid = request.new_kid, .previous_kid = std::nullopt};
  }
  SecretRotated answer{.noop = false, .new_kid = request.new_kid, .previous_kid = std::nullopt};
  answer.gc_count = collect(unit, at);
  if (keystore) {
    answer.previous_kid = keystore->active_kid;
    if (unit.find<HmacKey>({keystore->active_kid})) {
      auto& outgoing = unit.edit<HmacKey>({keystore->active_kid});
      outgoing.active = false;
      outgoing.expires_at_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(request.grace_ms));
    }
  }
  activate(unit, request.new_kid, *std::move(secret), answer.previous_kid.value_or(""), at);
  return answer;
}

Result<std::string> sign(Unit& unit, const ExecutionId& execution_id, const WaitpointId& waitpoint_id) {
  const auto kid = active_kid(unit);
  if (!kid) return kid;
  const auto* key = unit.find<HmacKey>({*kid});
  if (auto ok = check_usable(key, *kid); !ok) return std::unexpected(ok.error());
  return mint_token(*kid, key->secret.data, execution_id, waitpoint_id);
}

Result<void> verify(Unit& unit, const WaitpointRecordKey& key, const std::string& token, const Context& at) {
  if (token.empty()) {
    return fail_with(ErrorCode::missing_token, "", "Send the token that was returned for the waitpoint.");
  }
  const auto parts = split_token(token);
  if (!parts) return invalid_token();
  if (auto kid = active_kid(unit); !kid) return std::unexpected(kid.error());
  const std::string kid(parts->kid);
  const auto* secret = unit.find<HmacKey>({kid});
  if (!secret) return invalid_token();
  if (auto ok = check_usable(secret, kid); !ok) return ok;
  // The waitpoint comes last: until here, nothing depends on whether there is one.
  const auto genuine = mint_token(kid, secret->secret.data, owner_of(key), key.waitpoint_id);
  const bool is_genuine = equal_in_constant_time(genuine, token);
  const auto* waitpoint = unit.find<Waitpoint>(key);
  if (!is_genuine || !waitpoint || !equal_in_constant_time(waitpoint->token, token)) return invalid_token();
  if (is_accepted(*secret, at.now_ms)) return {};
  return fail_with(ErrorCode::token_expired, kid, "The secret behind this token was replaced too long ago.");
}

namespace {

void want(Unit& unit, const SeedWaitpointSecret&, const PartitionCounts&) {
  unit.want<Keystore>({});
}

}  // namespace

FLOWFABRIC_OPERATION(SeedWaitpointSecret, .want = want)
FLOWFABRIC_OPERATION(RotateWaitpointSecret)

}  // namespace flowfabric::core
