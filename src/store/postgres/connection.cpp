#include "store/postgres/connection.h"

#include <poll.h>

#include <array>
#include <charconv>

namespace flowfabric::store::postgres {

namespace {

// Distinct sets of changed columns are few; a runaway would only cost memory, so it is cut off.
constexpr std::size_t kMaxStatements = 512;

// What libpq is told unless the URL says otherwise: it comes first, so that the URL wins. A server that
// vanished without a word is noticed within half a minute.
constexpr std::array kDefaults{
    std::pair{"fallback_application_name", "flowfabric"},
    std::pair{"connect_timeout", "10"},
    std::pair{"keepalives_idle", "10"},
    std::pair{"keepalives_interval", "5"},
    std::pair{"keepalives_count", "3"},
    std::pair{"tcp_user_timeout", "30000"},
};

// Every statement is a look-up by key; plans made while the tables were young must not be anything else. An
// acknowledged change is on disk, whatever the server's default is.
constexpr const char* kSettings =
    "select set_config('plan_cache_mode','force_generic_plan',$1::text='local'),"
    "set_config('enable_seqscan','off',$1::text='local'),"
    "set_config('enable_hashjoin','off',$1::text='local'),"
    "set_config('enable_mergejoin','off',$1::text='local'),"
    "set_config('enable_bitmapscan','off',$1::text='local'),"
    "set_config('enable_memoize','off',$1::text='local'),"
    "set_config('jit','off',$1::text='local'),"
    "set_config('client_min_messages','error',$1::text='local'),"
    "set_config('synchronous_commit',case current_setting('synchronous_commit') when 'off' then 'on'"
    " else current_setting('synchronous_commit') end,$1::text='local')";

}  // namespace

std::int64_t Rows::affected() const {
  const std::string_view text = PQcmdTuples(result_);
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

Connection::Connection(const ConnectionSettings& settings) : pooled_(settings.pooled) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : kDefaults) {
    keywords.push_back(keyword);
    values.push_back(value);
  }
  keywords.insert(keywords.end(), {"dbname", nullptr});
  values.insert(values.end(), {settings.uri.c_str(), nullptr});
  connection_.reset(PQconnectdbParams(keywords.data(), values.data(), 1));
  if (PQstatus(get()) != CONNECTION_OK) throw failure_of(get(), nullptr);
  PQsetnonblocking(get(), 1);
  PQsetNoticeProcessor(
      get(), [](void*, const char*) {}, nullptr);
  if (PQenterPipelineMode(get()) != 1) lost();
  if (!pooled_) run(kSettings, Parameters().add(std::string("session")));
}

const std::string& Connection::prepared(const std::string& sql) {
  if (const auto it = names_.find(sql); it != names_.end()) return it->second;
  if (names_.size() >= kMaxStatements) {
    names_.clear();
    fresh_.clear();
    post_unnamed("deallocate all", {}, {});
  }
  const auto name = "ff" + std::to_string(next_name_++);
  if (PQsendPrepare(get(), name.c_str(), sql.c_str(), 0, nullptr) != 1) lost();
  pending_.push_back({});
  fresh_.push_back(sql);
  return names_.emplace(sql, name).first->second;
}

namespace {

// Parameters in the form that libpq takes.
struct Wire {
  explicit Wire(const Parameters& parameters) : formats(parameters.size(), 1) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      values.push_back(parameters.data(i));
      lengths.push_back(parameters.length(i));
    }
  }
  int count() const { return static_cast<int>(values.size()); }
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

void Connection::queued(int sent, OnRows on_rows) {
  if (sent != 1) lost();
  pending_.push_back({.is_sync = false, .on_rows = std::move(on_rows)});
  unsynced_ = true;
}

void Connection::post_unnamed(const std::string& sql, const Parameters& parameters, OnRows on_rows) {
  const Wire wire(parameters);
  queued(PQsendQueryParams(get(), sql.c_str(), wire.count(), nullptr, wire.values.data(), wire.lengths.data(),
                           wire.formats.data(), 1),
         std::move(on_rows));
}

void Connection::post(const std::string& sql, const Parameters& parameters, OnRows on_rows) {
  if (pooled_) {
    post_unnamed(sql, parameters, std::move(on_rows));
    if (sql.starts_with("begin")) post_unnamed(kSettings, Parameters().add(std::string("local")), {});
    return;
  }
  const auto& name = prepared(sql);
  const Wire wire(parameters);
  queued(PQsendQueryPrepared(get(), name.c_str(), wire.count(), wire.values.data(), wire.lengths.data(),
                             wire.formats.data(), 1),
         std::move(on_rows));
}

void Connection::send() {
  if (!unsynced_) return;
  if (PQpipelineSync(get()) != 1) lost();
  pending_.push_back({.is_sync = true, .on_rows = {}});
  unsynced_ = false;
  ++round_trips_;
  if (PQflush(get()) < 0) lost();
}

void Connection::flush() {
  send();
  take_answers();
}

void Connection::take_answers() {
  failure_.reset();
  while (!pending_.empty()) {
    const auto pending = std::move(pending_.front());
    pending_.pop_front();
    take_answer(pending);
  }
  fresh_.clear();
  if (failure_) throw *std::exchange(failure_, std::nullopt);
}

void Connection::take_answer(const Pending& pending) {
  const auto answer = next();
  if (!answer) lost();
  if (pending.is_sync) return;
  switch (PQresultStatus(answer.get())) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
      try {
        if (pending.on_rows && !failure_) pending.on_rows(Rows(answer.get()));
      } catch (StoreFailure& failure) {
        failure_ = std::move(failure);
      }
      break;
    case PGRES_PIPELINE_ABORTED:
      break;  // of what failed before it
    default:
      if (PQstatus(get()) == CONNECTION_BAD) lost();
      if (!failure_) failure_ = failure_of(get(), answer.get());
      // What was to be prepared after it is not there.
      for (const auto& sql : fresh_) names_.erase(sql);
  }
  while (next()) continue;  // null ends the answers of one statement
}

Connection::Answer Connection::next() {
  for (;;) {
    if (PQflush(get()) < 0) lost();
    if (PQisBusy(get()) == 0) return Answer(PQgetResult(get()));
    wait();
  }
}

void Connection::wait() {
  const int unsent = PQflush(get());
  if (unsent < 0) lost();
  const auto events = static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0));
  pollfd socket{.fd = PQsocket(get()), .events = events, .revents = 0};
  poll(&socket, 1, -1);
  const bool readable = (socket.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  if (readable && PQconsumeInput(get()) != 1) lost();
}

void Connection::lost() {
  broken_ = true;
  pending_.clear();
  throw failure_of(get(), nullptr);
}

}  // namespace flowfabric::store::postgres
