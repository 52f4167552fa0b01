// Lanes and workers.
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

// ---- lanes ------------------------------------------------------------------------------------------------

void list_lanes(const CallPtr& call) {
  call->read(ListLanes{.cursor = call->query.text("cursor").value_or(""),
                       .limit = read_limit(call->query, 100, 1, 1000)},
             [](Call& self, const LanePage& page) {
               JsonWriter out;
               out.object().key("lanes").array();
               for (const auto& lane : page.lanes) {
                 out.object().field("lane_id", lane.lane_id);
                 write_word(out, "state", lane.state);
                 write_counts(out.key("counts"), lane.counts);
                 out.field("oldest_waiting_at", lane.oldest_waiting_at)
                     .field("registered_at", lane.registered_at)
                     .field("registered_by", lane.registered_by);
                 write_text_or_null(out, "fair_by", lane.fair_by);
                 out.field("max_concurrent_per_key", lane.max_concurrent_per_key).end();
               }
               self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
             });
}

void reply_lane(Call& self, const LaneStatus& lane) {
  JsonWriter out;
  out.object().field("lane_id", lane.lane_id);
  write_word(out, "state", lane.state);
  self.reply(200, out.end().take());
}

// Registering a lane again is no error and changes nothing.
void register_lane(const CallPtr& call) {
  call->run(RegisterLane{.lane_id = call->segments[0]}, reply_lane);
}

template <LaneState state>
void set_lane_state(const CallPtr& call) {
  call->run(SetLaneState{.lane_id = call->segments[0], .state = state}, reply_lane);
}

void set_fairness(const CallPtr& call) {
  const auto fields = call->fields();
  call->run(
      SetLaneFairness{.lane_id = call->segments[0],
                      .fair_by = fields.text_or("fair_by", ""),
                      .max_concurrent_per_key = fields.number_or<std::uint64_t>("max_concurrent_per_key", 0)},
      [](Call& self, const LaneFairness& lane) {
        JsonWriter out;
        out.object().field("lane_id", lane.lane_id);
        write_text_or_null(out, "fair_by", lane.fair_by);
        out.field("max_concurrent_per_key", lane.max_concurrent_per_key);
        self.reply(200, out.end().take());
      });
}

// ---- workers ----------------------------------------------------------------------------------------------

void register_worker(const CallPtr& call) {
  const auto fields = call->fields();
  RegisterWorker request{.worker_id = fields.text_or("worker_id", call->segments[0]),
                         .worker_instance_id = call->segments[0],
                         .namespace_ = fields.text_or("namespace", "")};
  if (fields.has("lanes")) request.lanes = fields.texts("lanes");
  if (fields.has("capabilities")) request.capabilities = fields.texts("capabilities");
  request.liveness_ttl_ms = fields.number_or<std::int64_t>("liveness_ttl_ms", request.liveness_ttl_ms);
  call->run(std::move(request), [](Call& self, const WorkerRegistration& registration) {
    JsonWriter out;
    out.object()
        .field("outcome", registration.refreshed ? "refreshed" : "registered")
        .field("expires_at", registration.expires_at)
        .end();
    self.reply(200, out.take());
  });
}

std::string namespace_of(const CallPtr& call) {
  return call->query.text("namespace").value_or("");
}

void heartbeat(const CallPtr& call) {
  call->run(HeartbeatWorker{.worker_instance_id = call->segments[0], .namespace_ = namespace_of(call)},
            [](Call& self, const Heartbeat& beat) {
              JsonWriter out;
              self.reply(200, out.object().field("expires_at", beat.expires_at).end().take());
            });
}

void mark_dead(const CallPtr& call) {
  MarkWorkerDead request{.worker_instance_id = call->segments[0], .namespace_ = namespace_of(call)};
  if (call->has_body()) request.reason = call->fields().text_or("reason", "");
  call->run(std::move(request), [](Call& self, const MarkedDead& dead) {
    JsonWriter out;
    self.reply(200, out.object().field("was_registered", dead.was_registered).end().take());
  });
}

void list_workers(const CallPtr& call) {
  call->read(ListWorkers{.namespace_ = call->query.text("namespace"),
                         .cursor = call->query.text("cursor").value_or(""),
                         .limit = read_limit(call->query, 1000, 1, 10'000)},
             [](Call& self, const WorkerPage& page) {
               JsonWriter out;
               out.object().key("workers").array();
               for (const auto& worker : page.workers) {
                 out.object()
                     .field("worker_id", worker.worker_id)
                     .field("worker_instance_id", worker.worker_instance_id)
                     .field("namespace", worker.namespace_)
                     .field("lanes", worker.lanes)
                     .field("capabilities", worker.capabilities)
                     .field("last_heartbeat_ms", worker.last_heartbeat_at)
                     .field("liveness_ttl_ms", worker.liveness_ttl_ms)
                     .field("registered_at_ms", worker.registered_at)
                     .field("leases", worker.leases)
                     .end();
               }
               self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
             });
}

void list_expired_leases(const CallPtr& call) {
  call->read(ListExpiredLeases{.as_of = call->query.number<std::int64_t>("as_of"),
                               .namespace_ = call->query.text("namespace"),
                               .limit = read_limit(call->query, 1000, 1, 10'000),
                               .cursor = call->query.text("cursor").value_or("")},
             [](Call& self, const ExpiredLeasePage& page) {
               JsonWriter out;
               out.object().key("leases").array();
               for (const auto& lease : page.leases) {
                 out.object()
                     .field("execution_id", lease.execution_id)
                     .field("lease_id", lease.lease_id)
                     .field("lease_epoch", lease.lease_epoch)
                     .field("worker_instance_id", lease.worker_instance_id)
                     .field("expires_at", lease.expires_at)
                     .field("attempt_index", lease.attempt_index)
                     .end();
               }
               self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
             });
}

constexpr Route kRoutes[] = {
    {"GET", "/v1/lanes", "list_lanes", Body::none, kSmallBody, list_lanes},
    {"PUT", "/v1/lanes/{lane}", "register_lane", Body::ignored, kSmallBody, register_lane},
    {"POST", "/v1/lanes/{lane}/pause", "pause_lane", Body::ignored, kSmallBody,
     set_lane_state<LaneState::paused>},
    {"POST", "/v1/lanes/{lane}/resume", "resume_lane", Body::ignored, kSmallBody,
     set_lane_state<LaneState::active>},
    {"POST", "/v1/lanes/{lane}/drain", "drain_lane", Body::ignored, kSmallBody,
     set_lane_state<LaneState::draining>},
    {"POST", "/v1/lanes/{lane}/disable", "disable_lane", Body::ignored, kSmallBody,
     set_lane_state<LaneState::disabled>},
    {"PUT", "/v1/lanes/{lane}/fairness", "set_lane_fairness", Body::json, kSmallBody, set_fairness},
    {"GET", "/v1/workers", "list_workers", Body::none, kSmallBody, list_workers},
    {"PUT", "/v1/workers/{worker_instance_id}", "register_worker", Body::json, kSmallBody, register_worker},
    {"POST", "/v1/workers/{worker_instance_id}/heartbeat", "heartbeat_worker", Body::ignored, kSmallBody,
     heartbeat},
    {"DELETE", "/v1/workers/{worker_instance_id}", "mark_worker_dead", Body::json_if_any, kSmallBody,
     mark_dead},
    {"GET", "/v1/leases/expired", "list_expired_leases", Body::none, kSmallBody, list_expired_leases},
};

}  // namespace

std::span<const Route> registry_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
