// Errors over HTTP: one form of body for all, `{"error", "code", "kind"?, "retryable"?, "detail"?,
// "request_id"}`. The words of `error` are the specification's (07 §4); `detail` is a sentence for people.
#pragma once

#include <string>
#include <string_view>

#include "api/fields.h"
#include "flowfabric/error.h"

namespace flowfabric::api {

// `execution_not_terminal` → `ExecutionNotTerminal`
std::string to_camel_case(std::string_view code);

// The text of the key `error`. A failure of the server (5xx) has no detail here: its detail may be a
// library's message with names of hosts and files, which belongs in the log.
std::string error_text(const Error& error);

// The whole body. `with_status`: adds the status, for items of a batch.
std::string error_body(const Error& error, std::string_view request_id, bool with_status = false);
std::string error_body(const Refusal& refusal, std::string_view request_id, bool with_status = false);

// The refusal of a client that has not sent the server's token.
Refusal unauthorized();

// True if the fault is the server's: an answer of 5xx.
bool is_failure(const Error& error);

// The HTTP status of the error.
int status_of(const Error& error);

}  // namespace flowfabric::api
