// What PostgreSQL's error codes mean here, and what their reader should do about them.
#include <algorithm>
#include <array>

#include "store/postgres/connection.h"

namespace flowfabric::store::postgres {

namespace {

using enum ErrorCode;

struct Meaning {
  std::string_view state;  // or the first characters of it
  ErrorCode code;
  Retry retry;
  const char* advice;
};

constexpr const char* kRaced = "The batch met another server's and is run again.";
constexpr const char* kAway =
    "PostgreSQL is away or starting; FlowFabric reconnects by itself. Repeat the call.";

// The first row that fits counts: exact codes before their classes.
constexpr auto kMeanings = std::to_array<Meaning>({
    {"40001", retry_exhausted, Retry::now, kRaced},
    {"40P01", retry_exhausted, Retry::now, kRaced},
    {"55P03", retry_exhausted, Retry::now, kRaced},
    {"23505", retry_exhausted, Retry::now, kRaced},
    {"22012", retry_exhausted, Retry::now, kRaced},  // by a statement that insists (session_counts.cpp)
    {"57P01", unavailable, Retry::when_back, kAway},
    {"57P02", unavailable, Retry::when_back, kAway},
    {"57P03", unavailable, Retry::when_back, kAway},
    {"08", unavailable, Retry::when_back, kAway},
    {"25P03", unavailable, Retry::when_back,
     "PostgreSQL ended an idle transaction: raise idle_in_transaction_session_timeout for FlowFabric's "
     "role."},
    {"25006", unavailable, Retry::when_back,
     "This is a read-only replica: give the URL of the primary, or several hosts with "
     "target_session_attrs=read-write."},
    {"53300", unavailable, Retry::when_back,
     "PostgreSQL has no connection left: raise max_connections, lower committers= and readers= in the "
     "store's "
     "URL, or put a pooler between."},
    {"53100", unavailable, Retry::never, "PostgreSQL's disk is full: free some space; nothing was changed."},
    {"53", unavailable, Retry::never, "PostgreSQL has run out of a resource; look into its log."},
    {"57014", timeout, Retry::never,
     "The statement was cancelled: raise or remove statement_timeout for FlowFabric's role (alter role … set "
     "statement_timeout=0), and look for whoever holds locks. Nothing was changed; repeat the call."},
    {"28P01", invalid_input, Retry::never,
     "The password is wrong: set PGPASSWORD, a password file (passfile=… or ~/.pgpass), or the URL's "
     "password."},
    {"28", invalid_input, Retry::never,
     "PostgreSQL refuses this user: check the user in the store's URL and the server's pg_hba.conf."},
    {"3D000", invalid_input, Retry::never,
     "The database does not exist: make it (createdb), or correct the store's URL."},
    {"42P01", invalid_input, Retry::never,
     "FlowFabric's tables are missing: run `flowfabric migrate --store URL` first."},
    {"42501", invalid_input, Retry::never,
     "The role may not do this: grant it the rights on FlowFabric's tables and sequence."},
    {"22", invalid_input, Retry::one_by_one, "PostgreSQL cannot store a value of this call."},
    {"XX", corruption, Retry::never, "The database is damaged: look into PostgreSQL's log."},
});

// Two writers may make the same execution, key, lane and so on at once: the second finds it when it runs
// again. Nobody but the holder of an execution's lock writes its attempts, and nobody repeats an event's id.
constexpr auto kNeverRaced = std::to_array<std::string_view>(
    {"ff_attempt_pkey", "ff_lease_event_pkey", "ff_completion_event_pkey", "ff_operator_event_pkey",
     "ff_worker_registry_event_pkey", "ff_signal_event_pkey"});
constexpr Meaning kDuplicate{"", corruption, Retry::never,
                             "The database holds what cannot be there yet: run `flowfabric doctor` on it."};

constexpr Meaning kOther{"", unavailable, Retry::never,
                         "PostgreSQL refused a statement; nothing was changed. Look into its log."};
constexpr Meaning kBadParameter{"", invalid_input, Retry::never,
                                "A parameter of the store's URL is not one that libpq takes: correct it."};
constexpr Meaning kLost{"", unavailable, Retry::when_back, kAway};

const Meaning& meaning_of(std::string_view state) {
  for (const auto& meaning : kMeanings) {
    if (state.starts_with(meaning.state)) return meaning;
  }
  return kOther;
}

// The first line of it, without the "FATAL: " that libpq puts before.
std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  for (const std::string_view prefix : {"ERROR:  ", "FATAL:  "}) {
    if (const auto at = text.find(prefix); at != text.npos) text.erase(at, prefix.size());
  }
  return text;
}

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text ? text : "";
}

// libpq gives no code for a connection that failed, but the server's words are in its message.
const Meaning& meaning_of_message(const std::string& message) {
  const auto says = [&](const char* words) { return message.find(words) != message.npos; };
  if (says("password authentication failed") || says("no password supplied")) return meaning_of("28P01");
  if (says("does not exist")) return meaning_of(says("role \"") ? "28000" : "3D000");
  if (message.starts_with("invalid ")) return kBadParameter;
  if (says("no pg_hba.conf entry") || says("authentication failed")) return meaning_of("28000");
  if (says("too many clients") || says("remaining connection slots") || says("too many connections"))
    return meaning_of("53300");
  if (says("read-only") || says("hot standby") || says("session is not")) return meaning_of("25006");
  return kLost;
}

}  // namespace

StoreFailure failure_of(PGconn* connection, const PGresult* result) {
  if (!result) {
    const std::string message = connection ? PQerrorMessage(connection) : "";
    const auto& meaning = meaning_of_message(message);
    const auto words = first_line(message);
    return {{meaning.code, words.empty() ? "connection to PostgreSQL lost" : words, meaning.advice},
            meaning.retry};
  }
  const auto state = field(result, PG_DIAG_SQLSTATE);
  const bool never_raced =
      std::ranges::find(kNeverRaced, field(result, PG_DIAG_CONSTRAINT_NAME)) != kNeverRaced.end();
  const auto& meaning = never_raced ? kDuplicate : meaning_of(state);
  return {{meaning.code, field(result, PG_DIAG_MESSAGE_PRIMARY) + " [" + state + "]", meaning.advice},
          meaning.retry};
}

void fail_corrupt(const std::string& column) {
  throw StoreFailure{{ErrorCode::corruption, column + ": cannot be read",
                      "A stored value is not one this version writes. Restore the database from a backup."},
                     Retry::one_by_one};
}

}  // namespace flowfabric::store::postgres
