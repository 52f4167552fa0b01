// The configuration of `flowfabric serve`: its sources and their order, and its error texts.
#include <CLI/CLI.hpp>
#include <fstream>

#include "server/config.h"
#include "server/config_settings.h"
#include "server_config_support.h"
#include "support/temporary_folder.h"

namespace flowfabric::server {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Strings = std::vector<std::string>;

// ---- Defaults ----

TEST(ServerConfig, HasDefaultsForEverything) {
  const auto config = load(Variables{});
  EXPECT_EQ(config.store_url, "sqlite:flowfabric.db");
  EXPECT_EQ(config.http.address, "127.0.0.1");
  EXPECT_EQ(config.http.port, 9090);
  EXPECT_EQ(config.api_token, "");
  EXPECT_EQ(config.cors_origins, Strings{});
  EXPECT_EQ(config.lanes, Strings{"default"});
  EXPECT_EQ(config.max_stream_operations, 64u);
  EXPECT_EQ(config.waitpoint_grace, 24h);
  EXPECT_EQ(config.shutdown_grace, 30s);
  EXPECT_EQ(config.log_level, LogLevel::info);
  EXPECT_EQ(config.log_format, LogFormat::text);
  EXPECT_FALSE(config.access_log);
  EXPECT_EQ(config.otlp_endpoint, "");
  EXPECT_EQ(config.intervals.at("lease_expiry"), 1500ms);
  EXPECT_EQ(config.intervals.at("edge_cancel_reconciler"), 10s);
  EXPECT_EQ(config.intervals.size(), 19u);
  EXPECT_EQ(all_warnings(config), "");
  EXPECT_EQ(config.settings.size(), all_settings().size());
}

TEST(ServerConfig, HasTheDefaultsOfTheEngineAndTheEdge) {
  const auto config = load(Variables{});
  const EngineOptions engine;
  EXPECT_EQ(config.engine.operation_deadline, engine.operation_deadline);
  EXPECT_EQ(config.engine.max_queued_operations, engine.max_queued_operations);
  EXPECT_EQ(config.engine.max_queued_bytes, engine.max_queued_bytes);
  EXPECT_EQ(config.engine.max_waiting_claims, engine.max_waiting_claims);
  EXPECT_EQ(config.engine.max_watchers, engine.max_watchers);
  EXPECT_EQ(config.engine.max_batch, engine.max_batch);
  EXPECT_EQ(config.engine.flow_partitions, engine.flow_partitions);
  EXPECT_EQ(config.engine.budget_partitions, engine.budget_partitions);
  EXPECT_EQ(config.engine.quota_partitions, engine.quota_partitions);
  EXPECT_EQ(config.engine.clock_interval, engine.clock_interval);
  EXPECT_EQ(config.engine.retention, engine.retention);
  EXPECT_EQ(config.engine.event_retention, engine.event_retention);
  EXPECT_EQ(config.engine.budget_grace, engine.budget_grace);
  EXPECT_EQ(config.engine.reclaim_grace, engine.reclaim_grace);
  EXPECT_FALSE(config.engine.scanner_filter.namespace_);
  EXPECT_FALSE(config.engine.scanner_filter.instance_tag);
  const http::ServerOptions edge;
  EXPECT_EQ(config.http.threads, edge.threads);
  EXPECT_EQ(config.http.max_request_line, edge.max_request_line);
  EXPECT_EQ(config.http.max_headers, edge.max_headers);
  EXPECT_EQ(config.http.max_connections, edge.max_connections);
  EXPECT_EQ(config.http.max_connections_per_address, edge.max_connections_per_address);
  EXPECT_EQ(config.http.max_requests_per_address, edge.max_requests_per_address);
  EXPECT_EQ(config.http.trusted_networks, edge.trusted_networks);
  EXPECT_EQ(config.http.max_body_memory, edge.max_body_memory);
  EXPECT_EQ(config.http.max_pipelined, edge.max_pipelined);
  EXPECT_EQ(config.http.header_timeout, edge.header_timeout);
  EXPECT_EQ(config.http.body_timeout, edge.body_timeout);
  EXPECT_EQ(config.http.idle_timeout, edge.idle_timeout);
  const api::BodyLimits bodies;
  EXPECT_EQ(config.max_body.control, bodies.control);
  EXPECT_EQ(config.max_body.signal, bodies.signal);
  EXPECT_EQ(config.max_body.large, bodies.large);
  EXPECT_EQ(config.max_body.bulk, bodies.bulk);
}

// ---- Doors ----

constexpr const char* kLongToken = "0123456789abcdef";

TEST(ServerConfig, ListensWhereOthersCanReachItOnlyWithAGuard) {
  for (const auto* address : {"0.0.0.0:9090", "[::]:9090", "10.1.2.3:80", "example.org:80"}) {
    const auto refusal = refusal_of({{"FF_LISTEN_ADDR", address}});
    EXPECT_TRUE(mentions(refusal, "openssl rand -hex 32")) << refusal;
    EXPECT_TRUE(mentions(refusal, "--allow-anonymous")) << refusal;
    load({{"FF_LISTEN_ADDR", address}, {"FF_API_TOKEN", kLongToken}});
    load({{"FF_LISTEN_ADDR", address}, {"FF_ALLOW_ANONYMOUS", "true"}});
    load({{"FF_LISTEN_ADDR", address},
          {"FF_TLS_CERTIFICATE_FILE", "c"},
          {"FF_TLS_KEY_FILE", "k"},
          {"FF_TLS_CLIENT_CA_FILE", "ca"}});
    EXPECT_TRUE(mentions(refusal_of({{"FF_ADMIN_LISTEN_ADDR", address}}), "admin_listen")) << address;
  }
  for (const auto* address : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_EQ(all_warnings(load({{"FF_LISTEN_ADDR", address}})), "") << address;
  }
}

TEST(ServerConfig, TakesNoTokenThatIsEmptyOrCanBeGuessed) {
  EXPECT_TRUE(mentions(refusal_of({{"FF_API_TOKEN", ""}}), "at least 16"));
  EXPECT_TRUE(mentions(refusal_of({{"FF_API_TOKEN", "0123456789abcde"}}), "at least 16"));
  EXPECT_EQ(load({{"FF_API_TOKEN", kLongToken}}).api_token, kLongToken);
  EXPECT_TRUE(mentions(refusal_of({{"FF_WAITPOINT_HMAC_SECRET", std::string(62, 'a')}}), "64 hex digits"));
}

TEST(ServerConfig, DemandsClientCertificatesOverTlsOnly) {
  EXPECT_TRUE(mentions(refusal_of({{"FF_TLS_CLIENT_CA_FILE", "ca"}}), "tls.certificate"));
}

TEST(ServerConfig, ReadsTheStoreFromAFile) {
  auto sources = sources_of({{"FF_STORE_FILE", "store"}}, {{"store", "postgres://u:s3cret@h/d\n"}});
  const auto config = load(sources);
  EXPECT_EQ(config.store_url, "postgres://u:s3cret@h/d");
  EXPECT_FALSE(print_config(config).contains("s3cret"));
  // The printed configuration is a file with the same meaning.
  const auto printed = print_config(config);
  const auto again =
      load(sources_of({{"FF_CONFIG", "c"}}, {{"c", printed}, {"store", "postgres://u:s3cret@h/d"}}));
  EXPECT_EQ(again.store_url, config.store_url);
}

// ---- Sources ----

TEST(ServerConfig, TakesFlagsOverEnvironmentOverFileOverDefault) {
  auto sources = with_file("listen = '1.1.1.1:1'\nallow_anonymous = true\n");
  EXPECT_EQ(line_of(load(Variables{}), "listen"), "listen = \"127.0.0.1:9090\"   # from default");
  EXPECT_EQ(line_of(load(sources), "listen"), "listen = \"1.1.1.1:1\"   # from file ff.toml");
  sources.environment["FF_LISTEN_ADDR"] = "2.2.2.2:2";
  EXPECT_EQ(line_of(load(sources), "listen"), "listen = \"2.2.2.2:2\"   # from environment FF_LISTEN_ADDR");
  sources.flags.by_key["listen"] = "3.3.3.3:3";
  EXPECT_EQ(line_of(load(sources), "listen"), "listen = \"3.3.3.3:3\"   # from flag --listen");
  EXPECT_EQ(load(sources).http.port, 3);
}

TEST(ServerConfig, TakesTheFileOfTheFlagOverThatOfTheVariable) {
  auto sources =
      sources_of({{"FF_CONFIG", "a.toml"}}, {{"a.toml", "lanes = 'a'"}, {"b.toml", "lanes = 'b'"}});
  EXPECT_EQ(load(sources).lanes, Strings{"a"});
  sources.flags.config_file = "b.toml";
  EXPECT_EQ(load(sources).lanes, Strings{"b"});
  sources.flags.config_file = "c.toml";
  EXPECT_TRUE(mentions(refusal_of(sources), "flag --config: c.toml: cannot be opened"));
}

TEST(ServerConfig, TakesFlagsFromTheCommandLine) {
  CLI::App app;
  Sources sources;
  add_options(app, sources.flags);
  app.parse("--print-config --store memory: --lanes a,b --http-threads 3 --tls-key k --log-access true",
            false);
  EXPECT_TRUE(sources.flags.print_config);
  EXPECT_EQ(sources.flags.by_key, (Variables{{"store", "memory:"},
                                             {"lanes", "a,b"},
                                             {"http.threads", "3"},
                                             {"tls.key", "k"},
                                             {"log.access", "true"}}));
}

TEST(ServerConfig, NamesEverySettingInTheHelpAndNoSecretAsAFlag) {
  CLI::App app;
  FlagValues flags;
  add_options(app, flags);
  const auto help = app.help();
  for (const auto& setting : all_settings()) {
    EXPECT_TRUE(mentions(environment_help(), std::string(setting.variable)));
    if (setting.meaning.shape == Shape::secret) {
      EXPECT_EQ(flag_of(setting), "");
    } else {
      EXPECT_TRUE(mentions(help, flag_of(setting) + " "));
    }
  }
  EXPECT_FALSE(help.contains("--api-token "));
}

TEST(ServerConfig, ReadsTomlWithSectionsDottedKeysArraysAndComments) {
  const auto config = load(with_file(R"(
# A comment
lanes = [   # of two
  "c#",     # with a sign that is no comment here
  'a "b" = [c]',
]
max_stream_operations = 7 # seven
http.threads = 4
[tls]  # both
certificate = "my files/cert, \"new\"\\.pem"
key = 'key.pem'
[log]
access = true
level = "debug"
[default]
cors_origins = ["https://a.example", "https://b.example"]
)"));
  EXPECT_EQ(config.lanes, (Strings{"c#", "a \"b\" = [c]"}));
  EXPECT_EQ(config.max_stream_operations, 7u);
  EXPECT_EQ(config.http.threads, 4u);
  EXPECT_EQ(config.http.tls_certificate_file, "my files/cert, \"new\"\\.pem");
  EXPECT_EQ(config.http.tls_key_file, "key.pem");
  EXPECT_TRUE(config.access_log);
  EXPECT_EQ(config.log_level, LogLevel::debug);
  EXPECT_EQ(config.cors_origins, (Strings{"https://a.example", "https://b.example"}));
}

TEST(ServerConfig, RefusesFilesItWouldMisread) {
  EXPECT_TRUE(mentions(refusal_of_file("\n\nlisten"), "file ff.toml, line 3 | Write key = value."));
  EXPECT_TRUE(mentions(refusal_of_file("x="), "line 1 | Write key = value."));
  EXPECT_TRUE(mentions(refusal_of_file("store = \"a\nb\""), "line 1 | Close the quotes"));
  EXPECT_TRUE(mentions(refusal_of_file("store = \"a\\n\""), "line 1 | Behind a backslash"));
  EXPECT_TRUE(mentions(refusal_of_file("store = 'a\x01'"), "line 1 | Remove the control character"));
  EXPECT_TRUE(mentions(refusal_of_file("lanes = ['a',\n'b'\n"), "Close the array"));
  EXPECT_TRUE(mentions(refusal_of_file("[tls\n"), "line 1 | Write a section"));
  EXPECT_TRUE(mentions(refusal_of_file("[[tls]]\n"), "line 1 | Write sections"));
  EXPECT_TRUE(mentions(refusal_of_file("store = sqlite:my file.db"), "store (file ff.toml)"));
  EXPECT_TRUE(mentions(refusal_of_file("lanes = ['a,b', 'c']"), "lanes (file ff.toml)"));
  EXPECT_TRUE(
      mentions(refusal_of_file("listen='a:1'\nlanes='a'\nlisten='b:2'"), "file ff.toml: listen twice"));
}

TEST(ServerConfig, NamesTheNearestKeyForAnUnknownOne) {
  EXPECT_TRUE(mentions(refusal_of_file("[tls]\ncertficate = 'x'"),
                       "unknown key tls.certficate | Did you mean tls.certificate?"));
  EXPECT_TRUE(mentions(refusal_of_file("listn = 'x'"), "Did you mean listen?"));
}

TEST(ServerConfig, WarnsOfUnknownVariablesOnly) {
  const auto config = load({{"FF_LISTN_ADDR", "x"},
                            {"FF_ENV", "x"},
                            {"FF_DEV_MODE", "1"},
                            {"FF_SENTRY_DSN", "x"},
                            {"FF_TLS", "maybe"},
                            {"FF_PORT", "6379"},
                            {"FF_SQLITE_POOL_SIZE", "4"},
                            {"FF_LOG", "warn"},
                            {"PATH", "x"}});
  EXPECT_EQ(all_warnings(config),
            "FF_LISTN_ADDR is ignored: there is no such variable; did you mean FF_LISTEN_ADDR?");
}

// ---- Bad values ----

TEST(ServerConfig, NamesSettingSourceAndValueOfEveryBadNumber) {
  int numbers = 0;
  for (const auto& setting : all_settings()) {
    if (setting.meaning.shape != Shape::number) continue;
    ++numbers;
    for (const std::string bad : {"", "-1", "+1", "0x10", "1.5", " 5", "5s", "99999999999999999999"}) {
      const auto refusal = refusal_of({{std::string(setting.variable), bad}});
      EXPECT_TRUE(mentions(refusal, fmt::format("{} (environment {}): '{}' | Give a whole number from",
                                                setting.key, setting.variable, bad)));
    }
  }
  EXPECT_GT(numbers, 40);
}

TEST(ServerConfig, RefusesWhatIsOutOfRange) {
  const std::vector<std::pair<std::string, std::string>> bad{{"FF_FLOW_PARTITIONS", "0"},
                                                             {"FF_FLOW_PARTITIONS", "65536"},
                                                             {"FF_BUDGET_PARTITIONS", "0"},
                                                             {"FF_QUOTA_PARTITIONS", "0"},
                                                             {"FF_MAX_CONCURRENT_STREAM_OPS", "0"},
                                                             {"FF_MAX_CONCURRENT_STREAM_OPS", "4294967296"},
                                                             {"FF_HTTP_THREADS", "0"},
                                                             {"FF_MAX_BATCH", "0"},
                                                             {"FF_OPERATION_DEADLINE_MS", "0"},
                                                             {"FF_HTTP_IDLE_TIMEOUT_MS", "0"},
                                                             {"FF_PORT", "65536"},
                                                             {"FF_PORT", "redis"},
                                                             {"FF_POSTGRES_POOL_SIZE", "0"},
                                                             {"FF_SQLITE_POOL_SIZE", "x"}};
  for (const auto& [variable, value] : bad) {
    EXPECT_TRUE(mentions(refusal_of({{variable, value}}), "environment " + variable));
    EXPECT_TRUE(mentions(refusal_of({{variable, value}}), "'" + value + "'"));
  }
  EXPECT_EQ(load({{"FF_FLOW_PARTITIONS", "65535"}}).engine.flow_partitions, 65535);
}

TEST(ServerConfig, RefusesBadTexts) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"FF_LISTEN_ADDR", "9090"},
      {"FF_LISTEN_ADDR", ":9090"},
      {"FF_LISTEN_ADDR", "host:65536"},
      {"FF_LISTEN_ADDR", "host:"},
      {"FF_LISTEN_ADDR", "::1:9090"},
      {"FF_LISTEN_ADDR", "[::1:9090"},
      {"FF_LISTEN_ADDR", "[1.2.3.4]:9090"},
      {"FF_CORS_ORIGINS", "https://gr\xC3\xB6\xC3\x9F\x65.example"},
      {"FF_LANES", ",,"},
      {"FF_LANES", "ok," + std::string(65, 'x')},
      {"FF_LOG", "loud"},
      {"FF_LOG_FORMAT", "xml"},
      {"FF_OTLP_ENDPOINT", "localhost:4318"},
      {"FF_OTLP_ENDPOINT", "http://:4318"},
      {"FF_OTLP_ENDPOINT", "http://host:port"},
      {"FF_OTLP_ENDPOINT", "grpc://host"},
      {"FF_SCANNER_INSTANCE_TAG", "no equals sign"},
      {"FF_SCANNER_NAMESPACE", std::string(257, 'x')},
      {"FF_TLS_KEY_FILE", "key.pem"},
      {"FF_TLS_CERTIFICATE_FILE", "cert.pem"},
      {"FF_TLS_CERTIFICATE_FILE", "a\nb"},
      {"FF_STORE", "file.db"},
      {"FF_STORE", "sqlite:"},
      {"FF_STORE", "sqlite:a\nb"},
      {"FF_STORE", "sqlite::memory:"},
      {"FF_STORE", "mysql://host"},
      {"FF_STORE", "valkey://host"},
      {"FF_API_TOKEN_FILE", "missing"},
      {"FF_CONFIG", "missing"}};
  for (const auto& [variable, value] : bad) {
    EXPECT_TRUE(mentions(refusal_of({{variable, value}}), variable)) << value;
  }
  EXPECT_TRUE(mentions(refusal_of_file("log.access = 'perhaps'"), "log.access (file ff.toml): 'perhaps'"));
}

TEST(ServerConfig, ReadsGoodTexts) {
  const auto config = load({{"FF_LISTEN_ADDR", "[::1]:0"},
                            {"FF_CORS_ORIGINS", " https://a.example , bad\x01one,"},
                            {"FF_LANES", " a ,,b c"},
                            {"FF_ACCESS_LOG", "TRUE"},
                            {"FF_OTLP_ENDPOINT", "http://[::1]:4318/v1"},
                            {"FF_SCANNER_NAMESPACE", "prod"},
                            {"FF_SCANNER_INSTANCE_TAG", "caller.zone=a=b"}});
  EXPECT_EQ(config.http.address, "::1");
  EXPECT_EQ(config.http.port, 0);
  EXPECT_EQ(config.cors_origins, Strings{"https://a.example"});
  EXPECT_TRUE(mentions(all_warnings(config), "1 of cors_origins"));
  EXPECT_EQ(config.lanes, (Strings{"a", "b c"}));
  EXPECT_TRUE(config.access_log);
  EXPECT_EQ(config.engine.scanner_filter.namespace_, "prod");
  EXPECT_EQ(config.engine.scanner_filter.instance_tag, std::pair("caller.zone"s, "a=b"s));
  EXPECT_FALSE(load({{"FF_ACCESS_LOG", "yes"}}).access_log);
  EXPECT_TRUE(load({{"FF_ACCESS_LOG", "1"}}).access_log);
}

// ---- Old names ----

TEST(ServerConfig, ReadsAnOldNameOnlyWhenTheNewOneIsNotSet) {
  EXPECT_EQ(load({{"FF_MAX_CONCURRENT_TAIL", "5"}}).max_stream_operations, 5u);
  const Variables both{{"FF_MAX_CONCURRENT_TAIL", "x"}, {"FF_MAX_CONCURRENT_STREAM_OPS", "6"}};
  EXPECT_EQ(load(both).max_stream_operations, 6u);
  EXPECT_TRUE(mentions(refusal_of({{"FF_MAX_CONCURRENT_TAIL", "x"}}), "environment FF_MAX_CONCURRENT_TAIL"));
  EXPECT_EQ(load({{"RUST_LOG", "ff_server=trace,Warn"}}).log_level, LogLevel::warn);
  EXPECT_EQ(load({{"RUST_LOG", "some_crate"}}).log_level, LogLevel::info);
  EXPECT_EQ(load({{"RUST_LOG", "debug"}, {"FF_LOG", "error"}}).log_level, LogLevel::error);
}

// ---- The store ----

TEST(ServerConfig, ChoosesTheStoreOfTheReferenceUnlessToldOtherwise) {
  const auto url = [](Variables environment) { return load(std::move(environment)).store_url; };
  EXPECT_EQ(url({{"FF_BACKEND", "SQLite"}}), "sqlite:flowfabric.db");
  EXPECT_EQ(url({{"FF_BACKEND", ""}, {"FF_STORE", ""}}), "sqlite:flowfabric.db");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", ":memory:"}}), "memory:");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", "jobs.db"}}), "sqlite:jobs.db");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", "file:jobs%20a.db?mode=rwc&cache=shared"}}), "sqlite:jobs a.db");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", "file:///var/jobs.db"}}), "sqlite:/var/jobs.db");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", "file::memory:?cache=shared"}}), "memory:");
  EXPECT_EQ(url({{"FF_SQLITE_PATH", "file:x?mode=memory"}}), "memory:");
  EXPECT_EQ(url({{"FF_BACKEND", "postgres"}, {"FF_POSTGRES_URL", "postgres://h/d"}}), "postgres://h/d");
  EXPECT_EQ(url({{"FF_BACKEND", "valkey"}, {"FF_STORE", "memory:"}}), "memory:");
  EXPECT_EQ(line_of(load({{"FF_SQLITE_PATH", "a.db"}}), "store"),
            "store = \"sqlite:a.db\"   # from environment FF_SQLITE_PATH");
}

TEST(ServerConfig, RefusesStoresItDoesNotHave) {
  EXPECT_TRUE(
      mentions(refusal_of({{"FF_BACKEND", "valkey"}}), "FF_BACKEND: 'valkey' | This build has no Valkey"));
  EXPECT_TRUE(mentions(refusal_of({{"FF_BACKEND", "oracle"}}), "FF_BACKEND: 'oracle'"));
  EXPECT_TRUE(mentions(refusal_of({{"FF_BACKEND", "postgres"}}), "environment FF_POSTGRES_URL: ''"));
  for (const std::string bad :
       {"a?b", "file:", "file://host/a", "file:a%2", "file:a%3Fb", "file:a?mode=ro"}) {
    EXPECT_TRUE(mentions(refusal_of({{"FF_SQLITE_PATH", bad}}), "FF_SQLITE_PATH: '" + bad + "'"));
  }
}

TEST(ServerConfig, SaysWhichVariablesOfTheReferenceAreNotUsed) {
  auto sources = sources_of({{"FF_BACKEND", "postgres"}, {"FF_POSTGRES_URL", "postgres://h/d"}});
  sources.flags.by_key["store"] = "memory:";
  EXPECT_EQ(all_warnings(load(sources)),
            "FF_BACKEND is not used: store is given by flag --store\n"
            "FF_POSTGRES_URL is not used: store is given by flag --store");
  EXPECT_TRUE(
      mentions(all_warnings(load({{"FF_POSTGRES_URL", "postgres://h/d"}})), "set FF_BACKEND=postgres"));
  EXPECT_TRUE(mentions(all_warnings(load({{"FF_POSTGRES_POOL_SIZE", "9"}})), "readers=N"));
}

// ---- Intervals ----

TEST(ServerConfig, TakesTheShortestIntervalForTheClock) {
  EXPECT_EQ(load({{"FF_LEASE_EXPIRY_INTERVAL_MS", "300"}}).engine.clock_interval, 300ms);
  const auto hurried = load({{"FF_LEASE_EXPIRY_INTERVAL_MS", "1"}});
  EXPECT_EQ(hurried.intervals.at("lease_expiry"), 100ms);
  EXPECT_EQ(hurried.engine.clock_interval, 100ms);
  const auto config = load({{"FF_DELAYED_PROMOTER_INTERVAL_MS", "0"}});
  EXPECT_EQ(config.intervals.at("delayed_promoter"), 0ms);
  EXPECT_EQ(config.engine.clock_interval, 1s);
}

TEST(ServerConfig, AnIntervalOfZeroTurnsItsRuleOff) {
  EXPECT_TRUE(load({{"FF_LEASE_EXPIRY_INTERVAL_MS", "300"}}).engine.rules_off.empty());
  const auto config = load({{"FF_RETENTION_TRIMMER_INTERVAL_S", "0"},
                            {"FF_PENDING_WP_EXPIRY_INTERVAL_S", "0"},
                            {"FF_FLOW_PROJECTOR_INTERVAL_S", "0"}});
  EXPECT_EQ(config.engine.rules_off, (std::set<std::string>{"pending_wp_expiry", "retention_trimmer"}))
      << "summaries of flows are never late: there is no such rule to turn off";
  EXPECT_EQ(config.engine.clock_interval, 750ms);
  EXPECT_EQ(all_warnings(config), "");
}

// All but those that nothing is done for.
TEST(ServerConfig, EveryRuleWithAnIntervalCanBeTurnedOff) {
  const std::set<std::string> without{"index_reconciler", "flow_projector", "budget_reconciler"};
  for (const auto& setting : all_settings()) {
    if (!setting.key.starts_with("intervals.")) continue;
    const auto config = load({{std::string(setting.variable), "0"}});
    for (const auto& [rule, interval] : config.intervals) {
      const bool is_off = interval.count() == 0 && !without.contains(rule);
      EXPECT_EQ(config.engine.rules_off.contains(rule), is_off) << rule;
    }
  }
}

TEST(ServerConfig, TurnsTheClockOffWhenAllIntervalsAreZero) {
  Variables environment;
  for (const auto& setting : all_settings()) {
    if (setting.key.starts_with("intervals.")) environment.emplace(setting.variable, "0");
  }
  EXPECT_EQ(load(environment).engine.clock_interval, 0ms);
  EXPECT_EQ(all_warnings(load(environment)), "");
}

// ---- Files ----

TEST(ServerConfig, ReadsRealFiles) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.file("ff.toml")) << "listen = 'localhost:1'\n";
  EXPECT_EQ(read_text_file(folder.file("ff.toml")), "listen = 'localhost:1'\n");
  EXPECT_FALSE(read_text_file(folder.file("missing")));
  EXPECT_FALSE(read_text_file(folder.path()));
  std::ofstream(folder.file("large")) << std::string((1 << 20) + 1, 'x');
  EXPECT_FALSE(read_text_file(folder.file("large")));
}

// ---- Shares of clients ----

TEST(ServerConfig, KnowsWhomItTrusts) {
  using Texts = std::vector<std::string>;
  const auto trusted = [](const std::string& text) {
    return load({{"FF_HTTP_TRUSTED_ADDRESSES", text}}).http.trusted_networks;
  };
  EXPECT_EQ(trusted("10.0.0.0/8, fd00::/8,192.0.2.7"), (Texts{"10.0.0.0/8", "fd00::/8", "192.0.2.7"}));
  EXPECT_EQ(trusted("none"), Texts{});
  EXPECT_TRUE(mentions(refusal_of({{"FF_HTTP_TRUSTED_ADDRESSES", "127.0.0.1,proxy.example"}}),
                       "http.trusted_addresses (environment FF_HTTP_TRUSTED_ADDRESSES)"));
}

TEST(ServerConfig, GivesMemoryToEveryBodyThatIsAllowed) {
  const auto refusal = refusal_of({{"FF_HTTP_MAX_BODY_BULK", "134217728"}});
  EXPECT_TRUE(mentions(refusal, "http.max_body_memory")) << refusal;
  EXPECT_TRUE(mentions(refusal, "four times")) << refusal;
  const auto config =
      load({{"FF_HTTP_MAX_BODY_BULK", "134217728"}, {"FF_HTTP_MAX_BODY_MEMORY", "536870912"}});
  EXPECT_EQ(config.http.max_body_memory, 536'870'912u);
}

}  // namespace
}  // namespace flowfabric::server
