#include "engine/first_secret.h"

#include <future>

#include "core/suspension/keystore.h"
#include "engine/random_seed.h"
#include "model/waitpoint_token.h"

namespace flowfabric::engine {

namespace {

using core::SecretAtOpen;
using core::SecretFrom;

std::string words_for(SecretAtOpen found, SecretFrom whom) {
  if (found == SecretAtOpen::installed && whom == SecretFrom::engine) {
    return "no secret for waitpoint tokens was given: one was made, and is kept in the store";
  }
  if (found == SecretAtOpen::put_back) {
    return "the store had the waitpoint kid k1 without its secret: the one that was given was put there";
  }
  if (found == SecretAtOpen::another_is_stored) {
    return "the secret for waitpoint tokens that was given is not the one that the store has for kid k1: the "
           "stored one stays in force; rotate to a new kid to replace it";
  }
  return "";
}

}  // namespace

void install_first_secret(Committers& committers, const EngineOptions& options) {
  const auto& given = options.waitpoint_secret_hex;
  const auto whom = given.empty() ? SecretFrom::engine : SecretFrom::caller;
  const auto secret = bytes_from_hex(given.empty() ? random_secret_hex() : given).value_or("");
  auto found = std::make_shared<SecretAtOpen>();
  auto done = std::make_shared<std::promise<bool>>();
  Operation operation;
  operation.want = [](core::Unit& unit) {
    unit.want<Keystore>({});
    unit.want<HmacKey>({core::kFirstKid});
  };
  operation.run = [found, secret, whom](core::Unit& unit, core::Context& at) {
    *found = core::install_secret(unit, secret, whom, at);
    return Outcome::keep;
  };
  operation.answer = [done](const Error* refusal) { done->set_value(refusal == nullptr); };
  operation.seed = random_seed();
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  auto installed = done->get_future();
  committers.submit(std::move(operation));
  if (!installed.get() || !options.notice) return;
  const auto words = words_for(*found, whom);
  if (!words.empty()) options.notice(words);
}

}  // namespace flowfabric::engine
