// How errors are told over HTTP: one body for all, `{"error", "code", "kind"?, "retryable"?, "detail"?,
// "request_id"}`. The words of `error` are the specification's (07 §4); `detail` is a sentence for people.
#pragma once

#include <string>
#include <string_view>

#include "api/fields.h"
#include "flowfabric/error.h"

namespace flowfabric::api {

// `execution_not_terminal` → `ExecutionNotTerminal`
std::string to_camel_case(std::string_view code);

// The text of the key `error`. Of a failure of the server (5xx) it has no detail: that may be what a library
// said, with names of hosts and files; it is for the log.
std::string error_text(const Error& error);

// The whole body. With a status, as reports of a batch carry it.
std::string error_body(const Error& error, std::string_view request_id, bool with_status = false);
std::string error_body(const Refusal& refusal, std::string_view request_id, bool with_status = false);

// Of everybody who needs the server's token and has not sent it.
Refusal unauthorized();

// It is the server's fault: an answer of 5xx.
bool is_failure(const Error& error);

// The answer to it over HTTP.
int status_of(const Error& error);

}  // namespace flowfabric::api
