#include "server/config_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "http/networks.h"
#include "model/describe.h"
#include "model/text.h"

namespace flowfabric::server {

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMost16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostMs = (1ull << 53) - 1;  // what a JSON number holds exactly
constexpr std::uint64_t kDayMs = 86'400'000;
constexpr std::uint64_t kYearMs = 365 * kDayMs;
constexpr std::uint64_t kMostBytes = 1u << 30;
constexpr std::uint64_t kMostMemory = 1ull << 44;
constexpr milliseconds kShortestInterval{100};

// ---- What a setting may mean ----

template <class Field>
Meaning number(std::uint64_t least, std::uint64_t most, Field field) {
  return {Shape::number, [=](const std::string& text, Config& config) -> Parsed<std::string> {
            const auto parsed = parse_number(text, least, most);
            if (!parsed) return std::unexpected(parsed.error());
            auto& target = field(config);
            target = static_cast<std::remove_reference_t<decltype(target)>>(*parsed);
            return std::to_string(*parsed);
          }};
}

template <class Field>
Meaning text(Field field, Parsed<void> (*check)(std::string_view) = nullptr) {
  return {Shape::text, [=](const std::string& given, Config& config) -> Parsed<std::string> {
            const auto checked = check ? check(given) : Parsed<void>{};
            if (!checked) return std::unexpected(checked.error());
            return field(config) = given;
          }};
}

template <class Field>
Meaning boolean(Field field) {
  return {Shape::boolean, [=](const std::string& given, Config& config) -> Parsed<std::string> {
            const auto parsed = parse_boolean(given);
            if (!parsed) return std::unexpected(parsed.error());
            field(config) = *parsed;
            return std::string(*parsed ? "true" : "false");
          }};
}

template <class Field>
Meaning word(Field field) {
  return {Shape::text, [=](const std::string& given, Config& config) -> Parsed<std::string> {
            auto& target = field(config);
            using Enum = std::remove_reference_t<decltype(target)>;
            const auto found = enum_from_name<Enum>(lower_case(given));
            if (!found)
              return std::unexpected(fmt::format("Give one of {}.", fmt::join(enum_names<Enum>, ", ")));
            target = *found;
            return std::string(enum_name(*found));
          }};
}

Meaning interval(const std::string& rule, std::uint64_t unit_ms) {
  return {Shape::number, [=](const std::string& given, Config& config) -> Parsed<std::string> {
            const auto parsed = parse_number(given, 0, kYearMs / unit_ms);
            if (!parsed) return std::unexpected(parsed.error() + " Zero turns the rule off.");
            const milliseconds wanted(*parsed * unit_ms);
            config.intervals[rule] = wanted.count() == 0 ? wanted : std::max(wanted, kShortestInterval);
            return std::to_string(*parsed);
          }};
}

// ---- Those that are one of a kind ----

Parsed<std::string> apply_store(const std::string& url, Config& config) {
  if (const auto checked = check_store_url(url); !checked) return std::unexpected(checked.error());
  return config.store_url = url;
}

Parsed<std::string> apply_listen(const std::string& given, Config& config) {
  const auto parsed = parse_listen_address(given);
  if (!parsed) return std::unexpected(parsed.error());
  config.http.address = parsed->host;
  config.http.port = parsed->port;
  return given;
}

Parsed<std::string> apply_admin_listen(const std::string& given, Config& config) {
  const auto parsed = parse_listen_address(given);
  if (!parsed) return std::unexpected(parsed.error());
  config.admin_address = parsed->host;
  config.admin_port = parsed->port;
  return given;
}

Parsed<std::string> apply_api_token(const std::string& token, Config& config) {
  if (const auto checked = check_api_token(token); !checked) return std::unexpected(checked.error());
  return config.api_token = token;
}

Parsed<std::string> apply_waitpoint_secret(const std::string& hex, Config& config) {
  if (const auto checked = check_waitpoint_secret(hex); !checked) return std::unexpected(checked.error());
  return config.engine.waitpoint_secret_hex = hex;
}

Parsed<std::string> apply_lanes(const std::string& given, Config& config) {
  auto lanes = parse_list(given);
  if (!lanes) return std::unexpected(lanes.error());
  for (const auto& lane : *lanes) {
    if (!check_lane(lane)) return std::unexpected("A lane has 1 to 64 bytes of printable ASCII.");
  }
  config.lanes = *std::move(lanes);
  return fmt::format("{}", fmt::join(config.lanes, ","));
}

bool may_be_in_a_header(const std::string& origin) {
  return std::ranges::all_of(origin, [](char c) { return c >= 0x20 && c < 0x7F; });
}

Parsed<std::string> apply_cors_origins(const std::string& given, Config& config) {
  auto origins = split_list(given);
  const auto dropped = std::erase_if(origins, [](const auto& origin) { return !may_be_in_a_header(origin); });
  if (origins.empty() && dropped > 0)
    return std::unexpected("Give origins like https://example.com, or * for everybody.");
  if (dropped > 0) {
    config.warnings.push_back(
        fmt::format("{} of cors_origins cannot be sent in a header, and were dropped", dropped));
  }
  config.cors_origins = std::move(origins);
  return fmt::format("{}", fmt::join(config.cors_origins, ","));
}

Parsed<std::string> apply_trusted_addresses(const std::string& given, Config& config) {
  config.http.trusted_networks = split_list(given);
  // An empty text would mean "not given".
  if (given == "none") config.http.trusted_networks.clear();
  for (const auto& text : config.http.trusted_networks) {
    if (!http::Network::parse(text))
      return std::unexpected(text + ": give addresses, and networks like 10.0.0.0/8.");
  }
  if (config.http.trusted_networks.empty()) return "none";
  return fmt::format("{}", fmt::join(config.http.trusted_networks, ","));
}

Parsed<std::string> apply_scanner_namespace(const std::string& name, Config& config) {
  if (!check_namespace(name)) {
    return std::unexpected("A namespace has up to 256 bytes of UTF-8 without control characters.");
  }
  config.engine.scanner_filter.namespace_ = name;
  return name;
}

Parsed<std::string> apply_scanner_tag(const std::string& tag, Config& config) {
  const auto equals = tag.find('=');
  if (equals == tag.npos || equals == 0) return std::unexpected("Give the tag as key=value.");
  config.engine.scanner_filter.instance_tag = {tag.substr(0, equals), tag.substr(equals + 1)};
  return tag;
}

// `ff_server=debug,warn` means warn except for some parts. Parts have no meaning here.
std::optional<std::string> level_of_rust_log(const std::string& directives) {
  for (const auto& directive : split_list(directives)) {
    const auto level = lower_case(directive);
    if (enum_from_name<LogLevel>(level)) return level;
  }
  return std::nullopt;
}

// ---- The table ----

#define INTO(path)               \
  [](Config & config) -> auto& { \
    return config.path;          \
  }

std::vector<Setting> make_table() {
  const Meaning store{Shape::url, apply_store};
  const Meaning listen{Shape::text, apply_listen};
  const Meaning admin_listen{Shape::text, apply_admin_listen};
  const Meaning api_token{Shape::secret, apply_api_token, true};
  const Meaning waitpoint_secret{Shape::secret, apply_waitpoint_secret, true};
  const Meaning origins{Shape::list, apply_cors_origins};
  const Meaning lanes{Shape::list, apply_lanes};
  const Meaning scanner_namespace{Shape::text, apply_scanner_namespace};
  const Meaning scanner_tag{Shape::text, apply_scanner_tag};
  const Meaning trusted_addresses{Shape::list, apply_trusted_addresses};
  return {
      {"store", "FF_STORE", "sqlite:flowfabric.db",
       "Store URL: memory:, sqlite:PATH or postgres://user@host/database", store},
      {"store_file", "FF_STORE_FILE", "", "File that holds the store URL, for one with a password",
       text(INTO(store_file))},
      {"listen", "FF_LISTEN_ADDR", "127.0.0.1:9090",
       "Address and port, [::1]:9090 for IPv6; port 0: any free port", listen},
      {"admin_listen", "FF_ADMIN_LISTEN_ADDR", "",
       "Another address for /metrics, health and /v1/admin, which are then not served on the first",
       admin_listen},
      {"api_token", "FF_API_TOKEN", "",
       "Bearer token that clients must send; without one, any client may do anything", api_token},
      {"api_token_file", "FF_API_TOKEN_FILE", "", "File that holds the API token",
       text(INTO(api_token_file))},
      {"allow_anonymous", "FF_ALLOW_ANONYMOUS", "false",
       "Listen without a token on an address that others can reach: they may do anything",
       boolean(INTO(allow_anonymous))},
      {"metrics_open", "FF_METRICS_OPEN", "false", "Whether /metrics can be read without the token",
       boolean(INTO(metrics_are_open))},
      {"outside_signals_per_minute", "FF_OUTSIDE_SIGNALS_PER_MINUTE", "600",
       "Signals per minute that an address may send with only a waitpoint's token; 0: none",
       number(0, kMost32, INTO(outside_signals_per_minute))},
      {"cors_origins", "FF_CORS_ORIGINS", "",
       "Origins whose pages may call the API, separated by commas; empty: none", origins},
      {"lanes", "FF_LANES", "default", "Lanes to register at the start, separated by commas", lanes},
      {"max_stream_operations", "FF_MAX_CONCURRENT_STREAM_OPS", "64",
       "Reads and tails of output streams at a time", number(1, kMost32, INTO(max_stream_operations)),
       "FF_MAX_CONCURRENT_TAIL"},
      {"shutdown_grace_ms", "FF_SHUTDOWN_GRACE_MS", "30000",
       "Time for running requests after a signal to stop; two seconds later the process is ended by force",
       number(0, kDayMs, INTO(shutdown_grace))},
      {"otlp_endpoint", "FF_OTLP_ENDPOINT", "",
       "Collector of traces, for example http://localhost:4318; empty: none",
       text(INTO(otlp_endpoint), check_http_url)},

      {"waitpoint.secret", "FF_WAITPOINT_HMAC_SECRET", "",
       "Secret that signs waitpoint tokens, in hex; without one, the store makes and keeps its own",
       waitpoint_secret},
      {"waitpoint.secret_file", "FF_WAITPOINT_HMAC_SECRET_FILE", "",
       "File that holds the secret that signs waitpoint tokens", text(INTO(waitpoint_secret_file))},
      {"waitpoint.grace_ms", "FF_WAITPOINT_HMAC_GRACE_MS", "86400000",
       "How long tokens stay valid after their secret was rotated",
       number(0, kMostMs, INTO(waitpoint_grace))},

      {"tls.certificate", "FF_TLS_CERTIFICATE_FILE", "",
       "File with the certificate chain, PEM; turns HTTPS on", text(INTO(http.tls_certificate_file))},
      {"tls.key", "FF_TLS_KEY_FILE", "", "File with the certificate's private key, PEM",
       text(INTO(http.tls_key_file))},
      {"tls.client_ca", "FF_TLS_CLIENT_CA_FILE", "",
       "File with authorities, PEM; clients must present a certificate that one of them has signed",
       text(INTO(http.tls_client_ca_file))},
      {"tls.ciphers", "FF_TLS_CIPHERS", "",
       "Ciphers of TLS 1.2, in OpenSSL's words; empty: those with forward secrecy and authentication",
       text(INTO(http.tls_ciphers))},

      {"http.threads", "FF_HTTP_THREADS", "2", "Threads that serve connections",
       number(1, 1024, INTO(http.threads))},
      {"http.max_connections", "FF_HTTP_MAX_CONNECTIONS", "10000", "Connections at a time",
       number(1, 1'000'000, INTO(http.max_connections))},
      {"http.max_connections_per_address", "FF_HTTP_MAX_CONNECTIONS_PER_ADDRESS", "1000",
       "Connections at a time of one client address, except trusted ones",
       number(1, 1'000'000, INTO(http.max_connections_per_address))},
      {"http.max_requests_per_address", "FF_HTTP_MAX_REQUESTS_PER_ADDRESS", "800",
       "Requests of one client address that may be read or answered at a time, except trusted ones",
       number(1, 1'000'000, INTO(http.max_requests_per_address))},
      {"http.trusted_addresses", "FF_HTTP_TRUSTED_ADDRESSES", "127.0.0.0/8,::1",
       "Addresses and networks without limits of their own, such as proxies, separated by commas; none: "
       "every address has them",
       trusted_addresses},
      {"http.max_body_memory", "FF_HTTP_MAX_BODY_MEMORY", "268435456",
       "Bytes of requests that are being read, in all; at least four times http.max_body_bulk",
       number(1u << 20, kMostMemory, INTO(http.max_body_memory))},
      {"http.max_pipelined", "FF_HTTP_MAX_PIPELINED", "64", "Requests that may wait on one connection",
       number(1, 65'536, INTO(http.max_pipelined))},
      {"http.max_request_line", "FF_HTTP_MAX_REQUEST_LINE", "16384", "Bytes of a request's first line",
       number(256, kMostBytes, INTO(http.max_request_line))},
      {"http.max_headers", "FF_HTTP_MAX_HEADERS", "32768", "Bytes of a request's headers",
       number(256, kMostBytes, INTO(http.max_headers))},
      {"http.max_body", "FF_HTTP_MAX_BODY", "65536", "Bytes of a request's body, except for the three below",
       number(1024, kMostBytes, INTO(max_body.control))},
      {"http.max_body_signal", "FF_HTTP_MAX_BODY_SIGNAL", "262144", "The same for a signal",
       number(1024, kMostBytes, INTO(max_body.signal))},
      {"http.max_body_large", "FF_HTTP_MAX_BODY_LARGE", "1048576",
       "The same for an execution, and for reports of workers",
       number(1024, kMostBytes, INTO(max_body.large))},
      {"http.max_body_bulk", "FF_HTTP_MAX_BODY_BULK", "16777216",
       "The same for many executions, and for whole flows", number(1024, kMostBytes, INTO(max_body.bulk))},
      {"http.max_json_values", "FF_HTTP_MAX_JSON_VALUES", "1000000",
       "Values in a body: every string, number, array and object",
       number(1000, kMostBytes, INTO(max_json_values))},
      {"http.header_timeout_ms", "FF_HTTP_HEADER_TIMEOUT_MS", "10000",
       "How long a client may take to send the headers", number(1, kDayMs, INTO(http.header_timeout))},
      {"http.body_timeout_ms", "FF_HTTP_BODY_TIMEOUT_MS", "30000",
       "How long a client may pause while it sends or reads a body",
       number(1, kDayMs, INTO(http.body_timeout))},
      {"http.idle_timeout_ms", "FF_HTTP_IDLE_TIMEOUT_MS", "60000",
       "How long a connection is kept between requests", number(1, kDayMs, INTO(http.idle_timeout))},

      {"log.level", "FF_LOG", "info", "trace, debug, info, warn, error or off", word(INTO(log_level)),
       "RUST_LOG", level_of_rust_log},
      {"log.format", "FF_LOG_FORMAT", "text", "text or json", word(INTO(log_format))},
      {"log.access", "FF_ACCESS_LOG", "false", "Whether every request is logged", boolean(INTO(access_log))},

      {"partitions.flow", "FF_FLOW_PARTITIONS", "256",
       "Partitions of flows and executions; fixed when a store is created",
       number(1, kMost16, INTO(engine.flow_partitions))},
      {"partitions.budget", "FF_BUDGET_PARTITIONS", "32",
       "Partitions of budgets; fixed when a store is created",
       number(1, kMost16, INTO(engine.budget_partitions))},
      {"partitions.quota", "FF_QUOTA_PARTITIONS", "32",
       "Partitions of quota policies; fixed when a store is created",
       number(1, kMost16, INTO(engine.quota_partitions))},

      {"retention.executions_ms", "FF_RETENTION_MS", "86400000",
       "How long an execution is kept after its end, unless its policy says otherwise; 0: for ever",
       number(0, kMostMs, INTO(engine.retention))},
      {"retention.events_ms", "FF_EVENT_RETENTION_MS", "604800000", "How long events are kept; 0: for ever",
       number(0, kMostMs, INTO(engine.event_retention))},

      {"engine.operation_deadline_ms", "FF_OPERATION_DEADLINE_MS", "30000",
       "Deadline after which a queued operation is refused",
       number(1, kDayMs, INTO(engine.operation_deadline))},
      {"engine.max_queued_operations", "FF_MAX_QUEUED_OPERATIONS", "65536", "Operations that may be queued",
       number(1, kMost32, INTO(engine.max_queued_operations))},
      {"engine.max_queued_bytes", "FF_MAX_QUEUED_BYTES", "268435456", "Bytes of queued operations",
       number(1, kMostMs, INTO(engine.max_queued_bytes))},
      {"engine.max_waiting_claims", "FF_MAX_WAITING_CLAIMS", "16384", "Claims that may be parked",
       number(1, kMost32, INTO(engine.max_waiting_claims))},
      {"engine.max_watchers", "FF_MAX_WATCHERS", "65536", "Readers that may wait for frames or events",
       number(1, kMost32, INTO(engine.max_watchers))},
      {"engine.max_batch", "FF_MAX_BATCH", "1024", "Operations that may share a commit",
       number(1, 1'000'000, INTO(engine.max_batch))},
      {"engine.budget_grace_ms", "FF_BUDGET_ENFORCE_GRACE_MS", "0",
       "How long an attempt may continue past a hard limit that fails it; 0: until its worker ends it",
       number(0, kMostMs, INTO(engine.budget_grace))},
      {"engine.reclaim_grace_ms", "FF_RECLAIM_GRACE_MS", "0",
       "How long an execution with a lost lease is not offered to other workers",
       number(0, kMostMs, INTO(engine.reclaim_grace))},

      {"scanner.namespace", "FF_SCANNER_NAMESPACE", "", "Handle timers of this namespace only",
       scanner_namespace},
      {"scanner.instance_tag", "FF_SCANNER_INSTANCE_TAG", "",
       "Handle timers of executions with this tag only, key=value", scanner_tag},

      {"intervals.lease_expiry_ms", "FF_LEASE_EXPIRY_INTERVAL_MS", "1500",
       "How late a lost lease may be noticed", interval("lease_expiry", 1)},
      {"intervals.delayed_promoter_ms", "FF_DELAYED_PROMOTER_INTERVAL_MS", "750",
       "How late the end of a delay may be noticed", interval("delayed_promoter", 1)},
      {"intervals.index_reconciler_s", "FF_INDEX_RECONCILER_INTERVAL_S", "45",
       "How late indexes may be repaired", interval("index_reconciler", 1000)},
      {"intervals.attempt_timeout_s", "FF_ATTEMPT_TIMEOUT_INTERVAL_S", "2",
       "How late an attempt may time out", interval("attempt_timeout", 1000)},
      {"intervals.suspension_timeout_s", "FF_SUSPENSION_TIMEOUT_INTERVAL_S", "2",
       "How late a suspension may time out", interval("suspension_timeout", 1000)},
      {"intervals.pending_waitpoint_expiry_s", "FF_PENDING_WP_EXPIRY_INTERVAL_S", "5",
       "How late an unused waitpoint may expire", interval("pending_wp_expiry", 1000)},
      {"intervals.retention_trimmer_s", "FF_RETENTION_TRIMMER_INTERVAL_S", "60",
       "How late an execution may be removed after its retention", interval("retention_trimmer", 1000)},
      {"intervals.budget_reset_s", "FF_BUDGET_RESET_INTERVAL_S", "15", "How late a budget may be reset",
       interval("budget_reset", 1000)},
      {"intervals.budget_reconciler_s", "FF_BUDGET_RECONCILER_INTERVAL_S", "30",
       "How late budgets may be repaired", interval("budget_reconciler", 1000)},
      {"intervals.quota_reconciler_s", "FF_QUOTA_RECONCILER_INTERVAL_S", "30",
       "How late quotas may be repaired", interval("quota_reconciler", 1000)},
      {"intervals.unblock_s", "FF_UNBLOCK_INTERVAL_S", "5", "How late an execution may be unblocked",
       interval("unblock", 1000)},
      {"intervals.dependency_reconciler_s", "FF_DEPENDENCY_RECONCILER_INTERVAL_S", "15",
       "How late a met dependency may be noticed", interval("dependency_reconciler", 1000)},
      {"intervals.flow_projector_s", "FF_FLOW_PROJECTOR_INTERVAL_S", "15", "How late a flow's summary may be",
       interval("flow_projector", 1000)},
      {"intervals.execution_deadline_s", "FF_EXECUTION_DEADLINE_INTERVAL_S", "5",
       "How late an execution's deadline may be noticed", interval("execution_deadline", 1000)},
      {"intervals.cancel_reconciler_s", "FF_CANCEL_RECONCILER_INTERVAL_S", "15",
       "How late members of a cancelled flow may be cancelled", interval("cancel_reconciler", 1000)},
      {"intervals.edge_cancel_dispatcher_s", "FF_EDGE_CANCEL_DISPATCHER_INTERVAL_S", "1",
       "How late siblings before a join may be cancelled", interval("edge_cancel_dispatcher", 1000)},
      {"intervals.edge_cancel_reconciler_s", "FF_EDGE_CANCEL_RECONCILER_INTERVAL_S", "10",
       "How late the remains of such a cancel may be removed", interval("edge_cancel_reconciler", 1000)},
      {"intervals.reclaim_s", "FF_RECLAIM_INTERVAL_S", "2", "How late lost work may be offered again",
       interval("reclaim", 1000)},
      {"intervals.worker_registry_ttl_sweep_s", "FF_WORKER_REGISTRY_SWEEP_INTERVAL_S", "30",
       "How late a dead worker may be noticed", interval("worker_registry_ttl_sweep", 1000)},
  };
}

#undef INTO

}  // namespace

const std::vector<Setting>& all_settings() {
  static const auto table = make_table();
  return table;
}

const Setting* find_setting(std::string_view key) {
  const auto found = std::ranges::find(all_settings(), key, &Setting::key);
  return found == all_settings().end() ? nullptr : &*found;
}

std::string flag_of(const Setting& setting) {
  if (setting.meaning.shape == Shape::secret) return "";
  std::string flag = "--" + std::string(setting.key);
  std::ranges::replace_if(
      flag, [](char c) { return c == '.' || c == '_'; }, '-');
  return flag;
}

}  // namespace flowfabric::server
