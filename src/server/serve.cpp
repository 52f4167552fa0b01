#include "server/serve.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "api/router.h"
#include "api/tracer.h"
#include "flowfabric/version.h"
#include "server/log.h"
#include "store/store.h"

namespace flowfabric::server {

namespace {

constexpr int kFailed = 1;
constexpr int kDiskFailed = 74;  // EX_IOERR of sysexits.h
// For how long a server whose disk has failed goes on telling so before it ends, and how long it then waits
// for those whom it is still answering.
constexpr std::chrono::seconds kTellsOfFailure{1};
constexpr std::chrono::seconds kGraceAfterFailure{2};

// Waited for by one thread instead of interrupting any.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() const {
    int signal = 0;
    while (sigwait(&set_, &signal) != 0) {
    }
  }

 private:
  sigset_t set_{};
};

api::Options api_options(const Config& config, Log& log, api::Tracer* tracer) {
  api::Options options{.token = config.api_token,
                       .cors_origins = config.cors_origins,
                       .max_stream_operations = config.max_stream_operations,
                       .secret_grace_ms = config.waitpoint_grace.count(),
                       .max_body = config.max_body,
                       .tracer = tracer};
  const auto record = [&log](const std::string& line) { log.record(line); };
  options.audit_log = record;
  if (config.access_log) options.access_log = record;
  return options;
}

// Whether the store has failed for good. If so, it ends the process as a signal would.
class StoreWatch {
 public:
  explicit StoreWatch(Log& log) : log_(log) {}
  void has_failed(const Error& why) {
    log_.error(why.to_string() +
               fmt::format(" This process refuses everything from now on, and ends with exit code {}.",
                           kDiskFailed));
    failed_ = true;
    kill(getpid(), SIGTERM);
  }
  bool failed() const { return failed_; }

 private:
  Log& log_;
  std::atomic<bool> failed_{false};
};

Result<Engine> open_engine(const Config& config, Log& log, StoreWatch& watch, api::Tracer* tracer) {
  if (config.store_url.starts_with("postgres")) {
    const auto migrated = migrate(config.store_url, config.engine);
    if (!migrated) return std::unexpected(migrated.error());
  }
  auto options = config.engine;
  options.notice = [&log](const std::string& text) { log.info(text); };
  options.warning = [&log](const std::string& text) { log.warn(text); };
  options.failure = [&log](const std::string& text) { log.error(text); };
  options.store_failed = [&watch](const Error& why) { watch.has_failed(why); };
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
  if (!config.api_token.empty()) return;
  log.warn("No API token is set: whoever reaches this server may do everything.");
  log.warn(
      "That includes rotating the waitpoint secret (/v1/admin/…), reading waitpoint tokens and results. Set "
      "FF_API_TOKEN, or let only trusted clients connect.");
}

}  // namespace

int serve(const Config& config) {
  // Before any thread is made, so that none of them is interrupted.
  const Signals signals;
  Log log(config.log_level, config.log_format);
  for (const auto& warning : config.warnings) log.warn(warning);
  for (const auto& [rule, interval] : config.intervals) {
    if (interval.count() == 0) log.info(fmt::format("The rule {} is off: its interval is 0.", rule));
  }
  warn_if_open(config, log);

  // It outlives the engine, which tells it of attempts to the end.
  std::unique_ptr<api::Tracer> tracer;
  if (!config.otlp_endpoint.empty()) {
    tracer = std::make_unique<api::Tracer>(api::TracerOptions{
        .endpoint = config.otlp_endpoint, .notice = [&log](const std::string& text) { log.warn(text); }});
  }
  StoreWatch watch(log);
  auto engine = open_engine(config, log, watch, tracer.get());
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
  http_options.notice = [&log](const std::string& text) { log.warn(text); };
  auto server = http::Server::start(http_options, api);
  if (!server) {
    log.error(server.error().to_string());
    if (tracer) tracer->stop({});  // it may be asking the engine
    return kFailed;
  }
  log.info(fmt::format("flowfabric {} listens on {}://{}:{}, store {}", kVersion,
                       config.http.tls_certificate_file.empty() ? "http" : "https", config.http.address,
                       (*server)->port(), store::redacted_url(config.store_url)));

  signals.wait();
  if (watch.failed()) std::this_thread::sleep_for(kTellsOfFailure);
  log.info("shutting down; a second signal ends it at once");
  std::thread([&signals] {
    signals.wait();
    _exit(kFailed);
  }).detach();
  const auto grace = watch.failed()
                         ? std::min<std::chrono::milliseconds>(config.shutdown_grace, kGraceAfterFailure)
                         : config.shutdown_grace;
  const auto until = std::chrono::steady_clock::now() + grace;
  api.begin_draining();
  if (!(*server)->drain(grace)) log.warn("some requests were cut off after the grace period");
  const auto left = [&] {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    return std::max(rest, std::chrono::milliseconds(1000));
  };
  engine->stop(left());
  if (tracer) tracer->stop(left());
  log.info("stopped");
  return watch.failed() ? kDiskFailed : 0;
}

}  // namespace flowfabric::server
