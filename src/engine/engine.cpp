#include "flowfabric/engine.h"

#include "engine/first_secret.h"
#include "engine/handles.h"
#include "engine/runtime.h"
#include "model/waitpoint_token.h"

namespace flowfabric {

namespace {

Result<void> check_options(const EngineOptions& options) {
  const bool usable = options.max_queued_operations > 0 && options.max_batch > 0 &&
                      options.operation_deadline.count() > 0 && options.clock_interval.count() >= 0 &&
                      options.retention.count() >= 0 && options.event_retention.count() >= 0 &&
                      options.budget_grace.count() >= 0 && options.reclaim_grace.count() >= 0 &&
                      options.flow_partitions > 0 && options.budget_partitions > 0 &&
                      options.quota_partitions > 0;
  if (!usable) {
    return fail_with(ErrorCode::invalid_input, "engine options",
                     "Queue bounds, batch size, deadline and partition counts must be greater than zero.");
  }
  for (const auto& rule : options.rules_off) {
    const auto known = enum_from_name<core::Rule>(rule);
    // What has served its time is always removed: idempotency keys, bulk operations that are over.
    if (known && *known != core::Rule::none && *known != core::Rule::ttl_sweep) continue;
    return fail_with(ErrorCode::invalid_input, "rules_off: " + rule,
                     "Give names of rules as `EngineStats::clock_seconds` has them (all but ttl_sweep): "
                     "lease_expiry, retention_trimmer, …");
  }
  const auto& secret = options.waitpoint_secret_hex;
  if (secret.empty() || bytes_from_hex(secret)) return {};
  return fail_with(
      ErrorCode::invalid_secret_hex, "",
      "Give the secret for waitpoint tokens as pairs of hex digits, such as `openssl rand -hex 32` "
      "prints.");
}

store::StoreOptions store_options(const EngineOptions& options) {
  return {
      .partitions = engine::partitions_of(options), .now_ms = options.now_ms, .failed = options.store_failed};
}

}  // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Engine::~Engine() {
  if (impl_) stop();
}

Result<Engine> Engine::open(const std::string& url, EngineOptions options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  auto store = store::open_store(url, store_options(options));
  if (!store) return std::unexpected(store.error());
  try {
    Engine engine(std::make_unique<Impl>(*std::move(store), std::move(options), engine::backend_of(url)));
    engine::install_first_secret(engine.impl_->committers, engine.impl_->options);
    engine.impl_->options.waitpoint_secret_hex.clear();
    return engine;
  } catch (const store::StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

void Engine::release_abandoned() {
  for (auto& operation : impl_->waiting.take_abandoned()) operation.answer(nullptr);
}

void Engine::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}

Result<std::size_t> Engine::run_due() {
  return impl_->clock.run_due();
}

EngineStats Engine::stats() const {
  return impl_->stats();
}

OpaqueHandle Engine::handle_of(const ClaimedTask& task, const std::string& worker_instance_id,
                               std::int64_t lease_ttl_ms) const {
  return engine::handle_of(task, impl_->backend, worker_instance_id, lease_ttl_ms);
}

Result<std::string> migrate(const std::string& url, const EngineOptions& options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  return store::migrate_store(url, store_options(options));
}

Result<std::string> plan_migration(const std::string& url, const EngineOptions& options) {
  if (auto ok = check_options(options); !ok) return std::unexpected(ok.error());
  return store::plan_store_migration(url, store_options(options));
}

}  // namespace flowfabric
