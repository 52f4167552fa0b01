#include "server/serve.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <thread>

#include "api/router.h"
#include "api/tracer.h"
#include "flowfabric/version.h"
#include "model/encoding.h"
#include "server/config_values.h"
#include "server/ending.h"
#include "server/log.h"
#include "server/open_files.h"
#include "server/secret_files.h"
#include "store/store.h"

namespace flowfabric::server {

namespace {

// How long a server whose disk has failed reports that before it ends.
constexpr std::chrono::seconds kTellsOfFailure{1};
constexpr std::chrono::seconds kLooksAtFiles{1};
// The least time for the engine and the traces when clients have used up the grace.
constexpr std::chrono::milliseconds kLeastForEngine{1000};
constexpr std::chrono::milliseconds kLeastForTraces{500};
// Only monitoring talks to the administration.
constexpr std::size_t kMostToAdministration = 256;

api::Options api_options(const Config& config, Log& log, api::Tracer* tracer) {
  const bool has_friends_only = !config.http.tls_client_ca_file.empty() || config.allow_anonymous;
  api::Options options{.token = config.api_token,
                       .loopback_names_only = !has_friends_only,
                       .metrics_are_open = config.metrics_are_open,
                       .speaks_tls = !config.http.tls_certificate_file.empty(),
                       .cors_origins = config.cors_origins,
                       .outside_signals_per_minute = config.outside_signals_per_minute,
                       .max_stream_operations = config.max_stream_operations,
                       .secret_grace_ms = config.waitpoint_grace.count(),
                       .max_body = config.max_body,
                       .max_json_values = config.max_json_values,
                       .tracer = tracer};
  const auto record = [&log](const std::string& line) { log.record(line); };
  options.audit_log = record;
  if (config.access_log) options.access_log = record;
  options.failure_log = [&log](const std::string& text) { log.error(text); };
  return options;
}

Result<Engine> open_engine(const Config& config, Log& log, Ending& ending, api::Tracer* tracer) {
  if (config.store_url.starts_with("postgres")) {
    const auto migrated = migrate(config.store_url, config.engine);
    if (!migrated) return std::unexpected(migrated.error());
  }
  auto options = config.engine;
  options.notice = [&log](const std::string& text) { log.info(text); };
  options.warning = [&log](const std::string& text) { log.warn(text); };
  options.failure = [&log](const std::string& text) { log.error(text); };
  options.store_failed = [&ending](const Error& why) { ending.store_has_failed(why); };
  if (tracer) {
    options.attempts_ended = [tracer](std::vector<EndedAttempt> ended) { tracer->add(std::move(ended)); };
  }
  auto engine = Engine::open(config.store_url, std::move(options));
  if (!engine) return engine;
  for (const auto& lane : config.lanes) {
    const auto registered = engine->call(RegisterLane{.lane_id = lane, .registered_by = "configuration"});
    if (!registered) return std::unexpected(registered.error());
  }
  return engine;
}

void warn_if_open(const Config& config, Log& log) {
  const bool is_open = config.api_token.empty() && config.http.tls_client_ca_file.empty();
  if (!is_open) return;
  if (is_loopback_address(config.http.address)) {
    log.info("No API token is set: every program on this machine may do everything.");
  } else {
    log.warn("No API token is set: whoever reaches this server may do everything, /v1/admin included.");
  }
  if (std::ranges::find(config.cors_origins, "*") != config.cors_origins.end()) {
    log.warn("cors_origins has * and there is no token: every page in a browser may do everything.");
  }
}

// The kid of a secret from a file: the same on every server that reads the same file.
std::string kid_of(const std::string& secret_hex) {
  const auto bytes = bytes_from_hex(secret_hex).value_or("");
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return "file-" + hex_from_bytes({reinterpret_cast<const char*>(digest.data()), 8});
}

SecretFiles watch_secrets(const Config& config, Engine& engine, api::Api& api) {
  SecretFiles files;
  if (const auto file = config.files_in_use.find("api_token"); file != config.files_in_use.end()) {
    files.watch(file->second, [&api](const std::string& token) -> Result<std::string> {
      if (const auto checked = check_api_token(token); !checked) {
        return fail_with(ErrorCode::invalid_input, "the changed token is not used", checked.error());
      }
      api.set_token(token);
      return "the changed API token is in force";
    });
  }
  if (const auto file = config.files_in_use.find("waitpoint.secret"); file != config.files_in_use.end()) {
    files.watch(file->second, [&config, &engine](const std::string& hex) -> Result<std::string> {
      if (const auto checked = check_waitpoint_secret(hex); !checked) {
        return fail_with(ErrorCode::invalid_input, "the changed waitpoint secret is not used",
                         checked.error());
      }
      const auto rotated = engine.call(RotateWaitpointSecret{
          .new_kid = kid_of(hex), .new_secret_hex = hex, .grace_ms = config.waitpoint_grace.count()});
      if (!rotated) return std::unexpected(rotated.error());
      return "the changed waitpoint secret is in force, kid " + rotated->new_kid;
    });
  }
  return files;
}

void look_at_files(SecretFiles& files, Log& log) {
  for (const auto& news : files.look()) {
    if (news)
      log.info(*news);
    else
      log.warn(news.error().to_string());
  }
}

// The connections of each listening address: as set, or fewer if the limit of open files is lower.
struct Shares {
  std::size_t work;
  std::size_t administration;
};

Shares share_connections(const Config& config, Log& log) {
  const bool has_two = !config.admin_address.empty();
  const auto fit = connections_that_fit(http::kMostBeyondLimit * (has_two ? 2 : 1));
  const auto administration = has_two ? std::min(fit / 4, kMostToAdministration) : 0;
  const auto work = fit - administration;
  if (work < config.http.max_connections) {
    log.warn(fmt::format(
        "The limit of open files allows {} connections, fewer than http.max_connections ({}): raise it "
        "(ulimit -n, LimitNOFILE=).",
        work, config.http.max_connections));
  }
  return {std::min(work, config.http.max_connections), administration};
}

// Starts the second listening address, if there is one.
Result<std::unique_ptr<http::Server>> start_administration(const Config& config, http::ServerOptions options,
                                                           std::size_t connections, http::Handler& handler) {
  if (config.admin_address.empty()) return nullptr;
  options.address = config.admin_address;
  options.port = config.admin_port;
  options.max_connections = connections;
  return http::Server::start(std::move(options), handler);
}

}  // namespace

int serve(const Config& config) {
  Log log(config.log_level, config.log_format);
  Ending ending(log, config.shutdown_grace);
  raise_limit_of_open_files();
  for (const auto& warning : config.warnings) log.warn(warning);
  for (const auto& [rule, interval] : config.intervals) {
    if (interval.count() == 0) log.info(fmt::format("The rule {} is off: its interval is 0.", rule));
  }
  warn_if_open(config, log);

  // The tracer outlives the engine, which reports attempts to it until the end.
  std::unique_ptr<api::Tracer> tracer;
  if (!config.otlp_endpoint.empty()) {
    tracer = std::make_unique<api::Tracer>(api::TracerOptions{
        .endpoint = config.otlp_endpoint,
        // A request to the collector must not outlast the grace.
        .timeout = std::min(api::TracerOptions{}.timeout, std::max(config.shutdown_grace, kLeastForTraces)),
        .notice = [&log](const std::string& text) { log.warn(text); }});
  }
  ending.is_at("opening the store");
  auto engine = open_engine(config, log, ending, tracer.get());
  if (!engine) {
    log.error(engine.error().to_string());
    return kFailed;
  }
  if (tracer) {
    tracer->describe_with(
        [&engine](const ExecutionId& id) { return engine->call(DescribeExecution{.execution_id = id}); });
  }
  api::Api api(*engine, api_options(config, log, tracer.get()));
  auto http_options = config.http;
  const auto shares = share_connections(config, log);
  http_options.max_connections = shares.work;
  http_options.notice = [&log](const std::string& text) { log.warn(text); };
  api::Entrance to_work(api, api::Entrance::To::work);
  api::Entrance to_administration(api, api::Entrance::To::administration);
  const bool has_two = !config.admin_address.empty();
  auto administration = start_administration(config, http_options, shares.administration, to_administration);
  auto server = administration
                    ? http::Server::start(http_options, has_two ? to_work : static_cast<http::Handler&>(api))
                    : std::unexpected(administration.error());
  if (!server) {
    log.error(server.error().to_string());
    if (tracer) tracer->stop({});  // it may be reading from the engine
    return kFailed;
  }
  log.info(fmt::format("flowfabric {} listens on {}://{}:{}, store {}", kVersion,
                       config.http.tls_certificate_file.empty() ? "http" : "https", config.http.address,
                       (*server)->port(), store::redacted_url(config.store_url)));

  if (has_two) {
    log.info(
        fmt::format("the administration listens on {}:{}", config.admin_address, (*administration)->port()));
  }
  auto files = watch_secrets(config, *engine, api);
  ending.is_at("serving");
  while (!ending.wait_for(kLooksAtFiles)) look_at_files(files, log);
  ending.is_at("answering requests");
  if (tracer) tracer->must_end_by(ending.grace_ends() + kLeastForTraces);
  if (ending.store_failed()) std::this_thread::sleep_for(kTellsOfFailure);
  log.info("shutting down; a second signal ends it at once");
  api.begin_draining();
  if (!(*server)->drain(ending.grace_left())) log.warn("some requests were cut off after the grace period");
  // The administration reports to the end that the server is not ready.
  if (has_two) (*administration)->drain(std::chrono::milliseconds(100));
  ending.is_at("stopping the engine");
  engine->stop(std::max(ending.grace_left(), kLeastForEngine));
  ending.is_at("sending traces");
  if (tracer) tracer->stop(std::max(ending.grace_left(), kLeastForTraces));
  log.info("stopped");
  ending.is_at("closing the store");
  return ending.store_failed() ? kDiskFailed : 0;
}

}  // namespace flowfabric::server
