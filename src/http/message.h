// What travels over HTTP, without the network: requests and responses, and who answers them.
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

// Gives its memory back, which neither `clear` nor an assignment does.
inline void free_text(std::string& text) {
  std::string().swap(text);
}

struct Request {
  std::string method{"GET"};
  std::string path{"/"};          // as it came: not decoded
  std::string query{};            // after the question mark, as it came
  std::vector<Header> headers{};  // names in lower case
  std::string body{};
  std::string peer{};  // the client's address
  bool keep_alive{true};

  // Null: it has none.
  const std::string* header(std::string_view lower_case_name) const;
};

// A body that is produced piece by piece, each when the one before has been sent.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Calls back once, on any thread, with the next piece; nothing more follows an absent one.
  virtual void next(std::function<void(std::optional<std::string>)> piece) = 0;
  // Nobody listens any more: what is being waited for is not needed.
  virtual void abandon() = 0;
};

struct Response {
  int status{200};
  std::string content_type{};  // empty: no such header
  std::string body{};
  std::vector<Header> headers{};
  std::shared_ptr<BodySource> source{};  // in place of `body`
};

// What the edge and a handler know of one request while it is being answered.
struct Exchange {
  Request request;
  // True once the client is gone, or the server is closing: whoever waits for something should stop.
  std::atomic<bool> abandoned{false};
  std::function<void()> on_abandoned{};  // set by the handler before it returns; called at most once
};

// Why the edge could not read a request.
enum class Malformed {
  bad_request,
  header_too_large,
  too_slow,
  body_too_large,
  too_busy,      // all connections are in use
  address_busy,  // this client's address has as many connections or requests as one may have
  no_memory,     // what is being read at the moment is as much as may be
  closing
};
BOOST_DESCRIBE_ENUM(Malformed, bad_request, header_too_large, too_slow, body_too_large, too_busy,
                    address_busy, no_memory, closing)

class Handler {
 public:
  virtual ~Handler() = default;

  // The header section is there, the body not yet: an answer now, without reading it, or how long it may be.
  struct Admission {
    std::optional<Response> refusal{};
    std::size_t max_body{0};
    bool is_vital{false};  // is answered although there are too many connections or requests
  };
  virtual Admission admit(const Request& head) = 0;

  // Answers exactly once, now or later, on any thread. A handler that needs the body no more frees it before
  // it returns: what is left of it then counts until the answer is sent.
  virtual void handle(std::shared_ptr<Exchange> exchange, std::function<void(Response)> answer) = 0;

  // The answer to what could not be read; `head` is what is known of it, if anything.
  virtual Response refuse(Malformed why, const Request* head) = 0;

  // The answer is on its way: for access logs and metrics. `seconds`: since the header section was there.
  virtual void answered(const Request& head, const Response& response, double seconds) = 0;
};

}  // namespace flowfabric::http
