// Turns answers into bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/message.h"

namespace flowfabric::http {

// How the client finds the end of the answer's body.
enum class Framing { no_body, sized, chunked, until_close };

// Status line and headers. `connection`: the header of that name; empty: none. The handler's own headers
// about framing and the connection are left out, because the edge sets these.
std::string response_head(const Response& response, Framing framing, std::string_view connection);

// A whole answer that closes the connection, for sockets without a Connection.
std::string last_response(const Response& response);

std::string as_chunk(std::string piece);  // not empty: that would be the last chunk
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// 1xx, 204 and 304 have no body.
bool may_have_body(int status);

}  // namespace flowfabric::http
