#include "engine/reads.h"

#include "core/lease.h"
#include "core/read.h"
#include "model/text.h"

namespace flowfabric::engine {

namespace {

constexpr std::size_t kMaxIdle = 16;
constexpr std::uint32_t kMaxEvents = 1000;

// Reading sessions load on the spot or in rounds, like any other.
template <class Record>
const Record* find(store::Session& session, core::Unit& unit, const typename Record::Key& key) {
  unit.want<Record>(key);
  session.load(unit);
  return unit.find<Record>(key);
}

Result<void> check_limit(std::uint32_t limit) {
  if (limit >= 1 && limit <= kMaxEvents) return {};
  return fail_with(ErrorCode::invalid_input, "limit: out of range", "Ask for 1 to 1000 events.");
}

template <class Event>
auto views(const std::vector<Event>& events) {
  std::vector<decltype(core::view(std::declval<Event>()))> shown;
  for (const auto& event : events) shown.push_back(core::view(event));
  return shown;
}

}  // namespace

std::unique_ptr<store::Session> Readers::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return store_.open_reader();
}

void Readers::give_back(std::unique_ptr<store::Session> session) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(session));
}

template <class F>
auto Readers::read(F&& f) -> decltype(f(std::declval<store::Session&>(), std::declval<core::Unit&>())) {
  try {
    auto session = take();
    core::Unit unit(*session);
    session->begin(unit);
    auto result = f(*session, unit);
    session->rollback();
    give_back(std::move(session));
    return result;
  } catch (const store::StoreFailure& failure) {
    return std::unexpected(failure.error);  // and the session is closed, whatever state it was in
  }
}

Result<ExecutionSnapshot> answer(Readers& readers, const DescribeExecution& request) {
  return readers.read([&](auto& session, auto& unit) -> Result<ExecutionSnapshot> {
    const auto* execution = find<Execution>(session, unit, request.execution_id);
    const auto* spec = find<ExecutionSpec>(session, unit, request.execution_id);
    if (!execution || !spec) return std::unexpected(core::not_found(request.execution_id));
    return core::snapshot(*execution, *spec);
  });
}

Result<std::optional<std::string>> answer(Readers& readers, const ReadResult& request) {
  return readers.read([&](auto& session, auto& unit) -> Result<std::optional<std::string>> {
    const auto* execution = find<Execution>(session, unit, request.execution_id);
    if (!execution) return std::unexpected(core::not_found(request.execution_id));
    const auto key = core::result_attempt(*execution);
    if (!key) return std::nullopt;
    const auto* attempt = find<Attempt>(session, unit, *key);
    if (!attempt || attempt->result.data.empty()) return std::nullopt;
    return attempt->result.data;
  });
}

Result<std::vector<AttemptSnapshot>> answer(Readers& readers, const ListAttempts& request) {
  return readers.read([&](auto& session, auto& unit) -> Result<std::vector<AttemptSnapshot>> {
    const auto* execution = find<Execution>(session, unit, request.execution_id);
    if (!execution) return std::unexpected(core::not_found(request.execution_id));
    return core::attempts(*execution, session.attempts_of(request.execution_id));
  });
}

Result<std::map<PublicState, std::int64_t>> answer(Readers& readers, const CountLane& request) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  return readers.read([&](auto& session, auto&) -> Result<std::map<PublicState, std::int64_t>> {
    return session.count_lane(request.lane_id);
  });
}

Result<std::vector<LeaseEventView>> answer(Readers& readers, const ReadLeaseEvents& request) {
  if (auto ok = check_limit(request.limit); !ok) return std::unexpected(ok.error());
  return readers.read([&](auto& session, auto&) -> Result<std::vector<LeaseEventView>> {
    return views(session.lease_events(request.after, request.limit));
  });
}

Result<std::vector<CompletionEventView>> answer(Readers& readers, const ReadCompletions& request) {
  if (auto ok = check_limit(request.limit); !ok) return std::unexpected(ok.error());
  return readers.read([&](auto& session, auto&) -> Result<std::vector<CompletionEventView>> {
    return views(session.completion_events(request.after, request.limit));
  });
}

}  // namespace flowfabric::engine
