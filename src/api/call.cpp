#include "api/call.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "model/base64.h"

namespace flowfabric::api {

namespace {

constexpr std::chrono::milliseconds kProbePatience{2000};
// A store that is away fails every request, and logging each of them helps nobody.
constexpr std::size_t kFailureLinesPerMinute = 600;

// One read from the store.
Result<bool> probe(Engine& engine) {
  const auto kids = engine.call(ListWaitpointKids{});
  if (!kids) return std::unexpected(kids.error());
  return true;
}

}  // namespace

std::shared_ptr<void> Permits::take() {
  if (taken_.fetch_add(1) >= most_) {
    --taken_;
    return nullptr;
  }
  return {static_cast<void*>(this), [this](void*) { --taken_; }};
}

Services::Services(Engine& the_engine, Options the_options)
    : engine(the_engine),
      options(std::move(the_options)),
      token(options.token),
      outside_signals(options.outside_signals_per_minute),
      failure_lines(kFailureLinesPerMinute),
      stream_operations(options.max_stream_operations),
      live_streams(options.max_live_streams),
      store_probe([this] { return probe(engine); }, kProbePatience),
      figures([this] { return engine.call(ReadFigures{}); }, kProbePatience),
      readers(options.read_threads),
      prober(2) {}

void Services::log_failure(const Error& error, const http::Request& asked, std::string_view request_id) {
  if (!options.failure_log || !failure_lines.take("")) return;
  options.failure_log(
      fmt::format("request {}, {} {}, failed: {}", request_id, asked.method, asked.path, error.to_string()));
}

Call::Call(Services& shared, std::shared_ptr<http::Exchange> its_exchange,
           std::function<void(http::Response)> answer)
    : services(shared), exchange(std::move(its_exchange)), answer_(std::move(answer)) {}

void Call::reply(http::Response response) {
  if (answered_.exchange(true)) return;
  answer_(std::move(response));
  answer_ = nullptr;
}

void Call::reply(int status, std::string json) {
  reply(http::Response{.status = status, .content_type = "application/json", .body = std::move(json)});
}

void Call::reply(const Error& error) {
  const bool own_words = !missing.empty() && error_info(error.code).kind == ErrorKind::not_found;
  if (own_words) return reply(Refusal{404, std::string(error_name(error.code)), missing, error.advice});
  if (is_failure(error)) services.log_failure(error, exchange->request, request_id);
  reply(status_of(error), error_body(error, request_id));
}

void Call::reply(const Refusal& refusal) {
  reply(refusal.status, error_body(refusal, request_id));
}

std::uint32_t attempt_of(const CallPtr& call) {
  const auto& text = call->segments[1];
  std::uint32_t index{};
  const auto end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, index);
  if (error != std::errc{} || last != end) {
    refuse_input("the attempt index in the path must be a whole number", "Attempts are counted from 0.");
  }
  return index;
}

void write_payload(JsonWriter& out, std::string_view name, std::string_view bytes) {
  if (bytes.empty())
    out.key(name).null();
  else if (Json::is_valid(bytes))
    out.key(name).raw(bytes);
  else
    out.field(std::string(name) + "_base64", to_base64(bytes));
}

std::string new_request_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string id;
  for (auto bits = random(); id.size() < 16; bits >>= 4) id += digits[bits & 15];
  return id;
}

}  // namespace flowfabric::api
