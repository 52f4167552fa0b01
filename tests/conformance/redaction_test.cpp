// Tokens and secrets are in no text (03 §3.3): every refusal that can be provoked with one, every view, event
// and print is searched for it.
#include <sstream>

#include "model/waitpoint_token.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

class Redaction : public SuspensionTest {
 protected:
  // The fingerprint may be shown, and what follows it may not.
  static void expect_hidden(const std::string& text, const std::string& secret) {
    const auto digest = secret.substr(secret.find(':') + 1);
    EXPECT_EQ(text.find(digest.substr(16)), text.npos) << text.find(digest);
  }
  template <class Request>
  void refused(const Request& request, ErrorCode code, const std::string& secret) {
    const auto error = expect_error(request, code);
    for (const auto& text : {error.to_string(), error.detail, error.advice}) expect_hidden(text, secret);
  }
  void refused(const DeliverSignal& request, ErrorCode code) {
    refused(request, code, request.waitpoint_token);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Redaction, kStores, store_name);

TEST_P(Redaction, OfTokensInEveryRefusalOfASignal) {
  suspend_new(all_of({single("k", {"a"}), single("k", {"b"})}), {.max_signals_per_execution = 2});
  const auto& given = waitpoint();
  auto request = signal(given, "a");
  request.waitpoint_token = forged(given.waitpoint_token);
  refused(request, ErrorCode::invalid_token);
  request.waitpoint_token = given.waitpoint_token + "0";
  refused(request, ErrorCode::invalid_token);
  request.waitpoint_token = "\xff" + given.waitpoint_token;
  refused(request, ErrorCode::invalid_token);
  request = signal(given, "a");
  request.execution_id.uuid.bytes[1] ^= 1;
  refused(request, ErrorCode::execution_not_found);

  // Also where the token was put into the wrong field.
  const auto token = given.waitpoint_token;
  for (const auto field : {&DeliverSignal::signal_name, &DeliverSignal::source_identity,
                           &DeliverSignal::correlation_id, &DeliverSignal::idempotency_key}) {
    request = signal(given, "a");
    request.*field = token + "\xff";
    refused(request, ErrorCode::invalid_input);
    request.*field = token + std::string(1025, 'x');
    refused(request, ErrorCode::invalid_input);
  }
  refused(signal(given, ""), ErrorCode::invalid_input);
  refused(signal(given, "__" + token), ErrorCode::invalid_input);
  request = signal(given, "a");
  request.payload = std::string(65'537, 'x');
  refused(request, ErrorCode::payload_too_large);
  deliver(signal(given, "a"));
  deliver(signal(given, "a"));
  refused(signal(given, "a"), ErrorCode::signal_limit_exceeded);

  must(CloseWaitpoint{id(), given.waitpoint_id});
  refused(signal(given, "b"), ErrorCode::waitpoint_closed);
  must(ResumeExecution{id()});
  refused(signal(given, "b"), ErrorCode::target_not_signalable);
  must(RotateWaitpointSecret{"k2", std::string(64, 'e'), 0});
  tick(1);
  refused(signal(given, "b"), ErrorCode::token_expired);
}

TEST_P(Redaction, OfTokensInWhatIsReadAndPrinted) {
  const auto task = running();
  const auto made = make_waitpoint(task, "early");
  const auto answer = suspend(suspension(task, all_of({single("a", {"x"}), single("b")})));
  deliver(signal(waitpoint(0), "x"));
  std::string texts = printed(answer) + printed(answer.waitpoints[0]) + printed(signal(waitpoint(0)));
  for (const auto& each : must(ListPendingWaitpoints{id()}).waitpoints) {
    EXPECT_EQ(each.token_kid, "k1");
    EXPECT_EQ(each.token_fingerprint.size(), 16u);
    texts += each.waitpoint_key + each.token_kid + each.token_fingerprint;
  }
  const auto view = seen();
  texts += view.continuation_metadata_pointer + view.close_reason;
  for (const auto& each : view.satisfied) texts += each;
  for (const auto& each : view.signals) texts += each.signal.waitpoint_key + each.signal.source_identity;
  const auto execution = describe(id());
  texts += execution.blocking_detail + execution.failure_reason;
  for (const auto& each : must(ReadSignalEvents{})) texts += each.source_identity + each.effect;
  for (const auto& each : must(CheckStore{}).violations) texts += each.where + each.what;
  for (const auto& each : {waitpoint(0), waitpoint(1), made}) expect_hidden(texts, each.waitpoint_token);
  EXPECT_NE(printed(answer.waitpoints[0]).find("k1:<REDACTED:len=64>"), std::string::npos);
  EXPECT_NE(printed(answer).find("k1:<REDACTED:len=64>"), std::string::npos);
  auto malformed = signal(waitpoint(0));
  malformed.waitpoint_token = "no token at all";
  EXPECT_NE(printed(malformed).find("<REDACTED:malformed>"), std::string::npos);
  EXPECT_EQ(printed(malformed).find("no token"), std::string::npos);
}

TEST_P(Redaction, OfTokensInEveryRefusalOfASuspend) {
  const auto task = running();
  const auto made = make_waitpoint(task, "k", 1000);
  const auto on = [&](const std::string& key) {
    auto request = suspension(task, single(key));
    request.waitpoints = {{.waitpoint_id = made.waitpoint_id, .use_pending = true}};
    return request;
  };
  refused(on("other"), ErrorCode::invalid_input, made.waitpoint_token);
  auto again = suspension(task);
  again.waitpoints = {{.waitpoint_id = made.waitpoint_id, .waitpoint_key = "k"}};
  refused(again, ErrorCode::waitpoint_already_exists, made.waitpoint_token);
  deliver(signal(made));
  auto strict = on("k");
  strict.strict = true;
  refused(strict, ErrorCode::already_satisfied, made.waitpoint_token);
  tick(1000);
  refused(on("k"), ErrorCode::pending_waitpoint_expired, made.waitpoint_token);
  must(CloseWaitpoint{task.execution_id, made.waitpoint_id});
  refused(on("k"), ErrorCode::waitpoint_not_pending, made.waitpoint_token);
}

TEST_P(Redaction, OfSecrets) {
  const std::string secret = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";
  must(RotateWaitpointSecret{"k2", secret});
  refused(RotateWaitpointSecret{"k2", "ff" + secret.substr(2)}, ErrorCode::rotation_conflict, secret);
  refused(RotateWaitpointSecret{"k3", secret + "x"}, ErrorCode::invalid_secret_hex, secret);
  refused(RotateWaitpointSecret{"k3", secret, -1}, ErrorCode::invalid_grace_ms, secret);
  refused(RotateWaitpointSecret{"a:" + secret, secret}, ErrorCode::invalid_kid, secret);
  refused(SeedWaitpointSecret{"k9", secret}, ErrorCode::invalid_input, secret);
  refused(SeedWaitpointSecret{"k9", secret + "0"}, ErrorCode::invalid_input, secret);
  refused(SeedWaitpointSecret{"k9:", secret}, ErrorCode::invalid_kid, secret);
  for (const auto& hex : {secret + "0", secret.substr(1) + "g", " " + secret}) {
    const auto opened = Engine::open("memory:", {.waitpoint_secret_hex = hex});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_secret_hex);
    expect_hidden(opened.error().to_string(), secret);
  }
}

}  // namespace
}  // namespace flowfabric
