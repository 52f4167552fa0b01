// HTTP without the network: requests, responses, and the Handler that answers.
//
// The edge (server.h) turns bytes into requests and responses into bytes; a Handler decides. So a handler can
// be called without a socket, which is how the command line works on a store directly.
#pragma once

#include <atomic>
#include <boost/describe.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flowfabric::http {

using Header = std::pair<std::string, std::string>;

// Frees the string's memory, which neither `clear` nor an assignment does.
inline void free_text(std::string& text) {
  std::string().swap(text);
}

struct Request {
  std::string method{"GET"};
  std::string path{"/"};          // not decoded
  std::string query{};            // after the question mark, as it came
  std::vector<Header> headers{};  // names in lower case
  std::string body{};
  std::string peer{};  // the client's address
  bool keep_alive{true};

  // Null if there is no such header.
  const std::string* header(std::string_view lower_case_name) const;
};

// A body that is produced piece by piece, each when the previous one has been sent.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Calls back once, on any thread, with the next piece; an absent piece is the end.
  virtual void next(std::function<void(std::optional<std::string>)> piece) = 0;
  // The client is gone: the next piece is not needed.
  virtual void abandon() = 0;
};

struct Response {
  int status{200};
  std::string content_type{};  // empty: no such header
  std::string body{};
  std::vector<Header> headers{};
  std::shared_ptr<BodySource> source{};  // instead of `body`
};

// One request while it is being answered, shared by the edge and the handler.
struct Exchange {
  Request request;
  // True once the client is gone or the server is closing: stop waiting.
  std::atomic<bool> abandoned{false};
  std::function<void()> on_abandoned{};  // set by the handler before it returns; called at most once
};

// Reasons why the edge refuses a request.
enum class Malformed {
  bad_request,
  header_too_large,
  too_slow,
  body_too_large,
  too_busy,      // all connections are in use
  address_busy,  // the client's address is at its limit of connections or requests
  no_memory,     // the memory for requests is used up
  closing
};
BOOST_DESCRIBE_ENUM(Malformed, bad_request, header_too_large, too_slow, body_too_large, too_busy,
                    address_busy, no_memory, closing)

class Handler {
 public:
  virtual ~Handler() = default;

  // The decision after the header section: an answer without reading the body, or the limit of the body.
  struct Admission {
    std::optional<Response> refusal{};
    std::size_t max_body{0};
    bool is_vital{false};  // answered even above the limits of connections and requests
  };
  virtual Admission admit(const Request& head) = 0;

  // Answers exactly once, now or later, on any thread. A handler that no longer needs the body frees it
  // before it returns; otherwise its bytes count until the answer is sent.
  virtual void handle(std::shared_ptr<Exchange> exchange, std::function<void(Response)> answer) = 0;

  // The answer to an unreadable request; `head` is the known part, if any.
  virtual Response refuse(Malformed why, const Request* head) = 0;

  // Called when the answer is sent, for access logs and metrics. `seconds` counts from the complete header
  // section.
  virtual void answered(const Request& head, const Response& response, double seconds) = 0;
};

}  // namespace flowfabric::http
