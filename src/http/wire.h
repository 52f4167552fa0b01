// Answers as bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace flowfabric::http {

// How the client knows where the answer's body ends.
enum class Framing { no_body, sized, chunked, until_close };

// Status line and headers. `connection`: the header of that name; empty: none. What the handler says about
// the framing and the connection is left out, those are the edge's.
std::string response_head(const Response& response, Framing framing, std::string_view connection);

// Closes the connection: the whole of an answer that is written without a connection's care.
std::string last_response(const Response& response);

std::string as_chunk(std::string piece);  // not of nothing: that would be the last one
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// 1xx, 204 and 304 have no body.
bool may_have_body(int status);

}  // namespace flowfabric::http
