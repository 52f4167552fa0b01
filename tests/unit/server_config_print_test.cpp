// The printed configuration: everything except secrets, in a form that can be loaded again.
#include <fstream>

#include "server/config_settings.h"
#include "server_config_support.h"

namespace flowfabric::server {
namespace {

using namespace std::string_literals;
using Strings = std::vector<std::string>;

const std::string kHex(64, 'a');

// ---- Secrets ----

TEST(ServerConfig, TakesASecretFromWhereItRanksHighest) {
  auto sources = sources_of(
      {{"FF_API_TOKEN_FILE", "token"}, {"FF_WAITPOINT_HMAC_SECRET_FILE", "hex"}},
      {{"token", "the-token-from-file\r\n"}, {"hex", kHex + "\n"}, {"other", "another-token-here"}});
  EXPECT_EQ(load(sources).api_token, "the-token-from-file");
  EXPECT_EQ(load(sources).engine.waitpoint_secret_hex, kHex);
  sources.environment["FF_API_TOKEN"] = "the-token-directly";
  EXPECT_EQ(load(sources).api_token, "the-token-directly");
  EXPECT_TRUE(mentions(all_warnings(load(sources)),
                       "api_token_file is not used: api_token is given by environment FF_API_TOKEN"));
  sources.flags.by_key["api_token_file"] = "other";
  EXPECT_EQ(load(sources).api_token, "another-token-here");
  EXPECT_TRUE(mentions(all_warnings(load(sources)),
                       "api_token is not used: api_token_file is given by flag --api-token-file"));
}

TEST(ServerConfig, TakesNoEmptySecretForNone) {
  EXPECT_TRUE(mentions(refusal_of({{"FF_API_TOKEN", ""}}), "api_token (environment FF_API_TOKEN)"));
  EXPECT_EQ(load(with_file("api_token = ''")).api_token, "") << "as --print-config writes it";
  EXPECT_TRUE(mentions(refusal_of({{"FF_WAITPOINT_HMAC_SECRET", ""}}),
                       "waitpoint.secret (environment FF_WAITPOINT_HMAC_SECRET) | Give pairs of hex"));
  EXPECT_TRUE(mentions(refusal_of(sources_of({{"FF_API_TOKEN_FILE", "t"}}, {{"t", "\n"}})), "file is empty"));
}

TEST(ServerConfig, NeverShowsASecret) {
  const Variables environment{{"FF_API_TOKEN", "s3cret-s3cret-s3cret"},
                              {"FF_WAITPOINT_HMAC_SECRET", kHex},
                              {"FF_STORE", "postgres://app:s3cret@host/db"}};
  const auto printed = print_config(load(environment));
  EXPECT_TRUE(mentions(printed, "api_token = \"<redacted>\"   # from environment FF_API_TOKEN\n"));
  EXPECT_TRUE(mentions(printed, "waitpoint.secret = \"<redacted>\"   # from"));
  EXPECT_TRUE(mentions(printed, "store = \"postgres://app:***@host/db\"   # from environment FF_STORE\n"));
  EXPECT_TRUE(mentions(print_config(load(Variables{})), "api_token = \"\"   # from default\n"));
  EXPECT_FALSE(printed.contains("s3cret") || printed.contains(kHex));
  for (const Variables& bad : std::vector<Variables>{
           {{"FF_WAITPOINT_HMAC_SECRET", "s3cret"}},
           {{"FF_API_TOKEN", "s3cret\n"}},
           {{"FF_STORE", "mysql://app:s3cret@host/db"}},
           {{"FF_BACKEND", "postgres"}, {"FF_POSTGRES_URL", "mysql://app:s3cret@host/db"}}}) {
    EXPECT_FALSE(refusal_of(bad).contains("s3cret"));
  }
  const auto file = sources_of({{"FF_WAITPOINT_HMAC_SECRET_FILE", "f"}}, {{"f", "s3cret"}});
  EXPECT_FALSE(refusal_of(file).contains("s3cret"));
}

// ---- Printing ----

TEST(ServerConfig, PrintsAFileThatLoadsToTheSame) {
  const auto first = load({{"FF_SQLITE_PATH", "my \"jobs\" # 1.db"},
                           {"FF_LISTEN_ADDR", "[::1]:0080"},
                           {"FF_LANES", "a b, c#, d\\e, 'f', [g]"},
                           {"FF_CORS_ORIGINS", "https://a.example,https://b.example"},
                           {"FF_HTTP_THREADS", "007"},
                           {"FF_ACCESS_LOG", "True"},
                           {"FF_LOG", "WARN"},
                           {"FF_SCANNER_INSTANCE_TAG", "k=v, w"},
                           {"FF_UNBLOCK_INTERVAL_S", "0"}});
  const auto second = load(with_file(print_config(first)));
  ASSERT_EQ(first.settings.size(), second.settings.size());
  for (std::size_t i = 0; i < first.settings.size(); ++i) {
    EXPECT_EQ(first.settings[i].key, second.settings[i].key);
    EXPECT_EQ(first.settings[i].value, second.settings[i].value);
  }
  EXPECT_EQ(second.store_url, "sqlite:my \"jobs\" # 1.db");
  EXPECT_EQ(second.lanes, (Strings{"a b", "c#", "d\\e", "'f'", "[g]"}));
  EXPECT_EQ(second.cors_origins, first.cors_origins);
  EXPECT_EQ(second.http.port, 80);
  EXPECT_EQ(second.http.threads, 7u);
  EXPECT_EQ(second.log_level, LogLevel::warn);
  EXPECT_EQ(second.engine.scanner_filter.instance_tag, std::pair("k"s, "v, w"s));
  EXPECT_EQ(second.intervals, first.intervals);
  EXPECT_TRUE(mentions(print_config(second), "http.threads = 7   # from file ff.toml\n"));
}

TEST(ServerConfig, RefusesPrintedSecretsInAFile) {
  const auto advice = "--print-config hides secrets";
  EXPECT_TRUE(mentions(refusal_of_file("api_token = '<redacted>'"), advice));
  EXPECT_TRUE(mentions(refusal_of_file("waitpoint.secret = '<redacted>'"), advice));
  EXPECT_TRUE(mentions(refusal_of_file("store = 'postgres://app:***@host/db'"), advice));
}

// ---- Documents ----

TEST(ServerConfig, IsDocumentedSettingBySetting) {
  std::ifstream file(FF_DOCS_DIR "/configuration.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const auto code = [](std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); };
  for (const auto& setting : all_settings()) {
    const auto row = fmt::format("| {} | {} | {} | {} | {} |", code(setting.key), code(flag_of(setting)),
                                 code(setting.variable), code(setting.default_text), setting.help);
    EXPECT_TRUE(document.contains(row)) << "docs/configuration.md lacks the line\n" << row;
  }
}

}  // namespace
}  // namespace flowfabric::server
