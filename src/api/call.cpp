#include "api/call.h"

#include <charconv>
#include <random>

#include "model/base64.h"

namespace flowfabric::api {

namespace {

constexpr std::chrono::milliseconds kProbePatience{2000};

// One look at the store.
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
      stream_operations(options.max_stream_operations),
      live_streams(options.max_live_streams),
      store_probe([this] { return probe(engine); }, kProbePatience),
      figures([this] { return engine.call(ReadFigures{}); }, kProbePatience),
      readers(options.read_threads),
      prober(2) {}

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
  reply(status_of(error), error_body(error, request_id));
}

void Call::reply(const Refusal& refusal) {
  reply(refusal.status, error_body(refusal, request_id));
}

bool is_json(std::string_view bytes) {
  return Json::parse(bytes).has_value();
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
  else if (is_json(bytes))
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
