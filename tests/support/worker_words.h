// Short words for the worker registry.
#pragma once

#include <string>
#include <vector>

#include "flowfabric/registry.h"
#include "model/event_word.h"

namespace flowfabric::tests {

struct WorkerWords {
  // Worker `w`, instance `i1`, unless it says otherwise.
  static RegisterWorker registration(RegisterWorker request) {
    if (request.worker_id.empty()) request.worker_id = "w";
    if (request.worker_instance_id.empty()) request.worker_instance_id = "i1";
    return request;
  }
  // `namespace/instance` of each.
  static std::vector<std::string> instances_of(const std::vector<WorkerView>& workers) {
    std::vector<std::string> names;
    for (const auto& worker : workers) names.push_back(worker.namespace_ + "/" + worker.worker_instance_id);
    return names;
  }
  // `namespace/instance kind reason` of each.
  static std::vector<std::string> event_log(const std::vector<WorkerEventView>& events) {
    std::vector<std::string> log;
    for (const auto& event : events) {
      log.push_back(event.namespace_ + "/" + event.worker_instance_id + " " +
                    std::string(word_text(event.kind)));
      if (!event.reason.empty()) log.back() += " " + event.reason;
    }
    return log;
  }
};

}  // namespace flowfabric::tests
